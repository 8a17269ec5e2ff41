"""What goes into a heart and what comes out.

A heart is `handle(event, now) -> list[Effect]`: deterministic, it owns its state and does nothing else. Shells turn the
world into events and carry the effects out (see runtimes/). Nothing handed to an effect is written afterwards.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from edgebed.roles.records import Record
from edgebed.roles.work import Job, Result
from edgebed.scenario.plan import Injection, Point
from edgebed.wire.messages import AnyMessage
from edgebed.wire.tensors import Buffer


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message arrived, its sizes checked."""

    peer: str
    """Where an answer goes: the connection it came on."""
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


class Checked(msgspec.Struct, frozen=True, gc=False):
    """Controller only: a check is over; these nodes have given a sign of life since the last."""

    alive: frozenset[str]


class Injected(msgspec.Struct, frozen=True, gc=False):
    """Controller only: what an Inject effect asked for is done, or cannot be."""

    number: int
    problem: str = ""


class Ordered(msgspec.Struct, frozen=True, gc=False):
    """Controller only: the user asks by hand for something to be done, and waits for an Answer."""

    ticket: int
    injections: tuple[Injection, ...] = ()
    roll_back_to: int | None = None
    """All shards are to go on from the newest backup that is not beyond this step."""


class Interrupted(msgspec.Struct, frozen=True, gc=False):
    """Controller only: the user asks to end the run."""


Event = (
    Received | Computed | Woken | Connected | Disconnected | AtPoint | NodeStarted | NodeExited | Checked | Injected
    | Ordered | Interrupted
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
    """How long to hold the result back once it is there: the pause of an emulated device."""


class Wake(msgspec.Struct, frozen=True, gc=False):
    """Send `Woken(token)` at this time, in seconds of the trial."""

    at_s: float
    token: str


class Await(msgspec.Struct, frozen=True, gc=False):
    """Worker only: send `AtPoint(point)` when the message sent last, or its answer, is there.

    during-push: it is leaving. after-push: all of it has left. during-pull: the answer is coming.
    """

    point: Point


class Inject(msgspec.Struct, frozen=True, gc=False):
    """Controller only: do this to a node; `Injected(number)` comes back, and for what ends it `NodeExited` as well."""

    number: int
    injection: Injection


class Answer(msgspec.Struct, frozen=True, gc=False):
    """Controller only: tell the user what came of an Ordered event."""

    ticket: int
    problem: str = ""
    """Empty: it is done."""
    told: str = ""
    """What was done, where that was not known before."""


class Journal(msgspec.Struct, frozen=True, gc=False):
    """Keep this record."""

    record: Record


class Stop(msgspec.Struct, frozen=True, gc=False):
    """This node ends."""

    reason: str


Effect = Send | Compute | Wake | Await | Inject | Answer | Journal | Stop


class Heart(Protocol):
    """What every role is."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to `event` at `now`, in seconds of the trial."""
        ...


def unexpected(heart: Any, event: Event) -> AssertionError:
    """A broken invariant: this heart can never be sent that event."""
    return AssertionError(f"{type(heart).__name__} got {event!r:.200}")
