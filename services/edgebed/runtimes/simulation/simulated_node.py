"""A node in virtual time: one incarnation of it, from its launch to its end.

launched ---> up ---> configured: it has a heart ---> ended: its events never happen
frozen ---> its events wait, and its work stands still ---> thawed
"""

from typing import Any

from edgebed.core.plan import TrainingNode, WorkerPlan
from edgebed.core.planned.fault import Point
from edgebed.roles.events import Await, Effect, Heart, Send
from edgebed.runtimes.simulation.agenda import Agenda


class PendingResult:
    """A job's result that will be there when its time comes."""

    __slots__ = ("ticket",)

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket


class Up:
    """The event that a node which was launched has come up."""


class SimulatedIncarnation:
    """One incarnation of a node; the next is another object, so nothing of this one can reach it."""

    def __init__(self, name: str, plan: TrainingNode | None = None) -> None:
        """`plan`: None for the controller."""
        self.name = name
        self.plan = plan
        self.heart: Heart | None = None
        self.ended = False
        self.is_frozen = False
        self.deferred: list[Any] = []
        """Events since the node was frozen, in order."""
        self.work: list[tuple[float, PendingResult]] = []
        """Results of the node's work that stands still, as (seconds left, result)."""
        self.awaited: frozenset[Point] = frozenset()
        """Worker: points on the way of what it sent last, and of the answer, at which a fault waits for it."""
        self.on_hold: dict[Point, tuple[float, Any]] = {}
        """Worker: messages that such a fault holds, as (when due, message) by point; due never: it has not passed."""
        self.told: set[Point] = set()
        """Worker: points that it has been told of, and has not continued from."""

    def note_awaited(self, effects: list[Effect]) -> None:
        """Note the points at which a worker that has sent something is to be told of it."""
        is_faulty = isinstance(self.plan, WorkerPlan) and self.plan.points
        if is_faulty and any(isinstance(effect, Send) and effect.to == "server" for effect in effects):
            self.awaited = frozenset(effect.point for effect in effects if isinstance(effect, Await))

    def holds(self, point: Point, message: Any) -> bool:
        """Whether a fault at that point holds this message."""
        return point in self.on_hold and self.on_hold[point][1] is message

    def freeze(self, agenda: "Agenda[SimulatedIncarnation]") -> None:
        """Let nothing happen to the node until it is thawed."""
        if not self.is_frozen:
            self.is_frozen = True
            work = agenda.take(self, lambda _, event: isinstance(event, PendingResult))
            self.work = [(left_s, due) for left_s, _, due in work]

    def thaw(self, agenda: "Agenda[SimulatedIncarnation]") -> None:
        """Let missed events happen now, in order; the node's work takes as much longer as it was frozen."""
        self.is_frozen = False
        for event in self.deferred:
            agenda.add(agenda.now, self, event)
        for left_s, due in self.work:
            agenda.add(agenda.now + left_s, self, due)
        self.deferred, self.work = [], []

    def unfinished(self, agenda: "Agenda[SimulatedIncarnation]") -> list[Any]:
        """Take a node's events off the agenda, and return them, as it has ended."""
        left = [event for _, _, event in agenda.take(self)]
        return [*self.deferred, *left, *(due for _, due in self.work)]
