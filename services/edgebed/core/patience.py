"""How long to wait for what this machine is to do: the longer, the more threads want its cores."""

import math
import os
from pathlib import Path

LOAD_MAX = 10.0
"""How many times as long one waits at most: what takes longer has failed."""
BUSY = 1.5
"""Threads a core from which a machine is called busy."""
LOAD = Path("/proc/loadavg")


def host_load() -> float:
    """How many threads want each core of this machine, now or in the last minute, whichever is more; 0: not known.

    A container sees the whole machine's.
    """
    try:
        minute, _, _, now, *_ = LOAD.read_text().replace("/", " ").split()
        return max(float(minute), float(now)) / (os.cpu_count() or 1)
    except (OSError, ValueError):
        return 0.0


def patient_s(seconds: float, load: float) -> float:
    """How long to wait where so much is enough on an idle machine."""
    return seconds * min(max(1.0, load), LOAD_MAX)


def load_text(load: float) -> str:
    """The end of a sentence that says how busy a machine is; empty where it is not."""
    return f", and this machine is busy: {math.floor(load)} threads want each core" if load >= BUSY else ""
