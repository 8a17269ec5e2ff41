"""The shards of a plan in words: which layers each worker has, and what a step will cost it."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgebed.core.plan import Shard, TrainingPlan
from edgebed.core.quantities import bytes_text, number_text
from edgebed.planning.partition import LayerPartition
from edgebed.reports.writing.page import Grid

SAME = 0.02
"""Relative difference up to which two step times are shown as one."""


@dataclass(frozen=True, kw_only=True)
class ShardRow:
    """One shard of a plan, in numbers."""

    node: str
    layers: tuple[int, int]
    """Numbers of the shard's first and of its last layer."""
    weights: int
    """Number of values in the shard's layers: parameters and buffers."""
    compute_s: float
    """Virtual seconds of computation in a step: counted, or as a profile says."""
    memory_bytes: int
    """About how much memory the shard's layers take, with moments and what is stored for the gradient."""


def shard_rows(plan: TrainingPlan, partition: LayerPartition | None) -> list[ShardRow]:
    """A row for each shard, from the bottom; none where each worker has the whole model."""
    if partition is None:
        return []
    sizes = dict((plan.server.shard or Shard()).sizes)
    rows = []
    for node, compute_s in zip(plan.workers(), partition.stage_s, strict=True):
        shard = node.shard or Shard()
        rows.append(
            ShardRow(
                node=node.node,
                layers=(shard.first, shard.end - 1),
                weights=sizes[node.node],
                compute_s=compute_s,
                memory_bytes=shard.memory_bytes,
            )
        )
    return rows


def shard_grid(rows: Sequence[ShardRow]) -> Grid:
    """A line for each shard, from the bottom."""
    cells = [
        (
            row.node,
            f"{row.layers[0]}" if row.layers[0] == row.layers[1] else f"{row.layers[0]}..{row.layers[1]}",
            f"{row.weights:,}",
            f"{number_text(1000 * row.compute_s)} ms",
            bytes_text(row.memory_bytes),
        )
        for row in rows
    ]
    return Grid(("shard", "layers", "weights", "computes a step in", "keeps"), cells)


def step_text(step_s: float, step_under_caps_s: float) -> str:
    """What a step costs, in a sentence; in two where caps that the kernel holds cost another time."""
    text = f"A step takes {number_text(1000 * step_s)} ms of virtual time, links included."
    if abs(step_under_caps_s - step_s) <= SAME * step_s:
        return text
    return f"{text} Where the kernel holds CPU caps, about {number_text(1000 * step_under_caps_s)} ms."
