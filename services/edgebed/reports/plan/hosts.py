"""The hosts of a plan, and what their nodes are promised of what they have."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgebed.core.plan import Plan
from edgebed.core.planned.hosts import HostPlan
from edgebed.core.quantities import UNMEASURED, bytes_text
from edgebed.reports.writing.page import Grid


@dataclass(frozen=True, kw_only=True)
class HostRow:
    """A host, and what its nodes are promised of what it has."""

    host: str
    engine: str
    nodes: int
    cpus: float
    """Sum of the CPU caps, in cores; likewise of memory."""
    memory_bytes: int
    cores: int | None
    """Cores that it has; None: its engine has not been asked. Likewise of memory."""
    has_memory_bytes: int | None


def host_row(host: HostPlan, plan: Plan) -> HostRow:
    """A host with what the plan's nodes on it are promised."""
    nodes = [node for node in plan.nodes if node.host == host.name]
    return HostRow(
        host=host.name,
        engine=host.engine,
        nodes=len(nodes),
        cpus=sum(node.cpus or 0.0 for node in nodes),
        memory_bytes=sum(node.memory_bytes or 0 for node in nodes),
        cores=host.cores,
        has_memory_bytes=host.memory_bytes,
    )


def host_grid(rows: Sequence[HostRow]) -> Grid:
    """A line for each host."""
    cells = [
        (
            row.host,
            row.engine,
            f"{row.nodes}",
            f"{row.cpus:g}",
            UNMEASURED if row.cores is None else f"{row.cores}",
            bytes_text(row.memory_bytes) if row.memory_bytes else UNMEASURED,
            UNMEASURED if row.has_memory_bytes is None else bytes_text(row.has_memory_bytes),
        )
        for row in rows
    ]
    return Grid(("host", "engine", "nodes", "cpus", "of cores", "memory", "of memory"), cells)
