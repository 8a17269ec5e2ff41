"""What a node uses, added up window by window: by itself, or by a witness beside it.

Waiting for a core is the kernel's count for each thread (schedstat). That contains the time in which the node's own CPU
cap held it back, and of what is left, not all is a loss: a capped node that used up its cap had all it was promised,
and a paced node would have rested for as long anyway. What remains, at most the share of what was promised that the
node did not have, is `Usage.starved_s`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgebed.core.planned.fault import Injection
from edgebed.core.recorded.measured import Usage, told_after_s
from edgebed.emulation.caps import CPU_PERIOD_US
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.netlink import LinkReader, Queue
from edgebed.emulation.outside.looks import Lasting, cpu_differences
from edgebed.emulation.resources import CgroupUsage, account
from edgebed.emulation.witness.busiest import WINDOW_S, Busiest

EARLY_S = 0.5
"""Seconds before the time at which a node is to tell again, from which on it does: its looks are a second apart."""
CAPPED_SHARE = 0.9
"""Share of a window's periods in which a CPU cap was used up: then the node would have computed on and on."""


class Reading(NamedTuple):
    """Cumulative counters at one time."""

    t: float
    cpu_s: float
    waited_s: float | None
    """Seconds that all threads waited for a core, for whatever reason."""
    absorbed_s: float
    """Share of `waited_s`, in seconds, within the stretch that paces the node."""
    throttled_s: float | None
    throttled_periods: int


class UsageCount(ABC):
    """Counts a node's `Usage`; who looks says what it can see."""

    def __init__(
        self,
        node: str,
        effective: EffectiveLink,
        folders: Mapping[str, Path],
        waiting: "Waiting",
        link: "LinkUsage | None",
        cores: float | None = None,
    ) -> None:
        """`folders` are those of the node's own cgroup; none: it has none. `cores`: see `add_window`."""
        self.name = node
        self.effective = effective
        self.folders = folders
        self.waiting = waiting
        self.link = link
        self.cores = cores
        self.lasting = Lasting()
        """How the CPU cap of the node's own cgroup differed from what was asked for."""
        self.before: Reading | None = None
        self.cpus_before: float | None = None
        """The cap that was asked for at the last look, in cores."""
        self.usage = Usage(time_s=0.0, cpu_s=0.0)
        self.next_s = 0.0

    @property
    @abstractmethod
    def cpus(self) -> float | None:
        """The cap that is asked for now, in cores."""

    @property
    @abstractmethod
    def is_last(self) -> bool:
        """Whether there are no more looks after this one."""

    def begin(self) -> None:  # noqa: B027 # most have nothing to do
        """Note what was before the first look."""

    @abstractmethod
    def look(self, now: float, cgroup: CgroupUsage) -> Reading:
        """Read the counters at `now`; of the cgroup's those of its CPU are given."""

    @abstractmethod
    def more(self, now: float) -> dict[str, Any]:
        """What else of a `Usage` is known."""

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note a fault of the node's link, so long after training began."""
        if injection.node == self.name:
            self.effective.inject(time_s, injection)

    def read(self, now: float, began_s: float | None) -> Iterator[Usage]:
        """The usage, whenever a tenth of the time has been added, or ten seconds, and at the end."""
        if began_s is None:
            return
        if self.link:
            self.link.look(began_s)
        cgroup = account({name: folder for name, folder in self.folders.items() if name != "memory"})
        if self.folders:
            self.lasting.add(cpu_differences(cgroup, self.cpus), now)
        reading = self.look(now, cgroup)
        if self.before is None:
            self.next_s = now + told_after_s(0.0) - EARLY_S
            self.begin()
        else:
            caps = (self.cpus_before, self.cpus)
            cpus = None if None in caps else max(cap for cap in caps if cap is not None)
            self.usage = add_window(
                self.usage, cpus, self.before, reading, is_steady=caps[0] == caps[1], cores=self.cores
            )
        self.before, self.cpus_before = reading, self.cpus
        if self.usage.time_s > 0.0 and (now >= self.next_s or self.is_last):
            self.next_s = now + told_after_s(self.usage.time_s) - EARLY_S
            yield self._record(now)

    def _record(self, now: float) -> Usage:
        cgroup = account(self.folders)
        memory_bytes = cgroup.peak_bytes or cgroup.working_set_bytes
        found: dict[str, Any] = {
            "cpus_held": cgroup.cpu_limit_cores,
            "memory_bytes": max(memory_bytes or 0, self.usage.memory_bytes or 0) or None,
            "memory_held_bytes": cgroup.memory_limit_bytes,
            "differed": self.lasting.differed,
            "differences": tuple(self.lasting.differences.values()),
        }
        grown = self.link.grown() if self.link else {}
        self.usage = msgspec.structs.replace(self.usage, **found | grown | self.more(now))
        return self.usage


