"""Every message that nodes exchange, declared once: the codec, its validation and docs/protocol.md come from here.

A message is one header frame, a MessagePack array `[kind, protocol, sender, …fields in order]`, followed by the raw
frames of the tensors that the header names. Numbers in tensors are little-endian. Nothing is ever pickled.

The *data* messages travel between nodes over the shaped, counted data network. The *management* messages travel between
the controller and each node over a network of their own, so that watching a run costs the run nothing.
"""

from typing import Annotated, Literal

import msgspec

from edgebed.roles.records import AnyRecord, Count
from edgebed.scenario.plan import Injection, Link, NodePlan

PROTOCOL = 5

Name = Annotated[str, msgspec.Meta(max_length=128)]
Text = Annotated[str, msgspec.Meta(max_length=4096)]
Seconds = Annotated[float, msgspec.Meta(ge=-1.0, le=2**53)]
"""Of the trial, and finite; negative: not told."""


class Tensor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """How one tensor travels; its bytes follow in frames of at most 256 KiB."""

    name: str
    """What the message calls it."""
    dtype: str
    """`float32`, `float16`, `int8`, `uint8`, `int64` or `int32`, little-endian."""
    shape: tuple[int, ...]
    """At most 8 lengths; positions in a sparse tensor are those in C order."""
    encoding: Literal["dense", "sparse", "scaled"]
    """`dense`: all entries in C order. `sparse`: the chosen positions, then the chosen values. `scaled`: a float32 that
    says what a value of 1 stands for, then all entries in C order."""
    entries: int
    """Values that travel."""
    index_bytes: int = 0
    """`sparse`: length of the encoded positions."""
    packed_bytes: int = 0
    """Length of all its bytes packed with DEFLATE (RFC 1950); 0: they are not packed."""


class Message(
    msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True, tag=str.lower, gc=False
):
    """The base of all messages; `kind` on the wire is the class's name in lower case.

    `kw_only` in every subclass as well: msgspec then puts these two fields first, where a stranger looks for them.
    """

    protocol: int = PROTOCOL
    """The version of this protocol; another one is refused."""
    sender: Name
    """The node's name."""


class SharedLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that several nodes have, but for where in its period each begins."""

    link: Link
    offsets: tuple[tuple[Name, float], ...]
    """Each node, and its own offset in seconds."""


class Join(Message, kw_only=True):
    """Worker to server: I take part from now on, and need the model."""

    incarnation: Count
    """Given by the controller, one more at every restart; what an older incarnation sends is refused."""
    joins: Count = 0
    """How often this incarnation has joined before; what belongs to an earlier join is refused."""


class Push(Message, kw_only=True):
    """Worker to server: an update of the model. The answer is a `model` when the method lets the worker go on."""

    incarnation: Count
    """That of its join."""
    joins: Count = 0
    """That of its join."""
    step: Count
    """The worker's own count of its pushes, from 0."""
    base: Count
    """The version of the model that the update was computed at."""
    loss: float
    """Mean mini-batch loss at that version."""
    examples: Count = 1
    """That the worker has."""
    sent_s: Seconds = -1.0
    """When its first byte left, in seconds of the trial; set by the shell. Negative: not told."""
    tensors: tuple[Tensor, ...]
    """One, called `update`, of the model's flat shape, or what else the method's compression sends instead."""


class Pull(Message, kw_only=True):
    """Evaluator to server: send the model as soon as it has reached a version."""

    at_version: Count
    """0, or any version in the past: at once."""


class Model(Message, kw_only=True):
    """Server to worker or evaluator: the model."""

    version: Count
    """The number of updates applied to it."""
    final: bool
    """No update will follow."""
    since: Count | None = None
    """None: the whole model. Else what the worker, which has this version, lacks: the entries that changed since; or
    with a `downlink` of the method an update of what it has."""
    joins: Count = 0
    """Of the worker's join that it answers, or that the push belongs to which it answers; an older one is not used."""
    sent_s: Seconds = -1.0
    """When its first byte left, in seconds of the trial; set by the shell. Negative: not told."""
    tensors: tuple[Tensor, ...]
    """One, called `theta`, of the model's flat shape; or what the method's downlink sends instead."""


class Refuse(Message, kw_only=True):
    """Server or controller to anybody: your message was understood and had no effect."""

    code: Literal[
        "unknown-node", "stale-incarnation", "not-joined", "malformed", "finished", "duplicate", "late", "other-code"
    ]
    """What is wrong, for programs; see below."""
    reason: Text
    """What is wrong, for people."""


