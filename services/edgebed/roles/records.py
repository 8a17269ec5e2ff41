"""What the journal can say. Each record is one line of `events.jsonl`: `{"t": …, "node": …, "kind": …, …}`.

`t` is seconds since the trial was launched (virtual in the simulation), `node` is who says it; training starts with the
`trial` record. The journal is the source of every figure: metrics, summaries, charts and reports are computed from
these records alone.
"""

from typing import Annotated

import msgspec

LARGEST = 2**53
"""Numbers up to here are exact in JSON, and so many of them fit a column of 64 bits when they are added up."""
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
CountOrNone = Annotated[int, msgspec.Meta(ge=-1, le=LARGEST)]
"""-1: none, or not told."""
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
    """How often training had been rolled back; of two lines with one step the later history holds."""
    made: Count = 0
    """The last shard: updates of the model that this one completes, as the others make theirs; 0 of the others."""
    every: Every = 1
    """The shard learns of every so many mini-batches; a step stands for those until its next as well."""
    loss: Loss | None = None
    """The batch's mean loss; None of a shard that sees none."""
    gradient_lag: Lag | None = None
    """Steps by which a gradient that was matched is older than the outputs; negative: newer. None: none was matched."""
    input_lag: Lag | None = None
    """The same of inputs that came, and the step that they had been predicted for."""


class Diverged(Record):
    """A node computed with something that is not finite, or came to it: the first time in its life, or in a history."""

    step: Count
    """A worker's own count of its pushes; of a shard the mini-batch; of the evaluator the version of the model."""
    what: str
    """parameter or buffer (of the model as it was given), loss, gradient, update; of a shard also inputs or outputs"""
    tensor: str = ""
    """The parameter or buffer that it is, or that it is the gradient or the update of."""
    incarnation: Count = 0
    history: Count = 0
    """Of a shard: how often training had been rolled back."""


class Taught(Record):
    """A module learnt what it had predicted, a gradient or inputs; by whoever has it."""

    shard: str
    """Whose module it is."""
    step: Count
    """The mini-batch, counted from 0."""
    loss: Loss
    """Before: the squared error, summed over values and averaged over the batch; of a gradient that of each example's
    own loss."""
    history: Count = 0
    """How often training had been rolled back."""
    inputs: bool = False
    """Whether it predicts inputs."""


class Resumed(Record):
    """The server told all shards to go on from here: at the beginning, and after each failure."""

    history: Count
    step: Count
    """Steps made until there; what was learnt beyond in earlier histories is rolled back."""
    reason: str = ""


class Progress(Record):
    """How far a layer shard has come in a history: cumulative, by the shard; also when it begins one and leaves one."""

    incarnation: Count
    history: Count
    since: Count
    """The step that all went on from."""
    every: Every = 1
    """Mini-batches from one of its steps to the next."""
    below: str = ""
    """The shard that it gets inputs from."""
    begun: Count = 0
    """Steps that it has begun."""
    made: Count = 0
    """Those of them that have a `step` line."""
    outputs_sent: Count = 0
    """Of (micro-)batches, as the next three: outputs sent up."""
    inputs_used: Count = 0
    """Inputs from below that it went forward with, or learnt to predict."""
    gradients_sent: Count = 0
    """Gradients sent to the shard below."""
    gradients_used: Count = 0
    """Gradients from the shard above that it learnt from."""


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
    """Layer-wise training: in which history the model came to that version."""


class Refused(Record):
    """A peer's message was understood and refused; nothing of it took effect."""

    peer: str
    code: str
    reason: str
    count: Count = 1
    """Messages that this line stands for: of a flood only the first are told apart."""
    worker: str = ""
    """Of a push of a known worker; every one of these has a line of its own."""
    incarnation: Count = 0
    joins: Count = 0
    step: CountOrNone = -1


class Dropped(Record):
    """A message that could not be read was counted and dropped; nothing of it took effect."""

    socket: str
    reason: str
    count: Count = 1
    """Messages that this line stands for: of a flood only the first are told apart."""


