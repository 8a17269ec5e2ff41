"""What is seen of a node from outside: its cgroup with those above it, and the far end of its link."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from edgebed.core.quantities import bytes_text, ms_text
from edgebed.core.recorded.measured import first_of_each
from edgebed.emulation.caps import CPU_PERIOD_US, is_cap_held, is_memory_held
from edgebed.emulation.resources import CgroupUsage, account

LASTS_S = 1.0
"""Seconds for which something must differ to count: a fault changes a cap a moment before or after that is known."""


class Quota(NamedTuple):
    """A CPU quota of a cgroup above a node's own: all below share it."""

    cgroup: str
    """Its folder."""
    cpus: float
    """Quota in cores."""
    throttled_periods: int
    """Periods until now in which the quota was used up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What was read of a node at some moment between two times; None: it cannot be read."""

    life: str
    """What the counters are of: of another life they begin anew."""
    since_s: float
    """Seconds of this machine's monotonic clock."""
    until_s: float
    cpu_s: float | None = None
    uplink_bytes: int | None = None
    downlink_bytes: int | None = None
    is_whole: bool = False
    """Whether what follows was read as well; else it was only the counters before."""
    cpus_held: float | None = None
    """CPU cap in cores; None: none."""
    above: Quota | None = None
    """The lowest quota above; None: there is none."""
    memory_bytes: int | None = None
    """Highest memory use so far."""
    memory_held_bytes: int | None = None
    mtu: int | None = None
    is_stopped: bool = False
    """Whether a signal had stopped its process, or its cgroup was frozen."""
    differences: tuple[str, ...] = ()
    """What is not as edgebed has set it, each as `cause: what`."""
    unread: tuple[str, ...] = ()
    """What cannot be read and why, each as `what: why`."""


@dataclass
class Lasting:
    """Differences that several looks in a row have found."""

    since_s: dict[str, float] = field(default_factory=dict)
    """Causes of the differences of the last look, and since when each has been found, whatever its figures."""
    differed: int = 0
    """Number of looks that found one that had lasted."""
    differences: dict[str, str] = field(default_factory=dict)
    """The first of each cause that lasted."""

    def add(self, found: Iterable[str], now: float) -> None:
        """Take in what a look at `now` found, in seconds of any one clock, each as `cause: what`."""
        texts = first_of_each(found)
        self.since_s = {cause: self.since_s.get(cause, now) for cause in texts}
        lasting = [cause for cause, since_s in self.since_s.items() if now >= since_s + LASTS_S]
        self.differed += bool(lasting)
        for cause in lasting:
            self.differences.setdefault(cause, texts[cause])


class Sight(Protocol):
    """Where nodes can be seen from outside."""

    def look(self, nodes: Sequence[str], *, whole: bool) -> Iterator[tuple[str, Look]]:
        """Yield a look at each of the nodes that is there; without `whole`, at its counters alone. It may block."""
        ...

    def close(self) -> None:
        """Let go of what was opened for it."""
        ...


def differences(
    usage: CgroupUsage, cpus: float | None, memory_bytes: int | None, limits: Iterable[str]
) -> Iterator[str]:
    """Yield what is not as it was set: caps of CPU in cores and of memory, and what `limits` the far end of a link."""
    yield from cpu_differences(usage, cpus)
    held = usage.memory_limit_bytes
    if usage.working_set_bytes is not None and not is_memory_held(memory_bytes, held):
        yield f"memory: its cgroup held {_memory(held)}, where {_memory(memory_bytes)} had been set"
    for limit in limits:
        yield f"link: {limit}, at the far end of its link"


def cpu_differences(usage: CgroupUsage, cpus: float | None) -> Iterator[str]:
    """Yield what of a CPU cap, in cores, is not as it was set."""
    if usage.throttled_s is not None and not is_cap_held(cpus, usage.cpu_limit_cores):
        yield f"CPU cap: its cgroup held {_cores(usage.cpu_limit_cores)}, where {_cores(cpus)} had been set"
    if usage.cpu_burst_us:
        yield f"CPU cap: its cgroup could save {_ms(usage.cpu_burst_us)} of CPU time for bursts"
    if usage.cpu_period_us not in (None, CPU_PERIOD_US):
        yield f"CPU cap: its cgroup had periods of {_ms(usage.cpu_period_us)}, where {_ms(CPU_PERIOD_US)} had been set"


def lowest_above(folder: Path) -> Quota | None:
    """The lowest CPU quota of the cgroups above one, as far as they can be seen; None: none has any.

    In a container, or in a namespace of cgroups, the last one is the mount, which has a quota of its own.
    """
    found = []
    for parent in folder.parents:
        if not (parent / "cgroup.procs").exists():
            break
        usage = account({"" if (parent / "cgroup.controllers").exists() else "cpu": parent})
        if usage.cpu_limit_cores is not None:
            found.append((usage.cpu_limit_cores, parent, usage.throttled_periods or 0))
    if not found:
        return None
    cpus, lowest, throttled_periods = min(found)
    return Quota(str(lowest), cpus, throttled_periods)


def cpu_folder(folders: Mapping[str, Path]) -> Path | None:
    """The folder that holds a cgroup's CPU cap."""
    return folders.get("", folders.get("cpu"))


def counters_alone(folders: Mapping[str, Path]) -> dict[str, Path]:
    """The folders that count CPU time."""
    return {controller: folder for controller, folder in folders.items() if controller in ("", "cpuacct")}


def periods_s(periods: int) -> float:
    """The time of so many periods of a CPU cap, in seconds."""
    return periods * CPU_PERIOD_US * 1e-6


def _ms(time_us: int | None) -> str:
    return ms_text(1e-6 * (time_us or 0))


def _cores(cpus: float | None) -> str:
    return "no cap" if cpus is None else f"{cpus:g} cores"


def _memory(size_bytes: int | None) -> str:
    return "no cap" if size_bytes is None else bytes_text(size_bytes)