class Activation(Message, kw_only=True):
    """Shard to the one above: the outputs of a (micro-)batch. The answer is a `gradient`, or `taken`."""

    history: Count
    """How often training had been rolled back; what belongs to an earlier history is dropped."""
    step: Count
    """The mini-batch, counted from 0."""
    micro: Count = 0
    """Its part, counted from 0."""
    sent_s: Seconds = -1.0
    """When its first byte left, in seconds of the trial; set by the shell. Negative: not told."""
    tensors: tuple[Tensor, ...]
    """One, called `h`, of the shape of a batch."""


class Gradient(Message, kw_only=True):
    """Shard to the one below: the gradient of the batch's mean loss by what an `activation` had brought."""

    history: Count
    """As in the activation."""
    step: Count
    """As in the activation."""
    micro: Count = 0
    """As in the activation."""
    sent_s: Seconds = -1.0
    """When its first byte left, in seconds of the trial; set by the shell. Negative: not told."""
    tensors: tuple[Tensor, ...]
    """One, called `gradient`, of the activation's shape."""


class Taken(Message, kw_only=True):
    """Shard to the one below, where no gradient goes down: there is room for another activation.

    Where things are kept by the number of their batch, shard or store to whoever made something: it has come.
    """

    history: Count
    """As in the activation."""
    step: Count
    """As in the activation."""
    micro: Count = 0
    """As in the activation."""


class Fetch(Message, kw_only=True):
    """Shard to store: hand over what another shard has made, as soon as it is there.

    Where things are kept by the number of their batch, it is the newest of the step's batch.
    """

    of: Name
    """Who makes it."""
    what: Literal["activation", "answer"]
    """Its outputs; or what it answers to ours, a `gradient` or `taken`."""
    history: Count
    """As in what is asked for."""
    step: Count
    """As in what is asked for."""
    micro: Count = 0
    """As in what is asked for."""


class Backup(Message, kw_only=True):
    """Shard to server: its weights, or all that its training depends on, after a number of steps."""

    history: Count
    """How often training had been rolled back; what belongs to an earlier history is dropped."""
    step: Count
    """Steps made."""
    tensors: tuple[Tensor, ...]
    """One flat tensor, `weights` or `state`."""


class Resume(Message, kw_only=True):
    """Server to shard: go on from here, as all others do."""

    history: Count
    """How often training has been rolled back until now."""
    step: Count
    """Steps made until there: the next mini-batch is the one of this number."""
    tensors: tuple[Tensor, ...]
    """One flat tensor, `weights` to begin with, or the `state` of a backup."""


class Hello(Message, kw_only=True):
    """Node to controller: I am up."""

    pid: Count
    """Its process, as it sees itself."""
    code: Name = ""
    """The fingerprint of its code, which must be the controller's own."""


class Configure(Message, kw_only=True):
    """Controller to node: this is what you are."""

    incarnation: Count
    """1, and one more at every restart."""
    epoch_ns: int
    """The machine's monotonic clock at the trial's time 0."""
    plan: NodePlan
    """All that the node needs to know of the trial."""
    peers: tuple[str, ...]
    """Server: the names that may join."""
    tensors: tuple[Tensor, ...]
    """`theta`, the model, and `state`, what a checkpoint or a backup has besides (server); or `x` and `y`, the node's
    own part of the data, with `constants`, the bytes of what training does not change of the model, if there are
    any."""
    sources: tuple[tuple[Name, str], ...] = ()
    """The user's own modules, where the node does not see the controller's files: a path like `nets/tiny.py`, text."""
    version: Count = 0
    """Server: the version of the model that it is given; above 0 it goes on from a checkpoint."""
    backup_step: Count = 0
    """Server of shards: the step of the backup that it goes on from."""
    backup_parts: tuple[tuple[Name, Count], ...] = ()
    """As in `keep`; empty: there is none."""
    links: tuple[SharedLink, ...] = ()
    """Those at the other end of its messages: for the server its workers', for a worker the server's."""


class Ready(Message, kw_only=True):
    """Node to controller: I am set up and can be reached here."""

    data_address: Name = ""
    """Where others connect, if they do."""
    management_address: Name = ""
    """Server: where the evaluator connects."""
    metrics_address: Name = ""
    """`host:port` of the node's Prometheus metrics."""


class Start(Message, kw_only=True):
    """Controller to node: begin. Sent again when a node that it connects to has been started anew, and is elsewhere."""

    addresses: tuple[tuple[Name, Name], ...] = ()
    """The nodes to connect to, and where each is; the evaluator's is on the management network."""
    began_s: float = 0.0
    """When training began, in seconds of the trial: what changes with time counts from here."""
    workers: tuple[Name, ...] = ()
    """Parameter server: those that begin together with it, or are in training already, and will join."""


