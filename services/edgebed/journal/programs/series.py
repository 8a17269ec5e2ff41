"""What programs of the user's told and did, from a journal's records; empty where edgebed's own nodes train."""

import dataclasses
from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.journal.folds import Fold, Timeline, on


class Told(NamedTuple):
    """A measure as one node's output told it, in the journal's order."""

    t: NDArray[np.float64]
    """Seconds since all programs were ready; negative before, shape (n,)."""
    value: NDArray[np.float64]
    """Shape (n,)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramSeries:
    """The programs of a trial."""

    measured: dict[str, dict[str, Told]] = dataclasses.field(default_factory=dict)
    """By measure and node."""
    exits: tuple[tuple[float, records.Exited], ...] = ()
    """How programs ended, as (t, record)."""
    outputs: dict[str, records.Output] = dataclasses.field(default_factory=dict)
    """How much of what each node said is kept."""
    connections: dict[tuple[str, str], records.Connections] = dataclasses.field(default_factory=dict)
    """What each node sent to each other one, and had from it, over TCP, by its own account: (node, other) -> the last
    report."""
    bypasses: dict[str, tuple[records.Bypass, ...]] = dataclasses.field(default_factory=dict)
    """Bytes of each node on interfaces that are none of its link's."""

    def last_exits(self) -> dict[str, records.Exited]:
        """How the last life of each program that has ended did so."""
        return {record.name: record for _, record in self.exits}


class Programs(Fold):
    """Collects what programs told and did."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.timeline = timeline
        self.measured: dict[str, dict[str, tuple[array[float], array[float]]]] = {}
        self.exits: list[tuple[float, records.Exited]] = []
        self.outputs: dict[str, records.Output] = {}
        self.connections: dict[tuple[str, str], records.Connections] = {}
        self.bypasses: dict[tuple[str, str], records.Bypass] = {}

    @on(records.Measured)
    def _measured(self, t: float, node: str, record: records.Measured) -> None:
        for name, value in record.measured.items():
            times, values = self.measured.setdefault(name, {}).setdefault(node, (array("d"), array("d")))
            times.append(t)
            values.append(value)

    @on(records.Exited)
    def _exited(self, t: float, _: str, record: records.Exited) -> None:
        self.exits.append((t, record))

    @on(records.Output)
    def _output(self, _: float, node: str, record: records.Output) -> None:
        self.outputs[node] = record

    @on(records.Connections)
    def _connections(self, _: float, node: str, record: records.Connections) -> None:
        self.connections[node, record.peer] = record

    @on(records.Bypass)
    def _bypass(self, _: float, node: str, record: records.Bypass) -> None:
        self.bypasses[node, record.interface] = record

    def series(self) -> ProgramSeries:
        """All that was collected so far."""
        began = self.timeline.since_began
        bypasses: dict[str, tuple[records.Bypass, ...]] = {}
        for (node, _), record in self.bypasses.items():
            bypasses[node] = (*bypasses.get(node, ()), record)
        measured: dict[str, dict[str, Told]] = {}
        for name, nodes in self.measured.items():
            measured[name] = {
                node: Told(np.array([began(t) for t in times]), np.array(values))
                for node, (times, values) in nodes.items()
            }
        return ProgramSeries(
            measured=measured,
            exits=tuple((began(t), record) for t, record in self.exits),
            outputs=dict(self.outputs),
            connections=dict(self.connections),
            bypasses=bypasses,
        )
