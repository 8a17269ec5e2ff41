"""Records of what is measured: links, caps, usage, messages on their way, clocks, hosts; `records.py` lists all."""

from collections.abc import Iterable

import msgspec

from edgebed.core.bounds import Amount, Count, Seconds, Share
from edgebed.core.recorded.record import Record

LOOK_S = 1.0
"""Seconds between two looks of a node at itself."""
TOLD_AFTER_MAX_S = 10.0
TOLD_AFTER_SHARE = 0.1
HOST_LOAD_S = 2.0
"""Seconds that a `HostLoad` covers."""
SLEW_SHOWN = 0.001
"""Share by which a host's clock runs fast or slow from which on people are told: a time service needs less."""


class Traffic(Record):
    """Bytes through the server's data socket since the trial began."""

    ingress_payload: Count
    egress_payload: Count
    ingress_interface: Count | None = None
    """Bytes received by the network interface in the same time; None in the simulation."""
    egress_interface: Count | None = None
    interface: str = ""
    """Name of that interface; `lo` is shared by everything on the machine."""
    pulls: Count = 0
    """Models sent to workers."""
    pull_bytes: Count = 0
    """Payload of those models."""
    pulls_changed: Count = 0
    """Models sent to workers that hold changed entries only."""
    pull_changed_bytes: Count = 0
    ack_bytes: Count | None = None
    """Bytes of packets without payload that the node received: acknowledgements of models; None: unknown."""
    tcp_bytes: Count | None = None
    """Bytes of all packets that the node received over its own connections, headers included; None: unknown."""

    @property
    def has_own_interface(self) -> bool:
        """Whether the interface's bytes are the node's; those of the loopback are everybody's on the machine."""
        return self.ingress_interface is not None and self.interface != "lo"


class Messages(Record):
    """Messages of one kind that a node received over one connection (layer-wise training): cumulative, by the node."""

    source: str
    """Node at the connection's other end: the store, where there is one, whoever made what it hands over."""
    message: str
    """Kind of the messages."""
    count: Count
    bytes: Count
    """Payload of the messages."""


class Phases(Record):
    """Where a worker's time went since it started, in seconds (live runtimes only)."""

    steps: Count
    compute_s: Seconds
    encode_s: Seconds
    wait_s: Seconds
    """Waiting for the server's answer."""
    pause_s: Seconds
    """The emulated pause before a push, and the stretch of a capped CPU."""


class ShardPhases(Record):
    """Where the time of a shard, or of the node of gradient modules, went in this incarnation: cumulative, in seconds.

    From its first history on until its last step. Work counts with the stretch of a capped CPU, and with encoding what
    it sends. Every instant is in exactly one of them.
    """

    forward_s: Seconds = 0.0
    """Going forward, or predicting gradients on the node of modules."""
    learn_s: Seconds = 0.0
    """Going backward, and the optimizer's steps."""
    teach_s: Seconds = 0.0
    """Teaching modules what the gradients or inputs were."""
    copy_s: Seconds = 0.0
    """Copying weights and state for evaluations and backups, and restoring them."""
    inputs_s: Seconds = 0.0
    """Waiting for inputs."""
    answers_s: Seconds = 0.0
    """Waiting for gradients, or for word that there is room for more outputs."""


class Link(Record):
    """A node's link to the data network: what was asked, and what holds it, read back from where it is held.

    Journaled by the node itself, before it may send, and whenever something of the link has changed.
    """

    mechanism: str
    """tc (the kernel's), model (the transport's own), or none"""
    delay: str = ""
    """What makes latency and jitter: netem (the kernel's), line (the transport's own), or nothing."""
    interface: str = ""
    uplink_asked: Count | None = None
    """Bits a second; None: no limit."""
    downlink_asked: Count | None = None
    uplink_held: Count | None = None
    """Bits a second that the mechanism holds; None: no limit."""
    downlink_held: Count | None = None
    uplink_burst: Count | None = None
    """Bytes that may leave at once after a silence."""
    downlink_burst: Count | None = None
    latency_s: Seconds = 0.0
    jitter_s: Seconds = 0.0
    loss: Share = 0.0
    cut: bool = False
    """Whether nothing is to pass, in either direction."""
    apart: tuple[str, ...] = ()
    """Nodes from and to which nothing is to pass, the first 50 of them."""
    narrowed: dict[str, Count] = msgspec.field(default_factory=dict)
    """Nodes to and from which less is to pass than the links allow, the first 50 of them, with bits a second."""
    mtu: Count | None = None
    """The MTU of the node's interface, where it is none of an Ethernet (1500), as on an overlay network."""
    problem: str = ""
    """What differs between asked and held; empty if nothing."""
    differed: Count = 0
    """Checks of the node until now, one a second, that found a difference, as the check before had."""
    differences: tuple[str, ...] = ()
    """What differed, the first time in each direction."""