class Report(Message, kw_only=True):
    """Node to controller: what there is to journal, as (time, record)."""

    first: Count
    """How many records this incarnation has reported before: a gap tells of records lost."""
    records: tuple[tuple[float, AnyRecord], ...]
    """Seconds of the trial, and a record of the journal."""


class Alive(Message, kw_only=True):
    """Node to controller: a sign of life, from a connection of its own."""

    incarnation: Count
    """As configured."""


class Reached(Message, kw_only=True):
    """Worker to controller: I am where a fault waits for me, and do nothing until told to proceed."""

    fault: Count
    """Its place in the plan."""
    step: Count
    """The push that it is about, counted from 0 in this incarnation."""


class Proceed(Message, kw_only=True):
    """Controller to worker: the fault has been done, and did not end you."""


class Inject(Message, kw_only=True):
    """Controller to node: this is being done to you; do the part of it that is yours.

    What the kernel does not hold (a link, a CPU cap) the node itself does; either way it knows what is asked for now.
    """

    injection: Injection
    """What is done."""


class Failed(Message, kw_only=True):
    """Controller to server, with `detector: oracle` alone: this worker has failed."""

    node: Name
    """The worker."""
    incarnation: Count
    """The life that has failed."""


class Checkpoint(Message, kw_only=True):
    """Server to controller: the model to keep."""

    version: Count
    """The number of updates applied to it."""
    final: bool = False
    """No update will follow."""
    tensors: tuple[Tensor, ...]
    """`theta`, of the model's flat shape; and `state`, bytes of float64, where the aggregation remembers more."""


class Keep(Message, kw_only=True):
    """Server to controller: a backup of all shards, to go on from when the server is started anew."""

    step: Count
    """Steps made."""
    parts: tuple[tuple[Name, Count], ...]
    """Each shard, and the length of its state; one after the other they are the tensor."""
    tensors: tuple[Tensor, ...]
    """One flat tensor, called `state`."""


class RollBack(Message, kw_only=True):
    """Controller to server: all shards are to go on from this backup, whatever they have learnt since."""

    step: Count
    """Steps made."""
    parts: tuple[tuple[Name, Count], ...]
    """As in `keep`."""
    tensors: tuple[Tensor, ...]
    """One flat tensor, called `state`."""


class Finish(Message, kw_only=True):
    """Controller to server: apply no more updates. To the evaluator: ask for the model now, it is final."""

    reason: Text
    """Why the training is over."""


class Stop(Message, kw_only=True):
    """Controller to node: end now."""

    reason: Text
    """Why the trial is over."""
    linger_s: float = 0.0
    """For at most so long, serve metrics until Prometheus has read the last ones; a second `stop` ends that at once."""


class Bye(Message, kw_only=True):
    """Node to controller: I have said all and end."""

    reason: Text
    """Why it ends."""


DATA: tuple[type[Message], ...] = (Join, Push, Pull, Model, Activation, Gradient, Taken, Fetch, Backup, Resume, Refuse)
MANAGEMENT: tuple[type[Message], ...] = (
    Hello, Configure, Ready, Start, Report, Alive, Reached, Proceed, Inject, Failed, Checkpoint, Keep,
    RollBack, Finish, Stop, Bye,
    Refuse,
)  # fmt: skip

PIECES = (("update",), ("levels", "scales"), ("factors", "whole"))
"""What compressions send."""
TENSORS: dict[type[Message], tuple[tuple[str, ...], ...]] = {
    Push: (*PIECES, *((*names, "kept") for names in PIECES)),
    Model: (("theta",), *PIECES, *((*names, "kept") for names in PIECES)),
    Activation: (("h",),),
    Gradient: (("gradient",),),
    Backup: (("weights",), ("state",)),
    Resume: (("weights",), ("state",)),
    Checkpoint: (("theta",), ("theta", "state")),
    Keep: (("state",),),
    RollBack: (("state",),),
    Configure: (("theta",), ("theta", "state"), ("x", "y"), ("x", "y", "constants")),
}
"""The names of the tensors that a message carries, in order; a choice of such where there are several."""

DataMessage = Join | Push | Pull | Model | Activation | Gradient | Taken | Fetch | Backup | Resume | Refuse
ManagementMessage = (
    Hello | Configure | Ready | Start | Report | Alive | Reached | Proceed | Inject | Failed | Checkpoint | Keep
    | RollBack | Finish | Stop | Bye | Refuse
)  # fmt: skip
AnyMessage = DataMessage | ManagementMessage
