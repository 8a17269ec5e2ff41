"""A node in virtual time: one life of it, from its launch to its end.

launched ---> configured: it has a heart ---> ended: whatever was to happen to it never does
frozen ---> what happens to it waits, and its work stands still ---> thawed
"""

from typing import Any

from edgebed.roles.events import Heart
from edgebed.runtimes.agenda import Agenda
from edgebed.scenario.plan import NodePlan, Point


class Due:
    """A result that will be there when its time comes."""

    __slots__ = ("ticket",)

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket


class Life:
    """One life of a node; the next is another object, so nothing of this one can reach it."""

    def __init__(self, name: str, plan: NodePlan | None = None) -> None:
        """The controller has no plan of a node."""
        self.name = name
        self.plan = plan
        self.heart: Heart | None = None
        self.ended = False
        self.is_frozen = False
        self.deferred: list[Any] = []
        """What has happened to it since it was frozen, in order."""
        self.work: list[tuple[float, Due]] = []
        """(seconds that are left, the result) of its work that stands still."""
        self.awaited: frozenset[Point] = frozenset()
        """Worker: where on the way of what it sent last, and of the answer, a fault waits for it."""
        self.on_hold: dict[Point, tuple[float, Any]] = {}
        """Worker: (when due, message) of those that such a fault holds up."""
        self.told: set[Point] = set()
        """Worker: points that it has been told of, and has not gone on from."""

    def freeze(self, agenda: "Agenda[Life]") -> None:
        """Nothing happens to it until it is thawed."""
        if not self.is_frozen:
            self.is_frozen = True
            work = agenda.take(self, lambda _, event: isinstance(event, Due))
            self.work = [(left_s, due) for left_s, _, due in work]

    def thaw(self, agenda: "Agenda[Life]") -> None:
        """What it missed happens to it now, in order; its work takes as much longer as it was frozen."""
        self.is_frozen = False
        for event in self.deferred:
            agenda.add(agenda.now, self, event)
        for left_s, due in self.work:
            agenda.add(agenda.now + left_s, self, due)
        self.deferred, self.work = [], []

    def unfinished(self, agenda: "Agenda[Life]") -> list[Any]:
        """What was to happen to it, taken off the agenda, as it has ended."""
        left = [event for _, _, event in agenda.take(self)]
        return [*self.deferred, *left, *(due for _, due in self.work)]
