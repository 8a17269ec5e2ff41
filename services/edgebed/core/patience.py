"""How long to wait for what this machine is to do: the longer, the more threads want its cores."""

import math
import os
from pathlib import Path

LOAD_MAX = 10.0
"""How many times as long one waits at most: what takes longer has failed."""
BUSY = 1.5
"""Threads a core from which a machine is called busy."""
LOADAVG = Path("/proc/loadavg")


def load_average() -> tuple[float, int]:
    """Return the threads of the whole machine that run or wait for a core: in the last minute's mean, and just now.

    The one that asks is among them; in a container they are the whole machine's, too. OSError where the kernel does not
    say.
    """
    minute, _, _, now, *_ = LOADAVG.read_text().replace("/", " ").split()
    return float(minute), int(now)


def threads_a_core() -> float:
    """How many threads want each core of this machine, now or in the last minute, whichever is more; 0: not known."""
    try:
        return max(load_average()) / (os.cpu_count() or 1)
    except (OSError, ValueError):
        return 0.0


def patient_s(seconds: float, load: float) -> float:
    """How long to wait where so much is enough on an idle machine."""
    return seconds * min(max(1.0, load), LOAD_MAX)


def load_text(load: float) -> str:
    """The end of a sentence that says how busy a machine is; empty where it is not."""
    return f", and this machine is busy: {math.floor(load)} threads want each core" if load >= BUSY else ""


def patience(seconds: float) -> tuple[float, str]:
    """How long to wait here for what takes so much on an idle machine, and the words that say it: `for 60 s`."""
    load = threads_a_core()
    waits_s = patient_s(seconds, load)
    return waits_s, f"for {waits_s:.3g} s{load_text(load)}"
