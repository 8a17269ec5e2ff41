"""What a node's own CPU cap, and its own computing, took of the time in which a message was on its way.

The node looks at both whenever a message leaves or comes, and once a second. What lies between two looks may be of any
moment between them, so what is told of a stretch of time is the most that it can have been.
"""

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from edgebed.emulation.resources import throttled_s

LOOKS_MAX = 8192
"""Looks that are remembered: some seconds of a server that a hundred workers keep busy."""


class Look(NamedTuple):
    """Cumulative seconds, read between two times of the trial: a node may be held back just while it looks."""

    since_s: float
    until_s: float
    throttled_s: float
    computed_s: float


_since_s, _until_s = itemgetter(0), itemgetter(1)


class HeldBack:
    """A node's looks at its own cap and its own computing."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        cpus: Callable[[], float | None],
        now: Callable[[], float],
        computed_s: Callable[[], float] = time.process_time,
    ) -> None:
        """`folders` of the node's own cgroup, if it has one; `cpus` is its cap in cores; None: there is none.

        `now`: seconds of the trial. `computed_s`: the CPU time that the node has used so far.
        """
        self.folders = folders
        self.cpus = cpus
        self.now = now
        self.computed_s = computed_s
        self.looks: list[Look] = []

    def look(self, now: float, since_s: float | None = None) -> None:
        """Look at both from `now` on; and, as far as can be told then, at `since_s`: no more than passed was added."""
        before = self.looks[-1] if self.looks else Look(-math.inf, -math.inf, 0.0, 0.0)
        throttled, computed = before.throttled_s, self.computed_s()
        if self.folders and self.cpus() is not None:
            throttled = throttled_s(self.folders) or throttled
        until_s = max(now, self.now())
        if since_s is not None and before.until_s < since_s < now:
            least = (
                max(old, new - (until_s - since_s)) for old, new in zip(before[2:], (throttled, computed), strict=True)
            )
            self.looks.append(Look(since_s, since_s, *least))
        self.looks.append(Look(now, until_s, throttled, computed))
        if len(self.looks) > LOOKS_MAX:
            del self.looks[: LOOKS_MAX // 2]

    def within(self, since_s: float, until_s: float) -> tuple[float, float]:
        """Seconds that the cap, and that computing, took at most between two times; together no more than passed."""
        if until_s <= since_s or not self.looks:
            return 0.0, 0.0
        before = self.looks[max(0, bisect_right(self.looks, since_s, key=_until_s) - 1)]
        after = self.looks[min(len(self.looks) - 1, bisect_left(self.looks, until_s, key=_since_s))]
        throttled = min(until_s - since_s, max(0.0, after.throttled_s - before.throttled_s))
        return throttled, min(until_s - since_s - throttled, max(0.0, after.computed_s - before.computed_s))