class Usage(Record):
    """What a node used since training began, and what was withheld from it: cumulative, by the node itself."""

    time_s: Seconds
    """Time since training began, or since the node's start if that was later."""
    cpu_s: Seconds
    starved_s: Seconds | None = None
    """Time that the node lost since it got no core of those that its cap and pace promise: it waited for one, and so
    had less than it was promised. If it had half of what it was promised, and wanted all, it lost half of the time."""
    throttled_s: Seconds | None = None
    """Time in which the node's own CPU cap held it back; None where no cgroup of its own holds one."""
    stopped_s: Seconds | None = None
    """Time in which the node stood still, and neither waited for a core nor was held back by its cap: something stopped
    it. None: it could not tell."""
    capped_s: Seconds = 0.0
    """Time in which the node's CPU cap was used up most of the time."""
    capped_cpu_s: Seconds = 0.0
    """CPU time that the node had in `capped_s`."""
    capped_allowed_s: Seconds = 0.0
    """CPU time that its cap allows in `capped_s`; like the next one with whatever cap a fault had set at each time."""
    allowed_s: Seconds = 0.0
    """CPU time that its cap allows in `time_s`; where there is none, what the node had."""
    device_s: Seconds | None = None
    """CPU time that the node's jobs take on its device; None: the plan says no device."""
    device_late_s: Seconds = 0.0
    """CPU time by which these jobs took longer here; one that took less makes up for no other."""
    device_waits_s: Seconds = 0.0
    """Time by which they were not done though both CPU times would have passed at the cap that held: they waited."""
    device_jobs: Count = 0
    """Number of these jobs."""
    cpus_held: Amount | None = None
    """The CPU cap that its own cgroup holds, in cores."""
    memory_bytes: Count | None = None
    """Highest memory use so far."""
    memory_held_bytes: Count | None = None
    """The memory cap that its own cgroup holds."""
    differed: Count = 0
    """Looks of the node at its own cgroup until now, one a second, that found another CPU cap than was set."""
    differences: tuple[str, ...] = ()
    """What differed, the first time."""
    uplink_bytes: Count | None = None
    """Bytes sent on the wire through the node's own interface; None where it has none."""
    downlink_bytes: Count | None = None
    """Bytes that arrived at that interface, including what the queue behind it then drops."""
    downlink_dropped_bytes: Count | None = None
    """Bytes of these that this queue dropped; None where there is none."""
    downlink_own_bytes: Count | None = None
    """Bytes of these, less what was dropped, that came over the node's own connections, by TCP's own count; None: not
    known."""
    congestion_controls: tuple[str, ...] = ()
    """TCP's congestion controls of its data connections, as read back; none: not known."""
    uplink_busiest: Amount | None = None
    """Share of what the link may carry that passed, two seconds at a time, in the third-busiest of them."""
    downlink_busiest: Amount | None = None
    uplink_busiest_bit_s: Seconds | None = None
    """The rate in the third-busiest two seconds."""
    downlink_busiest_bit_s: Seconds | None = None
    uplink_packets: Count | None = None
    """Packets through the queue that limits the uplink; None where there is none."""
    downlink_packets: Count | None = None
    uplink_drops: Count | None = None
    """Packets that this queue dropped."""
    downlink_drops: Count | None = None


class Connections(Record):
    """A program's connections of TCP with another node, as its kernel counts them: cumulative, by the node's witness.

    Of each that has ended the last is known, unless thousands end within a second. What other protocols carry is not
    counted here, nor are headers.
    """

    peer: str
    """The other node, or an address that none has."""
    count: Count
    """Connections that were seen, whoever opened them."""
    acked_bytes: Count
    """Bytes that were sent, as far as the other end has acknowledged them; opening and ending count one each."""
    received_bytes: Count
    round_trip_s: Amount | None = None
    """The smallest round trip of all of them; None: none has been measured."""


