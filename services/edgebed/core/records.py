"""What the journal can say. Each record is one line of `events.jsonl`: `{"t": …, "node": …, "kind": …, …}`.

`t` is seconds since the trial was launched (virtual in the simulation), `node` is who says it; training starts with the
`trial` record. The journal is the source of every figure: metrics, summaries, charts and reports are computed from
these records alone.
"""

from typing import Annotated

import msgspec

HOST_LOAD_S = 2.0
"""Seconds that a `HostLoad` covers."""
LARGEST = 2**53
"""Numbers up to here are exact in JSON, and so many of them fit a column of 64 bits when they are added up."""
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
CountOrNone = Annotated[int, msgspec.Meta(ge=-1, le=LARGEST)]
"""A count, or -1: none, or not reported."""
Lag = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Every = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
"""Steps in a row that a line stands for."""
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Amount = Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST)]
Loss = Annotated[float, msgspec.Meta(description="of any size, and NaN where it was not finite")]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=str.lower, omit_defaults=True):
    """The base of all records; `kind` on the line is the class's name in lower case."""


class Trial(Record):
    """All nodes are set up and training starts."""

    scenario: str
    trial: str
    seed: Seed
    runtime: str
    nodes: Count
    parameters: Count
    """Number of parameters of the model."""


class Node(Record):
    """A node, named in `name`, changed its state, as the controller sees it."""

    name: str
    state: str
    """expected, started, joined, ready, running, stopped, died, missing, or unresponsive: it missed two checks"""
    incarnation: Count = 0
    pid: Count = 0
    """joined: its process, as the node itself sees it."""
    reason: str = ""
    host: str = ""
    """expected: the host that it is placed on, where there are several."""


class Update(Record):
    """The server applied one push."""

    worker: str
    incarnation: Count
    step: Count
    """The worker's own count of its pushes, from 0."""
    version: Count
    """The model's version after this update: the number of updates applied so far."""
    base: Count
    """The version the gradient was computed at."""
    staleness: Count
    """Updates applied between the worker's pull and this push: version - 1 - base; of a round's mean 0."""
    entries: Count
    """Values in the push."""
    bits: Count
    """What the algorithm needs: a value and an index for each entry, without encoding or framing."""
    bytes: Count
    """Payload received: header and tensor frames."""
    loss: Loss
    """The worker's mini-batch loss."""
    joins: Count = 0
    """How often this incarnation had joined before the join that the push belongs to."""
    sent: Count | None = None
    """Payload of the models handed out to workers before this update was applied, since the one before it; updates of
    one round are applied at once, and its first line has all. None: an older journal does not tell."""


class Step(Record):
    """A layer shard learnt of a mini-batch.

    Where a shard predicts what it matches with what came of the same batch in any epoch, the line also has how far the
    pairs were apart that its modules learnt of since the step before.
    """

    step: Count
    """The mini-batch, counted from 0."""
    history: Count = 0
    """Number of roll-backs of the training so far; of two lines with one step the later history holds."""
    made: Count = 0
    """The last shard: updates of the model that this one completes, as the others make theirs; 0 of the others."""
    every: Every = 1
    """Every n-th mini-batch is the shard's; a step stands for those until its next as well."""
    loss: Loss | None = None
    """The batch's mean loss; None of a shard that sees none."""
    gradient_lag: Lag | None = None
    """Steps by which a gradient that was matched is older than the outputs; negative: newer. None: none was matched."""
    input_lag: Lag | None = None
    """Steps by which inputs that came are older than the step that they had been predicted for; negative: newer. None:
    none came."""


class Diverged(Record):
    """A node computed with, or came to, something not finite: the first time in its incarnation, or in a history."""

    step: Count
    """A worker's own count of its pushes; of a shard the mini-batch; of the evaluator the version of the model."""
    what: str
    """parameter or buffer (of the model as it was given), loss, gradient, update; of a shard also inputs or outputs"""
    tensor: str = ""
    """The parameter or buffer that is not finite, or whose gradient or update is not."""
    incarnation: Count = 0
    history: Count = 0
    """Shards: how often training had been rolled back."""


