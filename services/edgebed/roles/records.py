"""What the journal can say. Each record is one line of `events.jsonl`: `{"t": …, "node": …, "kind": …, …}`.

`t` is seconds since the trial was launched (virtual in the simulation), `node` is who says it; training starts with the
`trial` record. The journal is the source of every figure: metrics, summaries, charts and reports are computed from
these records alone.
"""

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=str.lower, omit_defaults=True):
    """The base of all records; `kind` on the line is the class's name in lower case."""


class Trial(Record):
    """All nodes are set up and training starts."""

    scenario: str
    trial: str
    seed: int
    runtime: str
    nodes: int
    parameters: int
    """Number of parameters of the model."""


class Node(Record):
    """A node, named in `name`, changed its state, as the controller sees it."""

    name: str
    state: str
    """expected, started, joined, ready, running, stopped, died or missing"""
    incarnation: int = 0
    pid: int = 0
    """joined: its process, as the node itself sees it."""
    reason: str = ""


class Update(Record):
    """The server applied one push."""

    worker: str
    incarnation: int
    step: int
    """The worker's own count of its pushes, from 0."""
    version: int
    """The model's version after this update: the number of updates applied so far."""
    base: int
    """The version the gradient was computed at."""
    staleness: int
    """Updates applied between the worker's pull and this push: version - 1 - base."""
    entries: int
    """Values in the push."""
    bits: int
    """What the algorithm needs: a value and an index for each entry, without encoding or framing."""
    bytes: int
    """Payload received: header and tensor frames."""
    loss: float
    """The worker's mini-batch loss."""


class Evaluated(Record):
    """The evaluator measured a version of the model on the test set."""

    version: int
    accuracy: float
    loss: float
    final: bool = False


class Finished(Record):
    """The server applies no more updates."""

    version: int
    reason: str


class Refused(Record):
    """A peer's message was understood and refused; nothing of it took effect."""

    peer: str
    code: str
    reason: str
    count: int = 1
    """Messages that this line stands for: of a flood only the first are told apart."""


class Dropped(Record):
    """A message that could not be read was counted and dropped; nothing of it took effect."""

    socket: str
    reason: str
    count: int = 1
    """Messages that this line stands for: of a flood only the first are told apart."""


class Traffic(Record):
    """Bytes through the server's data socket since the trial began."""

    ingress_payload: int
    egress_payload: int
    ingress_interface: int | None = None
    """Bytes received by the network interface in the same time; None in the simulation."""
    egress_interface: int | None = None
    interface: str = ""
    """Its name; `lo` is shared by everything on the machine."""


class Phases(Record):
    """Where a worker's time went since it started, in seconds (live runtimes only)."""

    steps: int
    compute_s: float
    encode_s: float
    wait_s: float
    """Waiting for the server's answer."""
    pause_s: float
    """The emulated pause before a push, and the stretch of a capped CPU."""


class Sent(Record):
    """A message left this node (with tracing only)."""

    to: str
    message: str
    version: int = -1
    bytes: int = 0


class Received(Record):
    """A message reached this node (with tracing only)."""

    sender: str
    message: str
    version: int = -1
    bytes: int = 0


class Note(Record):
    """Something a reader of the run should know."""

    text: str


class Ended(Record):
    """The trial is over."""

    outcome: str
    """completed, interrupted or failed"""
    reason: str


RECORDS: tuple[type[Record], ...] = (
    Trial, Node, Update, Evaluated, Finished, Refused, Dropped, Traffic, Phases, Sent, Received, Note, Ended,
)  # fmt: skip
AnyRecord = (
    Trial | Node | Update | Evaluated | Finished | Refused | Dropped | Traffic | Phases | Sent | Received | Note | Ended
)