class Bypass(Record):
    """Bytes of a program that passed another interface than its link's: cumulative, by the node's witness."""

    interface: str
    """Its name in the node's network namespace; the loopback is none of these."""
    bytes: Count
    """Bytes in both directions since the namespace was made."""


class Seen(Record):
    """What is seen of a node from outside, at its cgroup and at its link's far end: cumulative, by the controller.

    It covers the time of the node's last `Usage` line before, which has the same `time_s`; without such a line the time
    since training began. What the node counts at one moment is seen a little before and after: between the figure less
    its error and the figure with it.
    """

    name: str
    """The node."""
    time_s: Seconds
    incarnation: Count = 0
    cpu_s: Amount | None = None
    """CPU time of its cgroup; None here and below: it could not be read."""
    cpu_error_s: Amount = 0.0
    cpus_held: Amount | None = None
    """The CPU cap that its cgroup holds, in cores."""
    above: str = ""
    """The cgroup above its own that had the lowest CPU quota, which all below share; empty: none had any."""
    cpus_above: Amount | None = None
    """The quota of the cgroup `above`, in cores."""
    above_s: Amount = 0.0
    """Time in which the quota of the cgroup `above` was used up."""
    memory_bytes: Count | None = None
    """Highest memory use of its cgroup, of before the node told its own."""
    memory_held_bytes: Count | None = None
    uplink_bytes: Count | None = None
    """Bytes that came out of its link at the far end, on the wire."""
    uplink_error_bytes: Count = 0
    downlink_bytes: Count | None = None
    """Bytes that went into its link there."""
    downlink_error_bytes: Count = 0
    mtu: Count | None = None
    """The MTU of the far end, where it is none of an Ethernet (1500)."""
    stopped: Count = 0
    """Looks until now that found its process stopped by a signal, or its cgroup frozen."""
    looks: Count = 0
    """Looks until now in all, where any found it stopped."""
    frozen_s: Amount = 0.0
    """Time of freezes, done as asked, in which looks tell the next three; what a freeze was at its ends is left out."""
    frozen_cpu_s: Amount = 0.0
    """CPU time that its cgroup had in `frozen_s`."""
    frozen_looks: Count = 0
    """Looks in that time."""
    frozen_running: Count = 0
    """Looks of these that found none of its processes stopped, and its cgroup not frozen."""
    cut_s: Amount = 0.0
    """Time of cuts of its link, done as asked, in which looks tell the next one."""
    cut_bytes: Count = 0
    """Bytes that came out of its link at the far end in `cut_s`."""
    differed: Count = 0
    """Looks until now, some five a second, that found something which edgebed had not set so, for a second or more."""
    differences: tuple[str, ...] = ()
    """What was found so, the first of each kind."""
    unread: tuple[str, ...] = ()
    """What could not be read, and why."""


class Appended(Record):
    """What a server wrote to its log and what that took, since it started: cumulative, by the server itself."""

    entries: Count
    """Entries appended."""
    bytes: Count
    """Bytes written, with snapshots of the model."""
    time_s: Seconds
    """Time since training began, or since the server's start if that was later."""
    append_s: Seconds
    """Time in which the server did nothing but write its log."""
    syncs: Count = 0
    """Times that the disk was asked to have all of it (`durability: fsync`)."""
    waited: Count = 0
    """Messages that waited for that before they left."""
    waited_s: Seconds = 0.0
    """Time that these waited, summed over messages."""
    saved: Count = 0
    """Updates that were in the log that this server found, and not in the last checkpoint."""


