"""What programs of the user's told and did, from a journal's records; empty where edgebed's own nodes train."""

import dataclasses
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.journal.folds import Counters, Fold, Timeline, on, total


class Told(NamedTuple):
    """A number that was told again and again, in the journal's order."""

    t: NDArray[np.float64]
    """Seconds since all programs were ready; negative before, shape (n,)."""
    value: NDArray[np.float64]
    """Shape (n,)."""


NOTHING = Told(np.zeros(0), np.zeros(0))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramSeries:
    """The programs of a trial."""

    measured: dict[str, dict[str, Told]] = dataclasses.field(default_factory=dict)
    """By measure and node."""
    sent: Told = NOTHING
    """Bytes that all nodes had sent over their links by then, as their witnesses told; none where nobody counts."""
    exits: tuple[tuple[float, records.Exited], ...] = ()
    """How programs ended, as (t, record)."""
    outputs: dict[str, records.Output] = dataclasses.field(default_factory=dict)
    """How much of what each node said is kept."""
    connections: dict[tuple[str, str], records.Connections] = dataclasses.field(default_factory=dict)
    """What each node sent to each other one, and had from it, over TCP, by its own account: (node, other) -> all lives
    together."""
    bypasses: dict[str, tuple[records.Bypass, ...]] = dataclasses.field(default_factory=dict)
    """Bytes of each node on interfaces that are none of its link's."""

    def last_exits(self) -> dict[str, records.Exited]:
        """How the last life of each program that has ended did so."""
        return {record.name: record for _, record in self.exits}


class Programs(Fold):
    """Collects what programs told and did."""

    def __init__(self, timeline: Timeline, counters: Counters) -> None:
        super().__init__(timeline, counters)
        self.timeline, self.counters = timeline, counters
        self.measured: dict[str, dict[str, tuple[array[float], array[float]]]] = {}
        self.exits: list[tuple[float, records.Exited]] = []
        self.outputs: dict[str, records.Output] = {}
        self.sent = array("d"), array("d")
        """Times, and bytes that all nodes had sent by then, in all lives."""
        self.of_life: dict[str, int] = {}
        """Bytes that each node has sent in its present life."""
        self.of_lives_before = 0

    @on(records.Usage)
    def _usage(self, t: float, node: str, record: records.Usage) -> None:
        if record.uplink_bytes is not None:
            self.of_life[node] = record.uplink_bytes
            times, totals = self.sent
            times.append(t)
            totals.append(self.of_lives_before + sum(self.of_life.values()))

    @on(records.Measured)
    def _measured(self, t: float, node: str, record: records.Measured) -> None:
        for name, value in record.measured.items():
            times, values = self.measured.setdefault(name, {}).setdefault(node, (array("d"), array("d")))
            times.append(t)
            values.append(value)

    @on(records.Exited)
    def _exited(self, t: float, _: str, record: records.Exited) -> None:
        self.exits.append((t, record))
        self.of_lives_before += self.of_life.pop(record.name, 0)

    @on(records.Output)
    def _output(self, _: float, node: str, record: records.Output) -> None:
        self.outputs[node] = record

    def series(self) -> ProgramSeries:
        """All that was collected so far."""
        began = self.timeline.since_began
        bypasses: dict[str, tuple[records.Bypass, ...]] = {}
        for (node, _), lives in self.counters.lives(records.Bypass).items():
            bypasses[node] = (*bypasses.get(node, ()), lives[-1])  # the namespace has counted them all

        def told(times: "array[float]", values: "array[float]") -> Told:
            return Told(np.array([began(t) for t in times]), np.array(values))

        return ProgramSeries(
            measured={
                name: {node: told(*columns) for node, columns in nodes.items()} for name, nodes in self.measured.items()
            },
            sent=told(*self.sent) if self.exits or self.measured else NOTHING,
            exits=tuple((began(t), record) for t, record in self.exits),
            outputs=dict(self.outputs),
            connections={
                (node, peer): _together(lives)
                for (node, peer), lives in self.counters.lives(records.Connections).items()
            },
            bypasses=bypasses,
        )


def _together(lives: Sequence[records.Connections]) -> records.Connections:
    """What all lives of a node told of another one; of round trips the smallest."""
    known = [life.round_trip_s for life in lives if life.round_trip_s is not None]
    return msgspec.structs.replace(total(lives), round_trip_s=min(known, default=None))
