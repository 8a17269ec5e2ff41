"""What goes into a heart and what comes out.

A heart is `handle(event, now) -> list[Effect]`: deterministic, it owns its state and does nothing else. Shells turn the
world into events and carry the effects out (see runtimes/). Nothing handed to an effect is written afterwards.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from edgebed.core.planned.fault import Injection, Point
from edgebed.core.records import Record
from edgebed.roles.server.entries import AnyEntry
from edgebed.roles.work import Job, Result
from edgebed.wire.messages import AnyMessage
from edgebed.wire.tensors import Buffer


class MessageReceived(msgspec.Struct, frozen=True, gc=False):
    """A message arrived, its sizes checked."""

    peer: str
    """Connection that the message came on, where an answer goes."""
    message: AnyMessage
    frames: Sequence[Buffer]
    bytes: int
    """Payload of the whole message."""


class Computed(msgspec.Struct, frozen=True, gc=False):
    """What a Compute effect asked for is done."""

    result: Result


class Woken(msgspec.Struct, frozen=True, gc=False):
    """The time of a Wake effect has come."""

    token: str
    load: float = 0.0
    """While a trial starts: how many threads want each core of the controller's machine; 0: not known, or none do."""


class Connected(msgspec.Struct, frozen=True, gc=False):
    """Worker, evaluator: the connection to the server had broken, and is back; what was on its way is lost."""


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """Server only: the connection of a peer broke; what had come on it has been received before."""

    peer: str


class AtPoint(msgspec.Struct, frozen=True, gc=False):
    """Worker only: what an Await effect asked for has come."""

    point: Point


class NodeStarted(msgspec.Struct, frozen=True, gc=False):
    """Controller only: a node's process or container runs; it says hello by itself."""

    node: str


class NodeExited(msgspec.Struct, frozen=True, gc=False):
    """Controller only: a node's process or container ended."""

    node: str
    reason: str


class ProgramExited(msgspec.Struct, frozen=True, gc=False):
    """Controller of programs only: a node's program ended, and whatever it had started."""

    node: str
    code: int | None = None
    """Its exit code; None: a signal ended it, or it could not be started."""
    signal: str = ""
    oom: bool = False
    left: int = 0
    """Processes of its that were still there, and were killed."""
    said: str = ""
    """What else is known of its end, e.g. its last line."""


class ReadySeen(msgspec.Struct, frozen=True, gc=False):
    """Controller of programs only: a node's program shows that it is ready."""

    node: str


class LineSeen(msgspec.Struct, frozen=True, gc=False):
    """Controller of programs only: a node's program printed a line that tells measures, or ends the trial."""

    node: str
    measured: dict[str, float]
    is_end: bool = False


class HealthChecked(msgspec.Struct, frozen=True, gc=False):
    """Controller only: a check is over; these nodes have sent a heartbeat since the last."""

    alive: frozenset[str]


class Injected(msgspec.Struct, frozen=True, gc=False):
    """Controller only: what an ApplyInjection effect asked for is done, cannot be, or takes no doing any more."""

    number: int
    problem: str = ""
    """Why it could not be done; empty if it is done."""
    no_op: str = ""
    """Why there was nothing left to do: the node had ended meanwhile, whose NodeExited comes or has come."""


class CommandReceived(msgspec.Struct, frozen=True, gc=False):
    """Controller only: the user asks by hand for something to be done, and waits for a CommandResult."""

    ticket: int
    injections: tuple[Injection, ...] = ()
    roll_back_to: int | None = None
    """Step of a roll-back: all shards are to resume from the newest backup that is not beyond it."""


class Interrupted(msgspec.Struct, frozen=True, gc=False):
    """Controller only: the user asks to end the run."""


class Observe(msgspec.Struct, frozen=True, gc=False):
    """Node only: its shell looks at it, from time to time and when it ends; asks for the records of its state now."""


Event = (
    MessageReceived | Computed | Woken | Connected | Disconnected | AtPoint | NodeStarted | NodeExited | HealthChecked
    | Injected | CommandReceived | Interrupted | Observe | ProgramExited | ReadySeen | LineSeen
)  # fmt: skip


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send this message to that peer."""

    to: str
    """`server` or `controller`, or the peer that a message came from."""
    message: AnyMessage
    frames: Sequence[Buffer] = ()


class Compute(msgspec.Struct, frozen=True, gc=False):
    """Do this work; its result comes back as `Computed`."""

    job: Job
    pause_s: float = 0.0
    """Time to hold the result back once it is there: the pause of an emulated device."""


class Wake(msgspec.Struct, frozen=True, gc=False):
    """Send `Woken(token)` at this time, in seconds of the trial."""

    at_s: float
    token: str


class Await(msgspec.Struct, frozen=True, gc=False):
    """Worker only: send `AtPoint(point)` when the message sent last, or its answer, is there.

    during-push: it is leaving. after-push: all of it has left. during-pull: the answer is coming.
    """

    point: Point


class ApplyInjection(msgspec.Struct, frozen=True, gc=False):
    """Controller only: do this to a node; `Injected(number)` comes back, and for what ends it `NodeExited` as well."""

    number: int
    injection: Injection


class CommandResult(msgspec.Struct, frozen=True, gc=False):
    """Controller only: tell the user what came of a CommandReceived event."""

    ticket: int
    problem: str = ""
    """What is wrong; empty: the order is done."""
    told: str = ""
    """What was done, where that was not known before."""


class EndProgram(msgspec.Struct, frozen=True, gc=False):
    """Controller of programs only: ask a node's program to end, in its own way; `ProgramExited` comes if it does."""

    node: str


class Journal(msgspec.Struct, frozen=True, gc=False):
    """Write this record to the journal."""

    record: Record


class Expose(msgspec.Struct, frozen=True, gc=False):
    """Show the lengths of these queues, by name, to whoever watches the node; nothing of it is journaled."""

    queues: dict[str, int]


class Release(msgspec.Struct, frozen=True, gc=False):
    """Worker only: no fault waits any more at the points of which it was told, so what was held there may go on."""


class Append(msgspec.Struct, frozen=True, gc=False):
    """Server only: append this to the log, before what follows is done."""

    entry: AnyEntry
    frames: Sequence[Buffer] = ()


class EndNode(msgspec.Struct, frozen=True, gc=False):
    """End this node."""

    reason: str


Effect = (
    Send | Compute | Wake | Await | ApplyInjection | CommandResult | EndProgram | Journal | Expose | Release | Append
    | EndNode
)  # fmt: skip


class Heart(Protocol):
    """A role, as runtimes see it."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to `event` at `now`, in seconds of the trial."""
        ...


def unexpected(heart: Any, event: Event) -> AssertionError:
    """A broken invariant: this heart can never be sent that event."""
    return AssertionError(f"{type(heart).__name__} got {event!r:.200}")
