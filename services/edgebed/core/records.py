"""What the journal can say. Each record is one line of `events.jsonl`: `{"t": …, "node": …, "kind": …, …}`.

`t` is seconds since the trial was launched (virtual in the simulation), `node` is who says it; training starts with the
`trial` record. The journal is the source of every figure: metrics, summaries, charts and reports are computed from
these records alone.
"""

from typing import Self

import msgspec

from edgebed.core.actions import Action
from edgebed.core.bounds import Count, Seconds, Seed
from edgebed.core.recorded.measured import (
    Appended,
    Bypass,
    Clock,
    Connections,
    HostLoad,
    Link,
    Messages,
    Phases,
    Seen,
    ShardPhases,
    Traffic,
    Transfers,
    Usage,
)
from edgebed.core.recorded.program import Exited, Measured, Output
from edgebed.core.recorded.record import CountOrNone, Every, Lag, Loss, Record

REASON_LENGTH_MAX = 500
"""Characters of the reason why a node or a trial ended that are journaled; a goodbye may be as long as a message."""


class Trial(Record):
    """All nodes are set up and training starts; a trial that is resumed has another such line."""

    scenario: str
    trial: str
    seed: Seed
    runtime: str
    nodes: Count
    parameters: Count
    """Number of parameters of the model."""
    trained_s: Seconds = 0.0
    """Training before, in seconds: 0 where it starts for the first time."""
    runs_programs: bool = False
    """Whether nodes run programs of the user's, and no model is trained."""


class Continued(Record):
    """A controller resumes a trial whose controller is gone: until its next `trial` line, training time stands still.

    What the server's log brings in between was done without a controller, and takes its time.
    """

    trained_s: Seconds
    """Training until the last that the controller had observed, in seconds."""


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
    one round are applied at once, and its first line has all. None: not counted."""
    beside: Count = 0
    """Bytes of `bytes` that are of vectors which travel beside the model."""
    beside_sent: Count = 0
    """Bytes of `sent` that are of such vectors."""


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
    """The evaluator measured a version of the model on the test part, and on the validation part where there is one."""

    version: Count
    measured: dict[str, Loss]
    """The value of each measure of the task, on the test part; none where each worker has a model of its own."""
    validation: dict[str, Loss] = msgspec.field(default_factory=dict)
    """The value of each on the validation part; empty: the task has none."""
    final: bool = False

    @property
    def selecting(self) -> dict[str, float]:
        """What versions and methods are chosen by: the values on the validation part, else on the test part."""
        return self.validation or self.measured


class Clients(Record):
    """A version of the model was measured client by client: on each client's own examples that are held out.

    By the evaluator; of a method whose workers train alone, by each worker of its own model. Of many clients there are
    several lines.
    """

    version: Count
    clients: tuple[Count, ...]
    """Numbers of the clients, into the plan's `client_names`."""
    measured: dict[str, tuple[Loss, ...]]
    """The value of each measure of the task, by client; NaN where its examples give none."""
    tuned: dict[str, tuple[Loss, ...]] = msgspec.field(default_factory=dict)
    """The values after each client's own fine-tuning; NaN where a client has none; empty: nobody has any."""
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


class AtWork(Record):
    """A worker says that it works on a push, which takes long; by the server."""

    worker: str


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
    action: Action
    """Done action; see [faults](faults.md)."""
    target: str
    """Node that the fault was done to."""
    asked_s: Seconds
    """When it was to be done, in seconds since the launch; the line's own time is when it was done."""
    trigger: str = ""
    """Trigger of the fault, e.g. `at 30s`, `after-push 12`."""
    change: str = ""
    """Change of the link or cap, e.g. `uplink 1mbit`; and between whom, e.g. `between home-1 and home-2`."""
    peer: str = ""
    """The only other node that it was between; empty: all."""
    problem: str = ""
    """Why it could not be done; empty if it was."""
    no_op: str = ""
    """Why there was nothing to do, e.g. the node had died already; empty if there was."""

    @property
    def is_between_two(self) -> bool:
        """Whether the node still reached others: it was cut off from one alone, and that was not the server."""
        return self.peer not in ("", "server")


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

    @classmethod
    def failed(cls, reason: str) -> Self:
        """A failure; of a long reason its beginning."""
        return cls(outcome="failed", reason=reason[:REASON_LENGTH_MAX])


RECORDS: tuple[type[Record], ...] = (
    Trial, Continued, Node, Update, Step, Diverged, Taught, Resumed, Progress, BackedUp, Evaluated, Clients, Finished,
    Refused, Dropped, Unauthenticated, Traffic,
    Messages, Phases, ShardPhases, Sent, Received, Link, Usage, Connections, Bypass, Seen, Appended, Transfers, Clock,
    HostLoad, Joined, Left, AtWork, Unanswered, Pushes, Fault, Restored, Measured, Exited, Output, Note, Ended,
)  # fmt: skip
AnyRecord = (
    Trial | Continued | Node | Update | Step | Diverged | Taught | Resumed | Progress | BackedUp | Evaluated | Clients
    | Finished | Refused | Dropped | Unauthenticated
    | Traffic | Messages | Phases | ShardPhases | Sent | Received | Link | Usage | Connections | Bypass | Seen
    | Appended | Transfers | Clock | HostLoad | Joined | Left | AtWork | Unanswered | Pushes | Fault | Restored
    | Measured | Exited | Output | Note | Ended
)  # fmt: skip
