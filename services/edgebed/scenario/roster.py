"""The nodes of a trial by class, before anything is planned: what faults can concern, and what is placed on hosts."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from edgebed.scenario.faults.settings.targets import Group, Role, Roster
from edgebed.scenario.hosts import UNCAPPED_CORES, HostSection, Promise, place


class CappedSection(Protocol):
    """The caps of a class of nodes."""

    @property
    def cpus(self) -> float | None:
        """CPU cap in cores."""

    @property
    def memory_cap(self) -> int | None:
        """Memory cap in bytes."""


def promises(serving: Mapping[Role, CappedSection], fleet: Mapping[str, "NamedNodes"]) -> list[Promise]:
    """Return what each node may use: one core where none are capped, and no memory where that is not."""
    sections = {role: ((role,), section) for role, section in serving.items()} | dict(fleet)
    return [
        Promise(node, name, UNCAPPED_CORES if section.cpus is None else section.cpus, section.memory_cap or 0)
        for name, (nodes, section) in sections.items()
        for node in nodes
    ]


def roster(
    serving: Mapping[Role, CappedSection],
    fleet: Mapping[str, "NamedNodes"],
    hosts: Mapping[str, HostSection],
    role: Role = "worker",
) -> Roster:
    """Return the nodes that faults can concern, and what faults have to know of them; `role` is that of the fleet's."""
    placement = place(hosts, promises(serving, fleet))
    groups: dict[str, Group] = {own: _group(own, (own,), section) for own, section in serving.items()}
    groups |= {name: _group(role, nodes, section) for name, (nodes, section) in fleet.items()}
    return {
        name: group._replace(hosts=tuple(placement.get(node, "") for node in group.nodes))
        for name, group in groups.items()
    }


NamedNodes = tuple[Sequence[str], CappedSection]
"""The nodes of a class, and its section."""


def _group(role: Role, nodes: Sequence[str], section: CappedSection) -> Group:
    """Return a group; the evaluator has no link."""
    latency_s, jitter_s = getattr(section, "latency", 0.0), getattr(section, "jitter", 0.0)
    return Group(role, tuple(nodes), section.memory_cap is not None, latency_s, jitter_s)
