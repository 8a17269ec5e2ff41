"""How busy the whole machine is while a trial trains: the controller's probe, for live runtimes.

A thread sleeps a short while and looks how late it wakes up: that is how late the emulation's own timers are; and how
many others run or wait for a core then. Every two seconds it adds what the kernel says of all cores (psutil). It costs
less than a hundredth of a core.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import psutil

from edgebed.core.records import HostLoad

SLEEP_S = 0.025
RECORD_S = 2.0
LAG_QUANTILE = 0.99
LOADAVG = Path("/proc/loadavg")
"""File of the kernel's means over minutes, and of what is no mean: how many threads can run now."""


class HostProbe:
    """A running probe; `close` ends it."""

    def __init__(self) -> None:
        self._found: deque[tuple[int, HostLoad]] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="host-load", daemon=True)
        self._thread.start()

    def take(self) -> Iterator[tuple[int, HostLoad]]:
        """Yield what was found since the last call: (the machine's monotonic clock in ns, load until then)."""
        while self._found:
            yield self._found.popleft()

    def close(self) -> None:
        """End the probe; what it has found meanwhile can still be taken."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._look()
            except OSError:  # the kernel's files cannot be opened at present: this look is missing
                self._ended.wait(RECORD_S)

    def _look(self) -> None:
        before = psutil.cpu_times()._asdict()
        lags_s: list[float] = []
        runnable: list[int] = []
        until_s = time.monotonic() + RECORD_S
        while not self._ended.is_set() and time.monotonic() < until_s:
            asked_s = time.monotonic() + SLEEP_S
            time.sleep(SLEEP_S)
            lags_s.append(time.monotonic() - asked_s)
            runnable.append(count_runnable())
        if lags_s:
            load = host_load(before, psutil.cpu_times()._asdict(), lags_s, runnable)
            self._found.append((time.monotonic_ns(), load))


def count_runnable() -> int:
    """Count the threads of the whole machine that run or wait for a core at this moment, without the one that asks."""
    running, _, _ = LOADAVG.read_text().split()[3].partition("/")
    return max(0, int(running) - 1)


def host_load(
    before: Mapping[str, float], after: Mapping[str, float], lags_s: Sequence[float], runnable: Sequence[int]
) -> HostLoad:
    """The record of a time between two readings of what all cores have spent, in seconds, as psutil names it.

    `lags_s` and `runnable` were found at every waking up between the two.
    """
    grown = {name: after[name] - before[name] for name in after}
    steal_s = grown.get("steal", 0.0)
    # the kernel counts guests' time in user and nice as well
    total_s = sum(grown.values()) - grown.get("guest", 0.0) - grown.get("guest_nice", 0.0)
    idle_s = grown["idle"] + grown.get("iowait", 0.0)
    cores = psutil.cpu_count() or 1
    return HostLoad(
        busy=_share(total_s - idle_s - steal_s, total_s),
        steal=_share(steal_s, total_s),
        load=round(float(np.mean(runnable)) / cores, 3),
        lag_s=round(float(np.quantile(lags_s, LAG_QUANTILE)), 6),
        cores=cores,
    )


def _share(part: float, whole: float) -> float:
    return round(min(1.0, max(0.0, part / whole)), 4) if whole > 0.0 else 0.0
