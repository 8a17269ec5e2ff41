"""What is going to happen in virtual time, in order: by time, and what is due at the same time as it was added.

A fault takes out what concerns one life or one connection. Both are found by an index, so that a fault costs what it
takes out, however much else is to come; what was taken out leaves the heap when its time comes, or when it is half of
the heap.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)


class Agenda(Generic[Owner]):
    """A heap whose clock is the time of what happened last. An owner is whom something happens to."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.heap: list[tuple[float, int, Owner, Any]] = []
        """(when, the how manyth that was added, to whom, what)"""
        self.of: dict[Hashable, dict[int, tuple[float, int, Owner, Any]]] = {}
        """By owner, and by the connection that an event is of: what is still to happen, by its number."""
        self.count = 0
        self.taken = 0
        """How many of the heap have been taken out."""

    def add(self, at_s: float, owner: Owner, event: Any) -> None:
        """`event` happens to `owner` at that time, or now if that is past. It may be of a connection: its attribute."""
        self.count += 1
        entry = max(at_s, self.now), self.count, owner, event
        heapq.heappush(self.heap, entry)
        for subject in _subjects(owner, event):
            self.of.setdefault(subject, {})[self.count] = entry

    def next(self) -> tuple[Owner, Any] | None:
        """What happens next, and the clock is there; None if nothing ever will."""
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
        """Take out what `concerns` wants of an owner or a connection.

        Returns (in how many seconds it was due, to whom, what), in order.
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
    """Under what an event is found."""
    yield owner
    if (connection := getattr(event, "connection", None)) is not None:
        yield connection
