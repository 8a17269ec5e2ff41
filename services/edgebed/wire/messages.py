"""Every message that nodes exchange, declared once: the codec, its validation and docs/protocol.md come from here.

A message is one header frame, a MessagePack array `[kind, protocol, sender, …fields in order]`, followed by the raw
frames of the tensors that the header names. Numbers in tensors are little-endian. Nothing is ever pickled.

The *data* messages travel between nodes over the shaped, counted data network. The *management* messages travel between
the controller and each node over a network of their own, so that watching a run costs the run nothing.
"""

from typing import Annotated, Literal

import msgspec

from edgebed.core.plan import TrainingNode
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkPlan
from edgebed.core.records import AnyRecord, Count

PROTOCOL = 10

Name = Annotated[str, msgspec.Meta(max_length=128)]
Text = Annotated[str, msgspec.Meta(max_length=4096)]
Seconds = Annotated[float, msgspec.Meta(ge=-1.0, le=2**53)]
"""Seconds of the trial, finite; negative: not reported."""


class Tensor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """How one tensor travels; its bytes follow in frames of at most 256 KiB."""

    name: str
    """Name of the tensor in the message."""
    dtype: str
    """`float32`, `float16`, `int8`, `uint8`, `int64` or `int32`, little-endian."""
    shape: tuple[int, ...]
    """At most 8 lengths; positions in a sparse tensor are those in C order."""
    encoding: Literal["dense", "sparse", "scaled"]
    """`dense`: all entries in C order. `sparse`: the chosen positions, then the chosen values. `scaled`: a float32 that
    says what a value of 1 stands for, then all entries in C order."""
    entries: int
    """Number of values that travel."""
    index_bytes: int = 0
    """`sparse`: length of the encoded positions."""
    packed_bytes: int = 0
    """Length of all the tensor's bytes packed with DEFLATE (RFC 1950); 0: they are not packed."""


class Message(
    msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True, tag=str.lower, gc=False
):
    """The base of all messages; `kind` on the wire is the class's name in lower case.

    `kw_only` in every subclass as well: msgspec then puts these two fields first, where a stranger looks for them.
    """

    protocol: int = PROTOCOL
    """The version of this protocol; another one is refused."""
    sender: Name
    """Name of the sending node."""


class SharedLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that several nodes have, except for where in its period each begins."""

    link: LinkPlan
    offsets: tuple[tuple[Name, float], ...]
    """Each node, and its own offset in seconds."""


class Join(Message, kw_only=True):
    """Worker to server: I take part from now on, and need the model."""

    incarnation: Count
    """Incarnation of the worker, given by the controller, one more at every restart; what an older one sends is
    refused."""
    joins: Count = 0
    """How often this incarnation has joined before; what belongs to an earlier join is refused."""


class Push(Message, kw_only=True):
    """Worker to server: an update of the model. The answer is a `model` when the method lets the worker go on."""

    incarnation: Count
    """Incarnation of the worker, as in its join."""
    joins: Count = 0
    """Earlier joins of the incarnation, as in its join."""
    step: Count
    """The worker's own count of its pushes, from 0."""
    base: Count
    """The version of the model that the update was computed at."""
    loss: float
    """Mean mini-batch loss at that version."""
    examples: Count = 1
    """Examples that the worker has."""
    steps: Annotated[int, msgspec.Meta(ge=1, le=2**53)] = 1
    """Mini-batches that the update is of."""
    sent_s: Seconds = -1.0
    """When the message's first byte left, in seconds of the trial; set by the shell. Negative: not reported."""
    tensors: tuple[Tensor, ...]
    """One tensor, called `update`, of the model's flat shape, or what else the method's compression sends instead; of a
    vector beside the model such behind its name and a slash."""


class Working(Message, kw_only=True):
    """Worker to server: I am at work on a push, which takes long. There is no answer, and the model does not change."""


class Pull(Message, kw_only=True):
    """Evaluator to server: send the model as soon as it has reached a version."""

    at_version: Count
    """Version to wait for. One in the past: at once, the oldest that is stored of it and those after it, or else the
    present one, as for 0 when that is in the past. When training is over, and none is stored: the final model."""


