"""Where to cut a model, so that a step takes as little time as the devices allow; pure.

Devices stand in a row, each gets at least one layer. What a stage costs follows from its layers and its device
(stages.py); what a step costs, from the stages, by how they work together:

    together      each stage has another mini-batch in hand: the slowest of all, or of all links, sets the pace
    in turn       one after the other, up and down again: the sum of all
    micro-batches m parts of a mini-batch follow each other: the sum, of a part, and m - 1 times the slowest, of a part

A node that all share, a store or one with all gradient modules, is busy with every cut: its sum counts like a stage.

Times are seconds, sizes bytes, rates bit/s.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from edgebed.core.errors import ScenarioError
from edgebed.planning.stages import Device, LayerCost, Load, PipelineSchedule, Stages

Way = tuple[Load, tuple[int, ...]]
"""The load of the stages so far, and where each of them ends."""


class LayerPartition(NamedTuple):
    """The cuts of a model, and their costs."""

    cuts: tuple[int, ...]
    """Numbers of the layers that begin a shard, without the first shard's."""
    step_s: float
    stage_s: tuple[float, ...]
    """Seconds of computation in a step, for each device."""
    memory_bytes: tuple[int, ...]
    kept_bytes: tuple[int, ...] = ()
    """The share of each device's memory that holds tensors stored by batch."""
    turns_s: tuple[tuple[float, float], ...] = ()
    """Where stages take turns with whole mini-batches: for each, the seconds of the forward pass, and the rest."""
    hops_s: tuple[tuple[float, float], ...] = ()
    """Where stages take turns with whole mini-batches: for each but the last, the seconds up to the next stage, and
    down from there."""


def choose_cuts(layers: Sequence[LayerCost], devices: Sequence[Device], schedule: PipelineSchedule) -> LayerPartition:
    """The cuts of the shortest step; among equals, the lowest ones. ScenarioError where no cuts fit the caps."""
    if len(layers) < len(devices):
        raise ScenarioError(f"{len(layers)} layers cannot be cut into {len(devices)} shards; use fewer devices")
    ways = _ways(Stages(layers, devices, schedule), len(layers), len(devices))
    if not ways:
        raise ScenarioError(_too_large(layers, devices, schedule))
    _, ends = min(ways, key=lambda way: (way[0].step_s(schedule), way[1]))
    return cost_of(layers, devices, schedule, ends[:-1])


def cost_of(
    layers: Sequence[LayerCost], devices: Sequence[Device], schedule: PipelineSchedule, cuts: Sequence[int]
) -> LayerPartition:
    """The costs of given cuts, whether they fit the caps or not."""
    costs = Stages(layers, devices, schedule)
    ends = [0, *cuts, len(layers)]
    spans = list(enumerate(pairwise(ends)))
    stages = [costs.stage(k, first, end) for k, (first, end) in spans]
    load = Load()
    for stage in stages:
        load = load.beside(stage.load)
    forward_s = [costs.forward_s(k, first, end) for k, (first, end) in spans]
    is_in_turn = not schedule.together and schedule.micro_batches == 1
    return LayerPartition(
        cuts=tuple(cuts),
        step_s=load.step_s(schedule),
        stage_s=tuple(stage.compute_s for stage in stages),
        memory_bytes=tuple(stage.memory_bytes for stage in stages),
        kept_bytes=tuple(costs.kept_bytes(first, end) for _, (first, end) in spans),
        turns_s=tuple(
            (up_s, stage.compute_s - up_s) for up_s, stage in zip(forward_s, stages, strict=True) if is_in_turn
        ),
        hops_s=tuple(costs.hops_s(k, end) for k, (_, end) in spans[:-1] if is_in_turn),
    )


def _ways(costs: Stages, depth: int, count: int) -> list[Way]:
    """Ways to cut that fit and that no other beats in everything, device by device and by where stages end."""
    ways: dict[int, list[Way]] = {0: [(Load(), ())]}
    for k in range(count):
        found: dict[int, list[Way]] = {}
        for first, before in ways.items():
            ends = [depth] if k == count - 1 else range(first + 1, depth - (count - k - 1) + 1)
            for end in ends:
                stage = costs.stage(k, first, end)
                if stage.fits:
                    more = [(load.beside(stage.load), (*cuts, end)) for load, cuts in before]
                    found.setdefault(end, []).extend(more)
        ways = {end: _unbeaten(each) for end, each in found.items()}
    return ways.get(depth, [])


def _unbeaten(ways: Iterable[Way]) -> list[Way]:
    """The ways left without each one that another equals or beats in everything: it never leads to a shorter step."""
    kept: list[Way] = []
    for way in sorted(ways):
        if not any(all(a <= b for a, b in zip(each[0], way[0], strict=True)) for each in kept):
            kept.append(way)
    return kept


def _too_large(layers: Sequence[LayerCost], devices: Sequence[Device], schedule: PipelineSchedule) -> str:
    need = sum(layer.memory_bytes for layer in layers)
    have = sum(max(0, device.memory_bytes - device.own_bytes) for device in devices if device.memory_bytes is not None)
    largest = max(range(len(layers)), key=lambda k: layers[k].memory_bytes)
    own = max(device.own_bytes for device in devices)
    cut_bytes = min((schedule.kept_bytes(0, layer.array_bytes) for layer in layers[:-1]), default=0)
    kept = f", and match: batch keeps {cut_bytes / 2**20:.0f} MiB below each cut at least" if schedule.batches else ""
    return (
        f"no cuts of the {len(layers)} layers fit the memory of the {len(devices)} devices: the layers need "
        f"{need / 2**20:.0f} MiB in all, layer {largest} alone {layers[largest].memory_bytes / 2**20:.0f} MiB; the "
        f"devices' caps leave {have / 2**20:.0f} MiB for layers, as each needs up to {own / 2**20:.0f} MiB "
        f"besides{kept}. "
        "Use more devices, a larger cap or a smaller batch."
    )
