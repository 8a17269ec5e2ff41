"""A CPU cap as the kernel holds it: a share of each period of 100 ms, at full speed until that is used up.

So work that fits into the share is not slowed down at all, and what is always busy gets its cap on average (CFS
bandwidth control: Turner, Rao and Rao, "CPU bandwidth control for CFS", Linux Symposium 2010).
"""

import math

from edgebed.emulation.caps import CPU_PERIOD_US

PERIOD_S = CPU_PERIOD_US / 1e6
ROUNDING_S = 1e-9


class CpuQuota:
    """The quota of one device with one core, and what is left of it."""

    def __init__(self, cpus: float | None, phase_s: float = 0.0) -> None:
        """`cpus`: the cap in cores, None for none; it may be changed. `phase_s`: when a period begins, in seconds."""
        self.cpus = cpus
        self.phase_s = phase_s
        self.period = -math.inf
        """Number of the last period in which something was computed."""
        self.used_s = 0.0
        """CPU time used in that period."""

    def done_s(self, now_s: float, work_s: float) -> float:
        """Return when work is done that begins at `now_s` and needs `work_s` seconds of CPU time."""
        if self.cpus is None or self.cpus >= 1.0:
            return now_s + work_s
        quota_s = self.cpus * PERIOD_S
        period = math.floor((now_s - self.phase_s) / PERIOD_S + ROUNDING_S)
        if period != self.period:
            self.period, self.used_s = period, 0.0
        left_s = max(0.0, min(quota_s - self.used_s, self._begin_s(period + 1) - now_s))
        if work_s <= left_s + ROUNDING_S:
            self.used_s += work_s
            return now_s + work_s
        work_s -= left_s
        full = math.ceil(work_s / quota_s - ROUNDING_S) - 1  # periods whose quota is used up
        self.period, self.used_s = period + 1 + full, work_s - full * quota_s
        return self._begin_s(self.period) + self.used_s

    def _begin_s(self, period: int) -> float:
        return self.phase_s + period * PERIOD_S