class Model(Message, kw_only=True):
    """Server to worker or evaluator: the model."""

    version: Count
    """The number of updates applied to it."""
    final: bool
    """Whether no update will follow."""
    since: Count | None = None
    """Version that the worker has; the tensors are what it lacks: the entries that changed since, or with a `downlink`
    of the method an update of what it has. None: the whole model."""
    joins: Count = 0
    """Join of the worker that the message answers, or that the push it answers belongs to; an older one is not used."""
    sent_s: Seconds = -1.0
    """When the message's first byte left, in seconds of the trial; set by the shell. Negative: not reported."""
    tensors: tuple[Tensor, ...]
    """One tensor, called `theta`, of the model's flat shape, and one of each vector beside it; or what the method's
    downlink sends instead."""


class Refuse(Message, kw_only=True):
    """Server or controller to anybody: your message was understood and had no effect."""

    code: Literal[
        "unknown-node", "stale-incarnation", "not-joined", "malformed", "finished", "duplicate", "late", "not-finite",
        "other-code", "unasked",
    ]  # fmt: skip
    """What is wrong, for programs; see below."""
    reason: Text
    """What is wrong, for people."""


class Activation(Message, kw_only=True):
    """Shard to the one above: the outputs of a (micro-)batch. The answer is a `gradient`, or `taken`."""

    history: Count
    """Number of roll-backs of the training so far; what belongs to an earlier history is dropped."""
    step: Count
    """The mini-batch, counted from 0."""
    micro: Count = 0
    """Part of the mini-batch, counted from 0."""
    sent_s: Seconds = -1.0
    """When the message's first byte left, in seconds of the trial; set by the shell. Negative: not reported."""
    tensors: tuple[Tensor, ...]
    """One tensor, called `h`, of the shape of a batch."""


class Gradient(Message, kw_only=True):
    """Shard to the one below: the gradient of the batch's mean loss by what an `activation` had brought."""

    history: Count
    """History of the activation."""
    step: Count
    """Step of the activation."""
    micro: Count = 0
    """Part of the activation."""
    sent_s: Seconds = -1.0
    """When the message's first byte left, in seconds of the trial; set by the shell. Negative: not reported."""
    tensors: tuple[Tensor, ...]
    """One tensor, called `gradient`, of the activation's shape."""


class Taken(Message, kw_only=True):
    """Shard to the one below, where no gradient goes down: there is room for another activation.

    Where things are stored by the number of their batch, shard or store to whoever made something: it has come.
    """

    history: Count
    """History of the activation."""
    step: Count
    """Step of the activation."""
    micro: Count = 0
    """Part of the activation."""


class Fetch(Message, kw_only=True):
    """Shard to store: hand over what another shard has made, as soon as it is there.

    Where things are stored by the number of their batch, the newest of the step's batch is handed over.
    """

    of: Name
    """Node that makes what is asked for."""
    what: Literal["activation", "answer"]
    """Outputs of that node; or its answer to ours, a `gradient` or `taken`."""
    history: Count
    """History of what is asked for."""
    step: Count
    """Step of what is asked for."""
    micro: Count = 0
    """Part of what is asked for."""


class Backup(Message, kw_only=True):
    """Shard to server: its weights, or all that its training depends on, after a number of steps."""

    history: Count
    """Number of roll-backs of the training so far; what belongs to an earlier history is dropped."""
    step: Count
    """Steps that the shard has made."""
    tensors: tuple[Tensor, ...]
    """One flat tensor, `weights` or `state`."""


class Resume(Message, kw_only=True):
    """Server to shard: resume from here, as all others do."""

    history: Count
    """Number of roll-backs of the training so far."""
    step: Count
    """Steps made until there, and so the number of the next mini-batch."""
    tensors: tuple[Tensor, ...]
    """One flat tensor, `weights` to begin with, or the `state` of a backup."""


class Hello(Message, kw_only=True):
    """Node to controller: I am up."""

    pid: Count
    """Process number of the node, as it sees itself."""
    code: Name = ""
    """Fingerprint of the node's code, which must be the controller's own."""