class Waiting:
    """Counts the seconds that threads waited for a core, those that have ended as far as they were seen."""

    def __init__(self, threads: Callable[[], Iterable[str]]) -> None:
        """`threads` gives the folders below /proc of those that there are."""
        self._threads = threads
        self._ns: dict[str, int] = {}
        self._ended_ns: int | None = None
        """Nanoseconds of threads that have ended; None: the kernel has not counted yet."""

    def read(self) -> float | None:
        """The seconds so far; None where the kernel does not count."""
        found = {}
        for thread in self._threads():
            try:
                with open(f"{thread}/schedstat", "rb", buffering=0) as file:  # noqa: PTH123 # hundreds a second
                    found[thread] = int(file.read(80).split()[1])
            except (OSError, IndexError):  # the thread has just ended, or the kernel does not count
                continue
            self._ended_ns = self._ended_ns or 0
        if self._ended_ns is None:
            return None
        self._ended_ns += sum(ns for thread, ns in self._ns.items() if found.get(thread, -1) < ns)
        self._ns = found
        return (self._ended_ns + sum(found.values())) * 1e-9


class LinkReading(NamedTuple):
    """An interface's counters and its queues, as they were at some moment between two times of the trial."""

    since_s: float
    until_s: float
    received: int
    sent: int
    up: Queue | None
    down: Queue | None

    @property
    def passed(self) -> tuple[int, int]:
        """Bytes sent, and bytes received that passed the queue before the node, where there is one."""
        return self.sent, self.received if self.down is None else self.down.bytes

    def counters(self) -> dict[str, int]:
        """Counters as `Usage` names them; those of queues only where they limit."""
        found = {"uplink_bytes": self.sent, "downlink_bytes": self.received}
        for name, queue in (("uplink", self.up), ("downlink", self.down)):
            if queue is not None and queue.rate_bit_s is not None:
                found |= {f"{name}_packets": queue.packets, f"{name}_drops": queue.drops}
        return found


def dropped_bytes(before: LinkReading, after: LinkReading) -> int:
    """Bytes that the queue before the node dropped between two readings; 0 where it was set anew between them."""
    if before.down is None or after.down is None or after.down.bytes < before.down.bytes:
        return 0
    came_out = after.down.bytes + after.down.waiting_bytes - before.down.bytes - before.down.waiting_bytes
    return max(0, after.received - before.received - came_out)


def read_link(link: LinkReader, now: Callable[[], float]) -> LinkReading | None:
    """All counters of a link at once; None where the interface is gone or the kernel gives no answer."""
    since_s = now()
    try:
        received, sent = link.bytes()
        up, down = link.queues()
    except (OSError, ValueError):
        return None
    return LinkReading(since_s, now(), received, sent, up, down)