class Transfers(Record):
    """How long a worker's messages were on their way, by whoever received them: cumulative.

    Shards, and nodes that serve them, have a line for each pair. A line of the sender's own, without messages, adds
    what only the sender knows.
    """

    name: str
    """The worker; among shards the sender."""
    direction: str
    """up: its pushes, received by the server, or what it sends to `to`; down: its models"""
    messages: Count
    bytes: Count
    """Bytes on the wire: with the headers of TCP, IP and Ethernet."""
    time_s: Seconds
    """Time from the first byte sent to the whole message received, summed over messages."""
    asked_s: Seconds
    """Time that messages would take on links exactly as asked, with nothing else on them."""
    beside_s: Seconds = 0.0
    """Time that other messages of the trial's on the same links may have added to that, at most."""
    throttled_s: Seconds = 0.0
    """Time, of that which messages were on their way, in which CPU caps held back the nodes at both ends, at most."""
    busy_s: Seconds = 0.0
    """Time, of that which messages were on their way, in which a node that serves others computed, at most."""
    latency_s: Seconds = 0.0
    """The part of `asked_s` that is latency."""
    early: Count = 0
    """Messages that took less than nine tenths of `asked_s`, jitter allowed for, which no link as asked lets happen."""
    to: str = ""
    """Among shards: the receiver."""
    delay_s: Seconds | None = None
    """The least that the link of `name` held a message back, beyond the time that its bytes need: its latency, as
    measured. By the receiver what came after the first byte had left, by the sender what came before. None: no message
    was small enough to tell."""
    error_s: Amount = 0.0
    """Seconds by which `time_s` may be wrong, since sender and receiver have different clocks: summed over messages."""
    impossible: Count = 0
    """Messages that came before they had left, by more than both clocks are said to be wrong by; not measured."""
    left_out: Count = 0
    """Messages that met a fault of a link, by which it is not known how long they should take; not measured."""
    unacknowledged: Count = 0
    """Messages that the next two are about, whichever kinds they are, by the sender's kernel."""
    unacknowledged_s: Seconds = 0.0
    """Time in which something of them had been given to TCP and not been acknowledged by the receiver's kernel, while
    that had room: no process at either end makes it longer."""
    unacknowledged_asked_s: Seconds = 0.0
    """Time that they would take, with the way back, on links exactly as asked, with nothing else on them."""
    repeated_s: Seconds = 0.0
    """Time that packets would take there which the sender's TCP sent again, though the receiver had them already: it
    had not heard of them in the time that it had learnt to expect."""


class Clock(Record):
    """How a node's clock differs from the controller's, by the node: only where they are not the same clock.

    Journaled when it was first measured, and whenever it has changed by more than it was said to be wrong by.
    """

    offset_s: Seconds
    """Seconds by which the controller's monotonic clock was ahead of the node's, when the node's showed `own_s`."""
    own_s: Seconds
    drift: Seconds
    """Seconds by which the offset grows in a second."""
    error_s: Amount
    """Seconds by which the node's times in this journal may differ from the controller's, until the next such line."""
    round_trip_s: Amount
    """The time that a question for the time and its answer were on their way."""


class HostLoad(Record):
    """How busy a whole machine was, since the last such record; by the controller, or by that machine's probe."""

    busy: Share
    """Share of all cores' time in use, from 0 to 1."""
    steal: Share
    """Share that the machine under this one took away."""
    load: Amount
    """Threads that run or wait for a core, per core: the mean of counts some 25 ms apart, without the counting
    thread."""
    lag_s: Seconds
    """How much later than asked a sleeping thread woke up: the 99th percentile."""
    cores: Count = 0
    """Cores of the machine; 0: unknown."""
    host: str = ""
    """The machine's name among several; empty: there is one alone, the controller's own."""
    received_bytes_s: Amount | None = None
    """Bytes a second that came over the interface to the other hosts, whoever sent them; None: nobody looked."""
    sent_bytes_s: Amount | None = None
    rate_bit_s: Count = 0
    """The rate of that interface; 0: unknown."""
    slew: Seconds | None = None
    """Seconds by which the clock gained, in a second, on the hardware's counter: a time service slews it. None: not
    measured."""


CUMULATIVE: dict[type[Record], tuple[str, tuple[str, ...]]] = {
    Traffic: ("egress_payload", ()),
    Messages: ("count", ("source", "message")),
    Phases: ("steps", ()),
    ShardPhases: ("forward_s", ()),
    Link: ("differed", ()),
    Usage: ("cpu_s", ()),
    Appended: ("bytes", ()),
    Transfers: ("asked_s", ("name", "direction", "to")),
    Connections: ("count", ("peer",)),
    Bypass: ("bytes", ("interface",)),
}
"""What a node reports of itself since its incarnation began: a field that never falls until the next one, and the
fields by which several such reports of a node are told apart."""


def told_after_s(time_s: float) -> float:
    """Seconds after which a node that has measured itself for `time_s` tells of it again."""
    return min(TOLD_AFTER_MAX_S, max(LOOK_S, TOLD_AFTER_SHARE * time_s))


def first_of_each(differences: Iterable[str]) -> dict[str, str]:
    """The first of differences of each cause, by that cause; each is `cause: what`."""
    found: dict[str, str] = {}
    for text in differences:
        found.setdefault(text.partition(":")[0], text)
    return found