class Taught(Record):
    """A module learnt what it had predicted, a gradient or inputs; journaled by the node that has it."""

    shard: str
    """Shard that the module belongs to."""
    step: Count
    """The mini-batch, counted from 0."""
    loss: Loss
    """Loss before the step: the squared error, summed over values and averaged over the batch; of a gradient that of
    each example's own loss."""
    history: Count = 0
    """How often training had been rolled back."""
    inputs: bool = False
    """Whether the module predicts inputs."""


class Resumed(Record):
    """The server told all shards to resume from this step: at the beginning, and after each failure."""

    history: Count
    step: Count
    """Steps made until there; what was learnt beyond in earlier histories is rolled back."""
    reason: str = ""


class Progress(Record):
    """How far a layer shard has come in a history: cumulative, by the shard; also when it begins one and leaves one."""

    incarnation: Count
    history: Count
    since: Count
    """Step that all shards resumed from."""
    every: Every = 1
    """Mini-batches from one of its steps to the next."""
    below: str = ""
    """Shard that the inputs come from."""
    begun: Count = 0
    """Steps that the shard has begun."""
    made: Count = 0
    """Begun steps that have a `step` line."""
    outputs_sent: Count = 0
    """Outputs sent up, in (micro-)batches as the next three."""
    inputs_used: Count = 0
    """Inputs from below that the shard went forward with, or learnt to predict."""
    gradients_sent: Count = 0
    """Gradients sent to the shard below."""
    gradients_used: Count = 0
    """Gradients from the shard above that this one learnt from."""


class BackedUp(Record):
    """The server has a backup of all shards after so many steps."""

    history: Count
    step: Count


class Evaluated(Record):
    """The evaluator measured a version of the model on the test set."""

    version: Count
    accuracy: Share
    loss: Loss
    final: bool = False


class Finished(Record):
    """The server applies no more updates."""

    version: Count
    reason: str
    history: Count = 0
    """Layer-wise training: history in which the model came to that version."""


class Refused(Record):
    """A peer's message was understood and refused; nothing of it took effect."""

    peer: str
    code: str
    """As in the message `refuse`; `replayed` where a push came once more, which is answered."""
    reason: str
    count: Count = 1
    """Messages that this line stands for: in a flood only the first have a line each."""
    worker: str = ""
    """Worker whose push was refused, if known; every such push has a line of its own."""
    incarnation: Count = 0
    joins: Count = 0
    step: CountOrNone = -1


class Dropped(Record):
    """A message that could not be read was counted and dropped; nothing of it took effect."""

    socket: str
    reason: str
    count: Count = 1
    """Messages that this line stands for: in a flood only the first have a line each."""


class Unauthenticated(Record):
    """Connections that were refused in the handshake, since their other end did not show the secret of the run."""

    socket: str
    """data or management, by the messages that travel there"""
    count: Count
    """Connections since the line before: one line a second at most."""


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


class Sent(Record):
    """A message left this node (with tracing only)."""

    to: str
    message: str
    version: CountOrNone = -1
    bytes: Count = 0


class Received(Record):
    """A message reached this node (with tracing only)."""

    sender: str
    message: str
    version: CountOrNone = -1
    bytes: Count = 0
    sent_s: Seconds = -1.0
    """When the message's first byte left, in the line's own time; for pushes and models. Negative: not reported."""


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
    """Time in which the node could compute, was entitled to by its cap and pace, and got no core."""
    throttled_s: Seconds | None = None
    """Time in which the node's own CPU cap held it back; None where no cgroup of its own holds one."""
    capped_s: Seconds = 0.0
    """Time in which the node's CPU cap was used up most of the time."""
    capped_cpu_s: Seconds = 0.0
    """CPU time that the node had in `capped_s`."""
    cpus_held: Amount | None = None
    """The CPU cap that its own cgroup holds, in cores."""
    memory_bytes: Count | None = None
    """Highest memory use so far."""
    memory_held_bytes: Count | None = None
    """The memory cap that its own cgroup holds."""
    uplink_bytes: Count | None = None
    """Bytes sent on the wire through the node's own interface; None where it has none."""
    downlink_bytes: Count | None = None
    """Bytes that arrived at that interface, including what the queue behind it then drops."""
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

    Shards, and nodes that serve them, have a line for each pair. A line of the sender's own, without messages, adds to
    `asked_s` what it sent to others at the same time.
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
    """Time that messages would take on links exactly as asked, with nothing else on them; among shards with all that
    they carried then."""
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