class LinkUsage:
    """Counts what passes a node's interface."""

    def __init__(self, reader: LinkReader, effective: EffectiveLink, now: Callable[[], float]) -> None:
        """`effective` is what is asked of the link; `now`: seconds of the trial."""
        self.reader = reader
        self.now = now
        self.first: LinkReading | None = None
        self._last: LinkReading | None = None
        self._busiest = Busiest(effective, "uplink"), Busiest(effective, "downlink")
        self._dropped_bytes = 0
        """Bytes that the queue before the node has dropped until the last look."""

    def look(self, began_s: float) -> None:
        """Add what passed since the last look, some two seconds at a time."""
        last = self._last
        if last and self.now() < last.until_s + WINDOW_S - 0.5:
            return
        reading = read_link(self.reader, self.now)
        if reading is None:
            return
        self.first = self.first or reading
        if last:  # the counters were read at some moment within each reading: the longest time counts
            for busiest, before, after in zip(self._busiest, last.passed, reading.passed, strict=True):
                # less than before, where the queue has been set anew
                busiest.add(last.since_s - began_s, reading.until_s - began_s, max(0, after - before))
            self._dropped_bytes += dropped_bytes(last, reading)
        self._last = reading

    def grown(self) -> dict[str, Any]:
        """Growth of the link's counters since the first look; a queue that was set anew counts from 0 again."""
        if self.first is None:
            return {}
        reading = read_link(self.reader, self.now)
        counters, first = reading.counters() if reading else {}, self.first.counters()
        grown: dict[str, Any] = {name: max(0, value - first.get(name, 0)) for name, value in counters.items()}
        if reading and reading.down and self._last:
            grown["downlink_dropped_bytes"] = self._dropped_bytes + dropped_bytes(self._last, reading)
        up, down = self._busiest
        return grown | {
            "uplink_busiest": up.share,
            "downlink_busiest": down.share,
            "uplink_busiest_bit_s": up.bit_s,
            "downlink_busiest_bit_s": down.bit_s,
        }


def add_window(
    usage: Usage,
    cpus: float | None,
    before: Reading,
    after: Reading,
    *,
    is_steady: bool = True,
    cores: float | None = None,
) -> Usage:
    """The usage with what happened between two readings added, under a cap of `cpus` cores.

    Not `is_steady`: the cap was `cpus` at one end, and less at the other. `cores`: those that there are for a node
    whose threads may wait for each other's without a cap; None: one does the work.
    """
    window_s, cpu_s = after.t - before.t, max(0.0, after.cpu_s - before.cpu_s)  # somebody may set a counter back
    starved_s = throttled_s = None
    if before.throttled_s is not None and after.throttled_s is not None:
        throttled_s = after.throttled_s - before.throttled_s
    if before.waited_s is not None and after.waited_s is not None:
        explained_s = max(throttled_s or 0.0, after.absorbed_s - before.absorbed_s)
        promised = cores if cpus is None else cpus
        missed_s = window_s if promised is None else (promised * window_s - cpu_s) / min(1.0, promised)
        starved_s = max(0.0, min(after.waited_s - before.waited_s - explained_s, missed_s, window_s))
    allowed_s = cpu_s if cpus is None else cpus * window_s
    periods = window_s * 1e6 / CPU_PERIOD_US
    is_capped = is_steady and after.throttled_periods - before.throttled_periods >= CAPPED_SHARE * periods
    return msgspec.structs.replace(
        usage,
        time_s=round(usage.time_s + window_s, 6),
        cpu_s=round(usage.cpu_s + cpu_s, 6),
        starved_s=None if starved_s is None else round((usage.starved_s or 0.0) + starved_s, 6),
        throttled_s=None if throttled_s is None else round((usage.throttled_s or 0.0) + throttled_s, 6),
        capped_s=round(usage.capped_s + (window_s if is_capped else 0.0), 6),
        capped_cpu_s=round(usage.capped_cpu_s + (cpu_s if is_capped else 0.0), 6),
        capped_allowed_s=round(usage.capped_allowed_s + (allowed_s if is_capped else 0.0), 6),
        allowed_s=round(usage.allowed_s + allowed_s, 6),
    )
