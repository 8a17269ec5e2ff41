"""What is going to happen in virtual time, in order: by time, and what is due at the same time as it was added."""

import heapq
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Owner = TypeVar("Owner")


class Agenda(Generic[Owner]):
    """A heap whose clock is the time of what happened last. An owner is whom something happens to."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.heap: list[tuple[float, int, Owner, Any]] = []
        """(when, the how manyth that was added, to whom, what)"""
        self.count = 0

    def add(self, at_s: float, owner: Owner, event: Any) -> None:
        """`event` happens to `owner` at that time, or now if that is past."""
        self.count += 1
        heapq.heappush(self.heap, (max(at_s, self.now), self.count, owner, event))

    def next(self) -> tuple[Owner, Any] | None:
        """What happens next, and the clock is there; None if nothing ever will."""
        if not self.heap:
            return None
        self.now, _, owner, event = heapq.heappop(self.heap)
        return owner, event

    def take(self, concerns: Callable[[Owner, Any], bool]) -> list[tuple[float, Owner, Any]]:
        """Take out what a fault concerns: (in how many seconds it was due, to whom, what), in order."""
        taken = sorted(entry for entry in self.heap if concerns(entry[2], entry[3]))
        if taken:
            numbers = {entry[1] for entry in taken}
            self.heap = [entry for entry in self.heap if entry[1] not in numbers]
            heapq.heapify(self.heap)
        return [(at_s - self.now, owner, event) for at_s, _, owner, event in taken]
