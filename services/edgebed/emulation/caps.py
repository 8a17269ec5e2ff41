"""Caps in the kernel's terms: of CPU time a quota of each period, of memory whole pages. Pure."""

CPU_PERIOD_US = 100_000
CPU_QUOTA_US_MIN = 1_000  # the least that the kernel accepts
CPUS_TOLERANCE = 0.001  # the kernel holds a cap to the microsecond of quota
STARTING_CPUS = 1.0
PAGE_BYTES_MAX = 65_536  # the largest page of any kernel


def cpu_quota_us(cpus: float) -> int:
    """Return the CPU time in each period that makes a cap of `cpus` cores."""
    return max(CPU_QUOTA_US_MIN, round(cpus * CPU_PERIOD_US))


def starting_cpus(cpus: float | None) -> float | None:
    """Return the cap on a node that starts, whose own cap is `cpus` cores; None: no cap."""
    return None if cpus is None else max(STARTING_CPUS, cpus)


def is_cap_held(asked: float | None, held: float | None) -> bool:
    """Whether the kernel holds the CPU cap that was asked for, as far as it can; in cores, None: no cap."""
    if asked is None or held is None:
        return asked == held
    return abs(held - max(asked, CPU_QUOTA_US_MIN / CPU_PERIOD_US)) <= CPUS_TOLERANCE


def is_memory_held(asked: int | None, held: int | None) -> bool:
    """Whether the kernel holds the memory cap that was asked for, to the page; in bytes, None: no cap."""
    if asked is None or held is None:
        return asked == held
    return abs(held - asked) <= PAGE_BYTES_MAX
