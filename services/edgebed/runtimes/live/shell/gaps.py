"""Gaps of a node's own clock: it stood still, and neither computed, nor waited for a core, nor was held by its cap.

A thread sleeps a fifth of a second at a time. It wakes up late where the process was stopped from outside (a signal, a
freezer of cgroups, the machine under it paused) or its memory was swapped out. It also does where the host or its own
cap gave it no core, and where the node's main thread had Python for itself; so what the kernel counts as waiting
(schedstat) of both threads, as throttled, and as CPU time of the process is taken off. Kernels differ in whether a
thread that is throttled counts as waiting, too; where it does, a node notices little of a stop while its cap is used up
and the controller, which sees it from outside, notices it all the same. A stop that is shorter than a sleep is noticed
in part. It costs less than a thousandth of a core.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

TICK_S = 0.2
GAP_MIN_S = 0.05
"""Seconds below which what is left is no gap: the counters are read one after the other."""
MAIN_THREAD = Path("/proc/self/schedstat")
OWN_THREAD = Path("/proc/thread-self/schedstat")


class GapDetector:
    """Notices for how long this process stands still, from its start on."""

    def __init__(self, throttled_s: Callable[[], float | None] = lambda: None) -> None:
        """`throttled_s`: for how long the process's own CPU cap has held it back; None where none does."""
        self.stopped_s: float | None = None
        """Seconds for which the process stood still so far; None where the kernel does not count what it waited."""
        self._throttled_s = throttled_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gaps", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError):  # a kernel without schedstat
            before = self._explained_s()
            self.stopped_s = 0.0
            while not self._ended.is_set():
                since_s = time.monotonic()
                self._ended.wait(TICK_S)
                late_s, after = time.monotonic() - since_s - TICK_S, self._explained_s()
                self.stopped_s = round(self.stopped_s + gap_s(late_s, after - before), 6)
                before = after

    def _explained_s(self) -> float:
        """Seconds that the process waited, was held back, or computed, so far. Raises OSError."""
        waited_ns = sum(int(path.read_bytes().split()[1]) for path in (MAIN_THREAD, OWN_THREAD))
        return waited_ns * 1e-9 + (self._throttled_s() or 0.0) + time.process_time()


def gap_s(late_s: float, explained_s: float) -> float:
    """Seconds that a thread stood still that woke up late, after what explains a part of that."""
    still_s = late_s - explained_s
    return still_s if still_s >= GAP_MIN_S else 0.0
