"""Measurements of a live node during training: what it used, what it was denied, how long its messages took."""

import math
import os
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgebed.core import records
from edgebed.core.framing import MTU, burst_bytes, packet_bytes, wire_bytes
from edgebed.core.plan import TrainingNode
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkPlan
from edgebed.core.recorded.measured import told_after_s
from edgebed.emulation.conditions import EffectiveLink, LinkState
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.resources import ROOT, CgroupUsage, cgroup_folders, private_bytes
from edgebed.emulation.transfer_time import transfer_s
from edgebed.emulation.witness.usage import EARLY_S, LinkUsage, Reading, UsageCount, Waiting
from edgebed.runtimes import timestamps
from edgebed.runtimes.live.endpoint import RouterEndpoint
from edgebed.runtimes.live.paced_link import HAND_OVER_S
from edgebed.runtimes.live.shell.connection_counts import ConnectionCounts, Sent
from edgebed.runtimes.live.shell.device import NodeDevice
from edgebed.runtimes.live.shell.gaps import GapDetector
from edgebed.runtimes.live.shell.held_back import HeldBack
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.shell.sharing import SharedLinks
from edgebed.wire.messages import Activation, AnyMessage, Gradient, Model

RECOVERY_S = 5.0
"""Seconds after which connections have been made anew once a link was healed."""
SETTLED_S = 1.0
"""Seconds after which a reported change has been made: it may also have been made a moment before."""
THREADS = Path("/proc/self/task")
MEMORY_S = 10.0  # reading what a process alone has mapped takes milliseconds
CPU_PERIOD_S = 0.1  # of every CPU cap: emulation/cgroups.py, runtimes/containers/limits.py
HANDING_OVER_CPU_S = 0.005
"""CPU time that handing a message over to the kernel takes at most: Python's, and that of ZeroMQ's thread."""
SUMS = (
    "time_s", "asked_s", "beside_s", "throttled_s", "busy_s", "latency_s", "error_s", "unacknowledged_s",
    "unacknowledged_asked_s", "repeated_s",
)  # fmt: skip
"""Fields of `Transfers` that add up seconds."""
Key = tuple[str, str, str]
"""Name, direction and receiver of `Transfers`."""
EARLY_SHARE = 0.9
"""Share of the time that its bytes need below which a message came early."""
BYTES_S_MAX = 0.05
"""Seconds that a message's bytes may need, or `BYTES_A_LATENCY_MAX`, if its time is to show the link's latency."""
BYTES_A_LATENCY_MAX = 10
"""Multiple of the link's latency that a message's bytes may need if its time is to show that latency."""


class RefusalMeter:
    """Counts the connections to a node that were refused in the handshake."""

    def __init__(self, ends: Mapping[str, RouterEndpoint]) -> None:
        """`ends`: by what the records call them."""
        self.ends = ends

    def inject(self, time_s: float, injection: Injection) -> None:
        """Take no notice: strangers are not the doing of a fault."""

    def read(self, now: float, began_s: float | None) -> Iterator[records.Unauthenticated]:
        """Records of those refused since the last call, before training as well."""
        for name, end in self.ends.items():
            yield from end.refusals(name)


class UsageMeter(UsageCount):
    """Measures a node's own `Usage`; a cgroup counts only where it is the node's own."""

    def __init__(
        self,
        plan: TrainingNode,
        device: NodeDevice,
        life: Lifetime,
        *,
        own_cgroup: bool = False,
        link: LinkReader | None = None,
        connections: ConnectionCounts | None = None,
        gaps: GapDetector | None = None,
        root: Path = ROOT,
    ) -> None:
        """`link` reads the interface and the queues that are the node's own; `connections` are all over it.

        `gaps` notices when the node stands still.
        """
        effective = EffectiveLink(plan.link)
        super().__init__(
            plan.node,
            effective,
            cgroup_folders(None, root) if own_cgroup else {},
            Waiting(lambda: (each.path for each in os.scandir(THREADS))),
            LinkUsage(link, effective, life.now) if link else None,
        )
        self.device = device
        self.life = life
        self.root = root
        self.connections = connections
        self.came_first: int | None = None
        """Bytes that had come over the connections at the first look."""
        self.gaps = gaps or GapDetector()
        self.stopped_before_s = 0.0
        """Seconds for which the node had stood still when it was first looked at."""
        self.next_memory_s = 0.0

    @property
    def cpus(self) -> float | None:
        """The cap that is asked for now, in cores."""
        return self.device.cpus

    @property
    def is_last(self) -> bool:
        """Whether the node is to stop."""
        return self.life.stop is not None

    def begin(self) -> None:
        """Note what was before the first look."""
        self.stopped_before_s = self.gaps.stopped_s or 0.0

    def look(self, now: float, cgroup: CgroupUsage) -> Reading:
        """What the process itself has used, in a cgroup of its own or not."""
        if self.link and self.link.first and self.came_first is None:
            self.came_first = self._came_bytes()
        return Reading(
            t=now,
            cpu_s=time.process_time(),
            waited_s=self.waiting.read(),
            absorbed_s=self.device.times.absorbed_s,
            throttled_s=cgroup.throttled_s,
            throttled_periods=cgroup.throttled_periods or 0,
        )

    def more(self, now: float) -> dict[str, Any]:
        """What only the node itself knows."""
        found: dict[str, Any] = self.device.jobs.account()
        stopped_s = self.gaps.stopped_s
        found["stopped_s"] = None if stopped_s is None else round(stopped_s - self.stopped_before_s, 6)
        if not self.folders and (now >= self.next_memory_s or self.is_last):
            memory_bytes = private_bytes(os.getpid(), self.root)
            found["memory_bytes"] = max(memory_bytes or 0, self.usage.memory_bytes or 0) or None
            self.next_memory_s = now + MEMORY_S
        if self.connections and self.came_first is not None and (came := self._came_bytes()):
            found["downlink_own_bytes"] = came - self.came_first
            found["congestion_controls"] = tuple(sorted(self.connections.congestion_controls))
        return found

    def _came_bytes(self) -> int:
        if self.connections is None:
            return 0
        self.connections.look()
        return self.connections.came_bytes


