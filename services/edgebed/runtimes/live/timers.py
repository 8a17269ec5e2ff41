"""Timers: a heap of (time, counter, event); the counter keeps events of one time in order."""

import ctypes
import heapq
import sys
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
PR_SET_TIMERSLACK = 29  # <linux/prctl.h>


def sharpen_sleep() -> None:
    """Let this thread's sleeps end within microseconds; Linux makes all others up to 50 us longer, to save power."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)


class Timers(Generic[T]):
    """Events that wait for their time, in seconds of the trial."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def __bool__(self) -> bool:
        """Whether any event waits."""
        return bool(self._heap)

    @property
    def next_s(self) -> float:
        """When the first event is due; infinite where none waits."""
        return self._heap[0][0] if self._heap else float("inf")

    def add(self, at_s: float, event: T) -> None:
        """Add an `event` that is due at `at_s`."""
        self._count += 1
        heapq.heappush(self._heap, (at_s, self._count, event))

    def due(self, now: Callable[[], float]) -> Iterator[T]:
        """Remove and yield events that are due by the clock `now`, which runs on meanwhile."""
        while self._heap and self._heap[0][0] <= now():
            yield heapq.heappop(self._heap)[2]

    def take(self) -> list[tuple[float, T]]:
        """Remove all events, and return them in order, with the time that each is due."""
        taken, self._heap = sorted(self._heap), []
        return [(at_s, event) for at_s, _, event in taken]