class Traffic(Record):
    """Bytes through the server's data socket since the trial began."""

    ingress_payload: Count
    egress_payload: Count
    ingress_interface: Count | None = None
    """Bytes received by the network interface in the same time; None in the simulation."""
    egress_interface: Count | None = None
    interface: str = ""
    """Its name; `lo` is shared by everything on the machine."""
    pulls: Count = 0
    """Models sent to workers."""
    pull_bytes: Count = 0
    """Their payload."""
    pulls_changed: Count = 0
    """Those of them that hold changed entries only."""
    pull_changed_bytes: Count = 0
    ack_bytes: Count | None = None
    """Bytes of packets without payload that it received: acknowledgements of models; None: unknown."""
    tcp_bytes: Count | None = None
    """Bytes of all packets that it received over its own connections, headers included; None: unknown."""

    @property
    def has_own_interface(self) -> bool:
        """Whether the interface's bytes are the node's; those of the loopback are everybody's on the machine."""
        return self.ingress_interface is not None and self.interface != "lo"


class Messages(Record):
    """What a node has received of one kind over one of its connections, of layer-wise training: cumulative, by it."""

    source: str
    """The node at the connection's other end: with a store, that one, whoever made what it hands over."""
    message: str
    """The kind."""
    count: Count
    bytes: Count
    """Payload."""


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
    """Where the time of a shard, or of the node with all gradient modules, went in this life: cumulative, in seconds.

    From its first history on until its last step. Work counts with the stretch of a capped CPU, and with encoding what
    it sends. Every instant is in exactly one of them.
    """

    forward_s: Seconds = 0.0
    """Going forward, or predicting gradients on the node of modules."""
    learn_s: Seconds = 0.0
    """Going back, and the steps."""
    teach_s: Seconds = 0.0
    """Teaching modules what the gradients or inputs were."""
    copy_s: Seconds = 0.0
    """Copying weights and state for evaluations and backups, and going on from them."""
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
    """When its first byte left, in the same time; of pushes and models. Negative: not told."""


class Link(Record):
    """A node's link to the data network: what was asked, and what holds it, read back from where it is held.

    By the node itself, before it may talk, and whenever something of it has changed.
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
    """Nothing is to pass, in either direction."""
    problem: str = ""
    """What differs between asked and held; empty if nothing."""
    differed: Count = 0
    """So many of the node's looks until now, one a second, found that something differs, as the one before had."""
    differences: tuple[str, ...] = ()
    """What did, the first time in each direction."""


class Usage(Record):
    """What a node used since training began, and what it was kept from: cumulative, by the node itself."""

    time_s: Seconds
    """Since training began, or since the node's start if that was later."""
    cpu_s: Seconds
    starved_s: Seconds | None = None
    """It could compute, was entitled to by its own cap and pace, and got no core."""
    throttled_s: Seconds | None = None
    """Its own CPU cap held it back; None where no cgroup of its own holds one."""
    capped_s: Seconds = 0.0
    """Time in which its CPU cap was used up most of the time."""
    capped_cpu_s: Seconds = 0.0
    """CPU time that it had in that."""
    cpus_held: Amount | None = None
    """The CPU cap that its own cgroup holds, in cores."""
    memory_bytes: Count | None = None
    """The highest so far."""
    memory_held_bytes: Count | None = None
    """The memory cap that its own cgroup holds."""
    uplink_bytes: Count | None = None
    """On the wire, through its own interface; None where it has none of its own."""
    downlink_bytes: Count | None = None
    """What has arrived there, also what the queue behind it then drops."""
    uplink_busiest: Amount | None = None
    """Share of what the link may carry that passed, two seconds at a time, in the third-busiest of them."""
    downlink_busiest: Amount | None = None
    uplink_busiest_bit_s: Seconds | None = None
    """The rate in the third-busiest two seconds."""
    downlink_busiest_bit_s: Seconds | None = None
    uplink_packets: Count | None = None
    """Through the queue that limits it; None where there is none."""
    downlink_packets: Count | None = None
    uplink_drops: Count | None = None
    """Packets that this queue dropped."""
    downlink_drops: Count | None = None