class Configure(Message, kw_only=True):
    """Controller to node: this is what you are."""

    incarnation: Count
    """Incarnation of the node: 1, and one more at every restart."""
    epoch_ns: int
    """Controller's monotonic clock at the trial's time 0."""
    clock: Name = ""
    """Name of that clock; a node that reads another one measures its offset."""
    errors: tuple[tuple[Name, Seconds], ...] = ()
    """Nodes that messages come from, and how far their times may be wrong, as in `errors`; others' are right."""
    plan: TrainingNode
    """All that the node needs to know of the trial."""
    peers: tuple[str, ...]
    """Server: the names that may join."""
    tensors: tuple[Tensor, ...]
    """`theta`, the model, and `state`, what a checkpoint or a backup has besides (server); or `x` and `y`, the node's
    own part of the data, with `constants`, the bytes of what training does not change of the model, if there are
    any."""
    sources: tuple[tuple[Name, str], ...] = ()
    """User's own modules, where the node does not see the controller's files: a path like `nets/tiny.py`, text."""
    version: Count = 0
    """Server: version of the model that it is given; above 0 it resumes from a checkpoint."""
    backup_step: Count = 0
    """Server of shards: step of the backup that it resumes from."""
    backup_parts: tuple[tuple[Name, Count], ...] = ()
    """Parts of that backup, as in `keep`; empty: there is none."""
    links: tuple[SharedLink, ...] = ()
    """Links at the other end of the node's messages: for the server its workers', for a worker the server's."""


class Built(Message, kw_only=True):
    """Node to controller: I am built; hold my CPU cap. `ready` follows when the kernel does.

    Only nodes with a cgroup of their own send it: until then they have a core to start with.
    """


class Ready(Message, kw_only=True):
    """Node to controller: I am set up and can be reached here."""

    data_address: Name = ""
    """Address to which other nodes connect, if they do."""
    management_address: Name = ""
    """Server: address to which the evaluator connects."""
    metrics_address: Name = ""
    """`host:port` of the node's Prometheus metrics."""
    version: Count = 0
    """Server that went on from its log: version of its model."""
    replayed: Count | None = None
    """Server: updates that it applied again from its log; None: there was none."""
    log_bytes: Count = 0
    """Server: size of that log."""
    durable: Count | None = None
    """Server: records that come of its log's entries, of all incarnations; None: it keeps no log."""


class Start(Message, kw_only=True):
    """Controller to node: begin. Sent again when a node that it connects to was restarted, and has another address."""

    addresses: tuple[tuple[Name, Name], ...] = ()
    """Nodes to connect to, and where each is; the evaluator's is on the management network."""
    began_s: float = 0.0
    """When training began, in seconds of the trial: what changes with time counts from here."""
    workers: tuple[Name, ...] = ()
    """Parameter server: workers that begin together with it, or are in training already, and will join."""
    goes_on: bool = False
    """Worker: the server remembers what the one before it did; what it has not answered is to be pushed once more."""


class Incarnations(Message, kw_only=True):
    """Controller to parameter server, before workers begin: their incarnations; no later one may join."""

    workers: tuple[tuple[Name, Count], ...]
    """Workers, and the present incarnation of each."""


class Report(Message, kw_only=True):
    """Node to controller: what there is to journal, as (time, record)."""

    first: Count
    """Number of records that this incarnation has reported before: a gap shows that records were lost."""
    records: tuple[tuple[float, AnyRecord], ...]
    """Seconds of the trial, and a record of the journal."""
    durable: Count | None = None
    """Server with a log: records that come of its entries, of all incarnations, which came before those of this report;
    what the controller has already is reported again by a server that comes back."""


class Journaled(Message, kw_only=True):
    """Controller to server with a log: the journal has so many of the records that come of its entries."""

    durable: Count
    """Number of these records, of all incarnations."""


class Alive(Message, kw_only=True):
    """Node to controller: a heartbeat, over a connection of its own."""

    incarnation: Count
    """Incarnation of the node, as configured."""


class AskTime(Message, kw_only=True):
    """Node to controller, over the connection of its heartbeats: tell me the time."""

    asked_ns: int
    """Node's own monotonic clock."""


class TellTime(Message, kw_only=True):
    """Controller to node: the time, by the controller's monotonic clock."""

    asked_ns: int
    """The question's."""
    heard_ns: int
    """When the question was read."""
    told_ns: int
    """When the answer was sent."""


class Errors(Message, kw_only=True):
    """Controller to node: how far the times of nodes may be wrong that messages come from."""

    nodes: tuple[tuple[Name, Seconds], ...]
    """Nodes, and the error of their clocks in seconds, as they have measured it."""


class Reached(Message, kw_only=True):
    """Worker to controller: I am where a fault waits for me, and do nothing until told to proceed."""

    fault: Count
    """Index of the fault in the plan."""
    step: Count
    """Push that the fault is about, counted from 0 in this incarnation."""


class Proceed(Message, kw_only=True):
    """Controller to worker: the fault has been done, and did not end you."""


