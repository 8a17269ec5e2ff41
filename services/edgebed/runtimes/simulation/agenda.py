"""Events to come in virtual time, in order: by time, and those of one time in the order of their addition.

A fault takes out the events of one incarnation or one connection. They are found by an index, so that a fault costs
what it takes out, however many others are to come; what was taken out leaves the heap when its time comes, or when it
is half of the heap.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)


class Agenda(Generic[Owner]):
    """A heap of events whose clock is the time of the last one. owner: the incarnation that an event belongs to."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.heap: list[tuple[float, int, Owner, Any]] = []
        """Events as (time, number, owner, event); the number counts additions."""
        self.of: dict[Hashable, dict[int, tuple[float, int, Owner, Any]]] = {}
        """Events to come by number, for each owner, and for each connection that an event concerns."""
        self.count = 0
        self.taken = 0
        """Number of events in the heap that have been taken out."""

    def add(self, at_s: float, owner: Owner, event: Any) -> None:
        """Add an event for `owner` at a time, or now if that is past. It may have a connection as its attribute."""
        self.count += 1
        entry = max(at_s, self.now), self.count, owner, event
        heapq.heappush(self.heap, entry)
        for subject in _subjects(owner, event):
            self.of.setdefault(subject, {})[self.count] = entry

    def next(self) -> tuple[Owner, Any] | None:
        """Remove and return the next event, and set the clock to its time; None if there is none."""
        while self.heap:
            at_s, number, owner, event = heapq.heappop(self.heap)
            if self._is_to_happen(number, owner):
                self._strike(number, owner, event)
                self.now = at_s
                return owner, event
            self.taken -= 1
        return None

    def take(
        self, subject: Hashable, concerns: Callable[[Owner, Any], bool] = lambda _owner, _event: True
    ) -> list[tuple[float, Owner, Any]]:
        """Take out the events of an owner or a connection for which `concerns` is true.

        Returns (seconds until it was due, owner, event), in order.
        """
        taken = sorted(entry for entry in self.of.get(subject, {}).values() if concerns(entry[2], entry[3]))
        for _, number, owner, event in taken:
            self._strike(number, owner, event)
        self.taken += len(taken)
        if 2 * self.taken > len(self.heap):
            self.heap = [entry for entry in self.heap if self._is_to_happen(entry[1], entry[2])]
            heapq.heapify(self.heap)
            self.taken = 0
        return [(at_s - self.now, owner, event) for at_s, _, owner, event in taken]

    def _is_to_happen(self, number: int, owner: Owner) -> bool:
        return number in self.of.get(owner, ())

    def _strike(self, number: int, owner: Owner, event: Any) -> None:
        for subject in _subjects(owner, event):
            entries = self.of[subject]
            del entries[number]
            if not entries:
                del self.of[subject]


def _subjects(owner: Hashable, event: Any) -> Iterator[Hashable]:
    """The keys by which an event is found."""
    yield owner
    if (connection := getattr(event, "connection", None)) is not None:
        yield connection