class Transfers(Record):
    """How long a worker's messages were on their way, by whoever received them: cumulative.

    Likewise of shards and of those that serve them, for each pair. A line of the sender's own, without messages, adds
    to `asked_s` what it sent to others at the same time.
    """

    name: str
    """The worker; among shards the sender."""
    direction: str
    """up: its pushes, received by the server, or what it sends to `to`; down: its models"""
    messages: Count
    bytes: Count
    """On the wire: with the headers of TCP, IP and Ethernet."""
    time_s: Seconds
    """From the first byte sent to the whole message received, summed over messages."""
    asked_s: Seconds
    """The same for links exactly as asked, with nothing else on them; among shards with all that they carried then."""
    latency_s: Seconds = 0.0
    """The part of `asked_s` that is latency."""
    early: Count = 0
    """Messages that took less than nine tenths of that, jitter allowed for, which no link as asked lets happen."""
    to: str = ""
    """Among shards: the receiver."""
    delay_s: Seconds | None = None
    """The least that the link of `name` held a message back, beyond the time that its bytes need: its latency, as
    measured. By the receiver what came after the first byte had left, by the sender what came before. None: no message
    was small enough to tell."""


class HostLoad(Record):
    """How busy the whole machine was, since the last such record; by the controller."""

    busy: Share
    """Share of all cores' time, from 0 to 1."""
    steal: Share
    """Share that the machine under this one took away."""
    load: Amount
    """Threads that run or wait for a core, per core: the mean of counts some 25 ms apart, without who counts."""
    lag_s: Seconds
    """How much later than asked a sleeping thread woke up: the 99th percentile."""
    cores: Count = 0
    """Of the machine; 0: unknown."""


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
    """A worker gives up waiting for the answer to a push and joins anew; by the worker."""

    incarnation: Count
    joins: Count
    """Of the join that the push belongs to."""
    step: CountOrNone
    """The push; -1: none, it had only joined."""
    reason: str


class Pushes(Record):
    """How many updates a worker has made in this life: cumulative, by the worker."""

    incarnation: Count
    begun: Count
    """Updates that it has begun to compute."""
    pushed: Count
    """Those of them that it has handed to the network."""


class Fault(Record):
    """Something was done to a node on purpose; by the controller, when it is done."""

    name: str
    """Of the scenario's entry, e.g. freeze-2; of one made by hand, `by hand`; of a policy's restart, `on_failure`."""
    action: str
    """kill, launch, freeze, thaw, cut, heal, link, cpus or memory"""
    target: str
    """The node."""
    asked_s: Seconds
    """When it was to be done, in seconds since the launch, as this line's time is that of its being done."""
    trigger: str = ""
    """What made it happen, e.g. `at 30s`, `after-push 12`."""
    change: str = ""
    """What of a link or a cap changed, e.g. `uplink 1mbit`."""
    problem: str = ""
    """Why it could not be done; empty if it was."""
    moot: str = ""
    """Why there was nothing to do, e.g. the node had died already; empty if there was."""


class Restored(Record):
    """The server goes on from a checkpoint; what was applied after that version is lost. By the controller."""

    version: Count
    incarnation: Count = 0
    """Of the server that goes on from it."""


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
    Traffic,
    Messages, Phases, ShardPhases, Sent, Received, Link, Usage, Transfers, HostLoad, Joined, Left, Unanswered, Pushes,
    Fault, Restored, Note, Ended,
)  # fmt: skip
AnyRecord = (
    Trial | Node | Update | Step | Diverged | Taught | Resumed | Progress | BackedUp | Evaluated | Finished | Refused
    | Dropped
    | Traffic | Messages | Phases | ShardPhases | Sent | Received | Link | Usage | Transfers | HostLoad | Joined | Left
    | Unanswered | Pushes | Fault | Restored | Note | Ended
)  # fmt: skip