class Inject(Message, kw_only=True):
    """Controller to node: this is being done to you; do the part of it that is yours.

    What the kernel does not hold (a link, a CPU cap) the node itself does; either way it knows what is asked for now.
    """

    injection: Injection
    """Injection that is done."""


class Failed(Message, kw_only=True):
    """Controller to server, with `detector: oracle` alone: this worker has failed."""

    node: Name
    """Name of the worker that has failed."""
    incarnation: Count
    """Incarnation that has failed."""


class Checkpoint(Message, kw_only=True):
    """Server to controller: the model to store."""

    version: Count
    """Number of updates applied to the model."""
    final: bool = False
    """Whether no update will follow."""
    tensors: tuple[Tensor, ...]
    """`theta`, of the model's flat shape; and `state`, bytes of what the aggregation remembers beside it."""


class Keep(Message, kw_only=True):
    """Server to controller: a backup of all shards, to resume from when the server is restarted."""

    step: Count
    """Steps made until the backup."""
    parts: tuple[tuple[Name, Count], ...]
    """Each shard, and the length of its state; one after the other they are the tensor."""
    tensors: tuple[Tensor, ...]
    """One flat tensor, called `state`."""


class RollBack(Message, kw_only=True):
    """Controller to server: all shards are to resume from this backup, whatever they have learnt since."""

    step: Count
    """Steps made until the backup."""
    parts: tuple[tuple[Name, Count], ...]
    """Parts of the backup, as in `keep`."""
    tensors: tuple[Tensor, ...]
    """One flat tensor, called `state`."""


class Finish(Message, kw_only=True):
    """Controller to server: apply no more updates. To the evaluator: ask for the model now, it is final.

    To a worker with a model of its own: measure it.
    """

    reason: Text
    """Why the training is over."""
    version: Count = 0
    """To a worker: version of the server's model."""


class Stop(Message, kw_only=True):
    """Controller to node: end now."""

    reason: Text
    """Why the trial is over."""
    linger_s: float = 0.0
    """Seconds at most to serve metrics until Prometheus has read the last ones; a second `stop` ends that at once."""


class Bye(Message, kw_only=True):
    """Node to controller: I have reported everything and end."""

    reason: Text
    """Why the node ends."""
    recurs: bool = False
    """Whether it would end in the same way if it were started anew."""


DATA: tuple[type[Message], ...] = (
    Join, Push, Working, Pull, Model, Activation, Gradient, Taken, Fetch, Backup, Resume, Refuse,
)  # fmt: skip
MANAGEMENT: tuple[type[Message], ...] = (
    Hello, Configure, Built, Ready, Start, Incarnations, Report, Journaled, Alive, AskTime, TellTime, Errors, Reached,
    Proceed, Inject, Failed, Checkpoint, Keep, RollBack, Finish, Stop, Bye, Refuse,
)  # fmt: skip

COMPRESSED: tuple[type[Message], ...] = (Push, Model)
"""They may carry what a compression makes of an update, under names of its own; whoever restores it knows these."""
PIECES_MAX = 16
"""Tensors of such a message."""
ARRAYS_MAX = 64
"""Tensors of a `Configure`: arrays of examples have names of their own, behind what they are and a slash."""
TENSORS: dict[type[Message], tuple[tuple[str, ...], ...]] = {
    Push: (("update",), ("update", "kept")),
    Model: (("theta",), ("update",), ("update", "kept")),
    Activation: (("h",),),
    Gradient: (("gradient",),),
    Backup: (("weights",), ("state",)),
    Resume: (("weights",), ("state",)),
    Checkpoint: (("theta",), ("theta", "state")),
    Keep: (("state",),),
    RollBack: (("state",),),
    Configure: (("theta",), ("theta", "state"), ("inputs/", "targets/"), ("inputs/", "targets/", "constants")),
}
"""The names of the tensors that a message carries, in order; a choice of such where there are several, and of examples
and of what is compressed the most common."""

DataMessage = Join | Push | Working | Pull | Model | Activation | Gradient | Taken | Fetch | Backup | Resume | Refuse
ManagementMessage = (
    Hello | Configure | Built | Ready | Start | Incarnations | Report | Journaled | Alive | AskTime | TellTime
    | Errors | Reached | Proceed | Inject | Failed | Checkpoint | Keep | RollBack | Finish | Stop | Bye | Refuse
)  # fmt: skip
AnyMessage = DataMessage | ManagementMessage
