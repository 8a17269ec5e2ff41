"""What programs of the user's told and did, from a journal's records; empty where edgebed's own nodes train."""

import dataclasses
import math
from array import array
from collections import Counter
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


SETTLES_S = 0.5
"""Seconds after a cut in which what came before it may still be acknowledged."""
NO_CONNECTIONS = records.Connections(peer="", count=0, acked_bytes=0, received_bytes=0)
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
    passed: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    """Bytes that reached the second node from the first while the way between the two was cut, if any did."""
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
        self.apart: dict[frozenset[str], list[tuple[float, str, records.Connections]]] = {}
        """What was told of connections between two since the way between them was cut, as (t, node, record)."""
        self.passed: Counter[tuple[str, str]] = Counter()

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

    @on(records.Connections)
    def _connections(self, t: float, node: str, record: records.Connections) -> None:
        if told := self.apart.get(frozenset((node, record.peer))):
            told.append((t, node, record))

    @on(records.Fault)
    def _fault(self, t: float, node: str, record: records.Fault) -> None:
        between = frozenset((record.target, record.peer))
        if record.peer and record.action != "link" and not (record.problem or record.no_op):
            self.passed += self._grown(between, record.asked_s)
            self.apart.pop(between, None)
            if record.action == "cut":
                self.apart[between] = [(t + SETTLES_S, "", NO_CONNECTIONS)]

    def _grown(self, between: frozenset[str], until_s: float = math.inf) -> Counter[tuple[str, str]]:
        """Return the bytes that reached each of two from the first time that was told in a cut to the last."""
        grown: Counter[tuple[str, str]] = Counter()
        (since_s, *_), *told = self.apart.get(between, [(0.0, "", NO_CONNECTIONS)])
        for node in between:
            sizes = [each.acked_bytes for t, name, each in told if name == node and since_s <= t <= until_s]
            (peer,) = between - {node}
            grown[node, peer] = sizes[-1] - sizes[0] if sizes else 0
        return grown

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
            passed=sum((self._grown(between) for between in self.apart), self.passed),
            bypasses=bypasses,
        )


def _together(lives: Sequence[records.Connections]) -> records.Connections:
    """What all lives of a node told of another one; of round trips the smallest."""
    known = [life.round_trip_s for life in lives if life.round_trip_s is not None]
    return msgspec.structs.replace(total(lives), round_trip_s=min(known, default=None))