class Joined(Record):
    """A worker joined, or came back; by the server."""

    worker: str
    incarnation: Count
    joins: Count = 0
    """How often this incarnation had joined before."""


class Left(Record):
    """A worker has left as far as the server can tell, and its state is released; by the server."""

    worker: str
    incarnation: Count
    reason: str
    """silence, reset (its connection broke and did not come back), or oracle (the controller said so)"""


class Unanswered(Record):
    """A worker gives up waiting for the answer to a push and joins again; by the worker."""

    incarnation: Count
    joins: Count
    """How often this incarnation had joined before the join that the push belongs to."""
    step: CountOrNone
    """The push; -1: none, the worker had only joined."""
    reason: str


class Pushes(Record):
    """How many updates a worker has made in this incarnation: cumulative, by the worker."""

    incarnation: Count
    begun: Count
    """Updates that the worker has begun to compute."""
    pushed: Count
    """Begun updates that the worker has handed to the network."""


class Fault(Record):
    """Something was done to a node on purpose; by the controller, when it is done."""

    name: str
    """Name of the scenario's entry, e.g. freeze-2; `by hand` for a fault made by hand, `on_failure` for a policy's
    restart."""
    action: str
    """kill, launch, freeze, thaw, cut, heal, link, cpus or memory"""
    target: str
    """Node that the fault was done to."""
    asked_s: Seconds
    """When it was to be done, in seconds since the launch; the line's own time is when it was done."""
    trigger: str = ""
    """Trigger of the fault, e.g. `at 30s`, `after-push 12`."""
    change: str = ""
    """Change of the link or cap, e.g. `uplink 1mbit`."""
    problem: str = ""
    """Why it could not be done; empty if it was."""
    moot: str = ""
    """Why there was nothing to do, e.g. the node had died already; empty if there was."""


class Restored(Record):
    """The server resumes, from its log or from a checkpoint; what was applied after that version is lost.

    By the controller.
    """

    version: Count
    incarnation: Count = 0
    """Incarnation of the server that resumes from it."""
    replayed: Count | None = None
    """Updates that the server applied again from its log, so that none was lost; None: it resumes from a checkpoint."""
    log_bytes: Count = 0
    """Size of that log, with its snapshot of the model."""


class Note(Record):
    """Something a reader of the run should know."""

    text: str


class Ended(Record):
    """The trial is over."""

    outcome: str
    """completed, interrupted or failed"""
    reason: str


RECORDS: tuple[type[Record], ...] = (
    Trial, Node, Update, Step, Diverged, Taught, Resumed, Progress, BackedUp, Evaluated, Finished, Refused, Dropped,
    Unauthenticated, Traffic,
    Messages, Phases, ShardPhases, Sent, Received, Link, Usage, Appended, Transfers, Clock, HostLoad, Joined, Left,
    Unanswered, Pushes, Fault, Restored, Note, Ended,
)  # fmt: skip
AnyRecord = (
    Trial | Node | Update | Step | Diverged | Taught | Resumed | Progress | BackedUp | Evaluated | Finished | Refused
    | Dropped | Unauthenticated
    | Traffic | Messages | Phases | ShardPhases | Sent | Received | Link | Usage | Appended | Transfers | Clock
    | HostLoad | Joined | Left | Unanswered | Pushes | Fault | Restored | Note | Ended
)  # fmt: skip