class Given(NamedTuple):
    """Messages given to TCP."""

    messages: int = 0
    asked_s: float = 0.0
    """Seconds until all of them are acknowledged, one after the other, on links as asked."""


class TransfersMeter:
    """Measures how long messages took to this node, against what its link and the sender's would take as asked."""

    def __init__(
        self,
        plan: TrainingNode,
        life: Lifetime,
        others: Mapping[str, LinkPlan],
        *,
        delay: str,
        mtu: int = MTU,
        held_back: HeldBack | None = None,
        connections: ConnectionCounts | None = None,
    ) -> None:
        """`others`: the links of the nodes at the other ends. `delay`: what makes latency (see `NodeEnvironment`).

        `mtu` is that of the data network; `connections` are those on it, where the kernel holds all links.
        """
        self.plan = plan
        self.name = plan.node
        self.life = life
        link = plan.link
        self.own = EffectiveLink(link)
        self.others = {name: EffectiveLink(other) for name, other in others.items() if other.shaped or link.shaped}
        self.delay = delay
        self.mtu = mtu
        self.held_back = held_back
        self.connections = connections
        self.left_s: dict[str, float] = {}
        """When the last message left for each node of which nothing has been heard since."""
        self.given: dict[str, Given] = {}
        """What was given to TCP since the last look at the connections, by receiver."""
        self.seen: dict[str, Sent] = {}
        """What `connections` said of each receiver at the last look."""
        self.waits: set[str] = set()
        """Receivers of what had not been acknowledged at the last look."""
        self.left_out: set[str] = set()
        """Receivers of what met a fault of a link, and had not been acknowledged at the last look."""
        self.looked_s = 0.0
        several = plan.counts_messages != (plan.role == "server")  # a worker with the whole model has one other end
        self.shared = SharedLinks(self.own, mtu) if several else None
        self.beside_s: dict[Key, float] = {}
        """What others added to messages, and is not in `totals` yet."""
        self.totals: dict[Key, records.Transfers] = {}
        self.changed: set[Key] = set()
        self.first_s: float | None = None
        """When training was first looked at."""
        self.next_s = 0.0

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note a fault of a link at one end of the messages, so long after training began."""
        own = injection.at(self.name)
        if injection.peer:  # it is nothing to messages with others
            effective = self.others.get(own.peer) if own else None
        else:
            effective = self.own if own else self.others.get(injection.node)
        if effective:
            effective.inject(time_s, injection)

    def received(
        self, now: float, message: AnyMessage, payload_bytes: int, source: str = "", busy_until_s: float = 0.0
    ) -> None:
        """Measure a message that came to the heart at `now`, in seconds of the trial, from `source` or its sender.

        Messages that met a fault of a link are left out: how long they should take is not known. Among shards also
        those due while the node computed, until `busy_until_s`: when they came is not known. Times of two clocks are
        compared as far as these are known to agree; what came before it left, beyond that, is only counted.
        """
        source = source or message.sender
        other, sent_s = self.others.get(source), timestamps.sent_s(message)
        if other is None or not 0.0 <= sent_s < math.inf:
            return
        own_name, began_s = self.name, self.life.began_s or 0.0
        time_s, error_s = now - sent_s, self.life.error_s(source)
        key = (own_name, "down", "") if isinstance(message, Model) else (source, "up", "")
        if isinstance(message, Activation | Gradient):
            key = source, "up", own_name
        if time_s < -error_s - HAND_OVER_S:
            self._change(key, impossible=1)
            return
        since_s, size = sent_s - began_s, wire_bytes(payload_bytes, self.mtu)
        latency_s, jitter_s = self._delay_s(other, since_s)
        bytes_s = transfer_s(other, self.own, since_s, size, acknowledged=False, mtu=self.mtu)
        least_s = bytes_s + latency_s
        asked_s = transfer_s(other, self.own, since_s, size, acknowledged=True, mtu=self.mtu) + latency_s
        beside_s = self._beside(now - began_s, since_s, source, size)
        throttled_s, busy_s = self._held_back(now, sent_s, source)
        if isinstance(message, Activation | Gradient) and busy_until_s > sent_s + asked_s:
            return
        if any(_met_fault(effective, since_s, now - began_s) for effective in (self.own, other)):
            self._change(key, left_out=1)
            return
        subject, far = (self.own, other) if key[0] == own_name else (other, self.own)
        delay_s = None
        if bytes_s <= max(BYTES_S_MAX, BYTES_A_LATENCY_MAX * subject.at(since_s).latency_s):
            delay_s = time_s - bytes_s - self._part_s(far, since_s)
        self._change(
            key,
            delay_s=delay_s,
            messages=1,
            bytes=size,
            time_s=time_s,
            asked_s=asked_s,
            beside_s=beside_s,
            throttled_s=throttled_s,
            busy_s=busy_s,
            latency_s=latency_s,
            early=int(max(0.0, time_s) + error_s < EARLY_SHARE * (least_s - jitter_s)),
            error_s=error_s,
        )

    def left(self, now: float, leaving: timestamps.Leaving) -> None:
        """Note that a message which the node's own link delayed has left."""
        self._change((self.name, "up", ""), delay_s=(now - leaving.asked_s) - (leaving.gone_s - leaving.first_s))

    def sent(self, now: float, left_s: tuple[float, float], to: str, payload_bytes: int, *, paced: bool) -> None:
        """Note bytes given to the kernel at `now`: the node has one uplink for all.

        `left_s`: when the first one left, and when all of them were due to be given to it. `paced`: the shell itself
        let them leave, so that the last one has left as well.
        """
        first_s, due_s = left_s
        other, began_s = self.others.get(to), self.life.began_s
        if other is None or began_s is None or (self.plan.counts_messages and self.plan.role == "server"):
            return
        self.left_s[to] = due_s
        if self.held_back:
            self.held_back.look(now, due_s)
        since_s, size = first_s - began_s, wire_bytes(payload_bytes, self.mtu)
        if self.connections:
            given = self.given.get(to, Given())
            way_back_s = 2 * (self.own.at(since_s).latency_s + other.at(since_s).latency_s)
            asked_s = transfer_s(
                self.own, other, since_s, size + burst_bytes(0, self.mtu), acknowledged=True, mtu=self.mtu
            ) + (way_back_s if self.delay == "netem" else 0.0)
            self.given[to] = Given(given.messages + 1, given.asked_s + asked_s)
        if self.shared:
            for name, extra_s in self.shared.sent(now - began_s, since_s, to, size, paced=paced).items():
                self._allow(self._sent_key(name), extra_s)

    def _sent_key(self, to: str) -> Key:
        """The key of what the node sends to another one."""
        if self.plan.counts_messages:
            return self.name, "up", to
        return (to, "down", "") if self.plan.role == "server" else (self.name, "up", "")

    def _held_back(self, now: float, sent_s: float, source: str) -> tuple[float, float]:
        """Seconds, since a message left, that the node's cap and, if it serves others, its computing took of its time.

        What the cap took of the node's own last message to the other end counts until that was heard of again, but no
        longer than the cap lets so much computing take as handing over a message needs.
        """
        if self.held_back is None:
            return 0.0, 0.0
        self.held_back.look(now)
        left_s = self.left_s.pop(source, None)
        if left_s is not None and self.held_back.cpus():
            longest_s = CPU_PERIOD_S + HANDING_OVER_CPU_S / (self.held_back.cpus() or 1.0)
            own_s, _ = self.held_back.within(left_s, min(sent_s, left_s + longest_s))
            if own_s:
                self._change(self._sent_key(source), throttled_s=own_s)
        throttled_s, busy_s = self.held_back.within(sent_s, now)
        return throttled_s, busy_s if self.plan.role != "worker" else 0.0

    def _beside(self, now: float, since_s: float, source: str, size: int) -> float:
        """Seconds that others on the node's own link may add to a message's time; adds to theirs as well."""
        if self.shared is None:
            return 0.0
        extra, back_s = self.shared.came(now, since_s, source, size)
        self._allow(self._sent_key(source), back_s)
        own_s = extra.pop(source)
        for other, extra_s in extra.items():
            self._allow((other, "up", self.name if self.plan.counts_messages else ""), extra_s)
        return own_s

    def _allow(self, key: Key, extra_s: float) -> None:
        if extra_s > 0.0:  # for many at once, with each message
            self.beside_s[key] = self.beside_s.get(key, 0.0) + extra_s

    def _look_at_connections(self, now: float, began_s: float) -> None:
        """Add for how long what was given to TCP has not been acknowledged; not around faults of the links."""
        if self.connections is None:
            return
        self.connections.look()
        before, self.seen = self.seen, dict(self.connections.sent)
        given, self.given = self.given, {}
        waits, self.waits = self.waits, set()
        since_s, self.looked_s = self.looked_s, now
        for to in sorted(self.others.keys() & self.seen.keys()):
            other, last, seen = self.others[to], before.get(to, Sent()), self.seen[to]
            met_fault = any(_met_fault(each, since_s - began_s, now - began_s) for each in (self.own, other))
            if met_fault or to in self.left_out:
                (self.left_out.add if seen.is_waiting else self.left_out.discard)(to)
                continue
            if repeated := seen.repeated - last.repeated:
                size = repeated * packet_bytes(self.mtu) + burst_bytes(0, self.mtu)
                again_s = transfer_s(self.own, other, since_s - began_s, size, acknowledged=False, mtu=self.mtu)
                self._change(self._sent_key(to), repeated_s=again_s)
            if to not in given and to not in waits:  # only what ZeroMQ itself says is on its way
                continue
            new = given.get(to, Given())
            self._change(
                self._sent_key(to),
                unacknowledged=new.messages,
                unacknowledged_s=seen.unacknowledged_s - last.unacknowledged_s,
                unacknowledged_asked_s=new.asked_s,
            )
            if seen.is_waiting:
                self.waits.add(to)

    def _change(self, key: Key, *, delay_s: float | None = None, **more: float) -> None:
        """Add to what is counted of a key, and note the least delay."""
        total = self._total(key)
        added = {name: getattr(total, name) + value for name, value in more.items() if value}
        self.totals[key] = msgspec.structs.replace(total, delay_s=_least(total.delay_s, delay_s), **added)
        self.changed.add(key)

    def _total(self, key: Key) -> records.Transfers:
        name, direction, to = key
        nothing = records.Transfers(name=name, direction=direction, to=to, messages=0, bytes=0, time_s=0.0, asked_s=0.0)
        return self.totals.get(key, nothing)

    def _delay_s(self, other: EffectiveLink, since_s: float) -> tuple[float, float]:
        """Latency and jitter: the kernel's at both ends, a delay line's at this one; the sender's comes before."""
        own, far = self.own.at(since_s), other.at(since_s) if self.delay == "netem" else LinkState()
        return own.latency_s + far.latency_s, own.jitter_s + far.jitter_s

    def _part_s(self, effective: EffectiveLink, since_s: float) -> float:
        """Seconds that the latency of one end adds behind the first byte."""
        return effective.at(since_s).latency_s if effective is self.own or self.delay == "netem" else 0.0

    def read(self, now: float, began_s: float | None) -> Iterator[records.Transfers]:
        """Transfers that have changed, whenever a tenth of the time has been added, or ten seconds; and at the end."""
        if began_s is None:
            return
        if self.held_back:
            self.held_back.look(now)
        self._look_at_connections(now, began_s)
        if now < self.next_s and self.life.stop is None:
            return
        self.first_s = now if self.first_s is None else self.first_s
        self.next_s = now + told_after_s(now - self.first_s) - EARLY_S
        for to, back_s in self.shared.unheard().items() if self.shared and self.life.stop is not None else ():
            self._allow(self._sent_key(to), back_s)
        for key, extra_s in self.beside_s.items():
            self._change(key, beside_s=extra_s)
        self.beside_s.clear()
        for key in sorted(self.changed):
            total = self.totals[key]
            rounded = {name: round(value, 6) for name in SUMS if (value := getattr(total, name))}
            if total.delay_s is not None:
                rounded["delay_s"] = round(max(0.0, total.delay_s), 6)
            yield msgspec.structs.replace(total, **rounded)
        self.changed.clear()


def _least(before: float | None, value: float | None) -> float | None:
    return min((each for each in (before, value) if each is not None), default=None)


def _met_fault(effective: EffectiveLink, since_s: float, until_s: float) -> bool:
    """Whether a link was changed by a fault while a message was on its way, or shortly before."""
    index = bisect_right(effective.injected_s, until_s)
    if index == 0:
        return False
    last_s, before = effective.injected_s[index - 1], effective.overrides[index - 1]
    after, was_cut = effective.overrides[index], before.cut or before.apart
    return bool(after.cut or after.apart) or since_s <= last_s + (RECOVERY_S if was_cut else SETTLED_S)
