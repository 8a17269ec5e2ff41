"""Lines to whoever holds links, a container's helper or the switch, and their answers: JSON, a line each."""

import os
import select
import time

import msgspec

from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkPlan

WAIT_S_MAX = 3600.0  # then it looks again; select takes no infinity


class HelperSetup(msgspec.Struct, frozen=True):
    """An order to a helper: what it is to hold."""

    subnet: str
    """Subnet of the data network; the interface is the one that has an address in it."""
    netem: bool
    """Whether the kernel makes latency, jitter and loss, too."""
    link: LinkPlan
    node: str = "own"
    """Name that changes will have for the link."""
    stays: bool = False
    """Whether the helper is to stay for changes that faults make; one whose link changes with time stays in any
    case."""
    injected: tuple[Injection, ...] = ()
    """Injections that were done to the link before, and hold from the beginning."""


class Began(msgspec.Struct, frozen=True):
    """When training began, in seconds of the controller's monotonic clock: the link follows its timeline from there."""

    began: float


class ClockLine(msgspec.Struct, frozen=True):
    """How the controller's monotonic clock is had from one's own; as it is, where both are the same."""

    offset_s: float = 0.0
    """Seconds by which the controller's was ahead when one's own showed `own_s`."""
    own_s: float = 0.0
    drift: float = 0.0
    """Seconds by which the offset grows in a second."""

    def controller_s(self, own_s: float) -> float:
        """The controller's clock when one's own shows that."""
        return own_s + self.offset_s + self.drift * (own_s - self.own_s)


class HelperClock(msgspec.Struct, frozen=True):
    """The helper's clock is not the controller's, but differs from it like this."""

    clock: ClockLine


class HelperChange(msgspec.Struct, frozen=True):
    """A change of a node's link now: an injection that cuts, heals or changes it."""

    change: Injection
    number: int
    """Number that the answer is to carry."""
    addresses: dict[str, str] = {}
    """Addresses of the nodes that it names, where whoever holds the link does not know them."""


class Watched(msgspec.Struct, frozen=True, omit_defaults=True):
    """To a program's witness alone: which process the program is, or that it has ended."""

    pid: int = 0
    ended: bool = False


class Ask(msgspec.Struct, frozen=True):
    """To a program's witness alone: what does its clock show? The question, the asker's clock, comes back with it."""

    ask: int


class Opens(msgspec.Struct, frozen=True):
    """To a program's witness alone: a barrier that the program waits at opens."""

    opens: str


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a program says to the address that its witness serves, or on its page: measures; or it is at a barrier."""

    measured: dict[str, float] = {}
    unread: dict[str, str] = {}
    """Why each of the others was not found on the page, of those that never were."""
    barrier: str = ""
    nodes: int = 0
    """How many nodes the barrier waits for."""


class HelperCommand(msgspec.Struct, frozen=True):
    """A line to a helper after its order, as it is read: any of those above but `Call`."""

    began: float | None = None
    clock: ClockLine | None = None
    change: Injection | None = None
    number: int = 0
    pid: int = 0
    ended: bool = False
    addresses: dict[str, str] = {}
    opens: str = ""
    ask: int = 0


class HelperReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer of a helper."""

    interface: str = ""
    """Interface on which the kernel holds the link as it is when training begins."""
    done: int | None = None
    """Number of a change that the kernel holds, or refuses, which is the problem."""
    problem: str = ""
    """What is wrong; without a number, the helper can do nothing more."""
    netem: bool | None = None
    """Whether this kernel has netem; the answer to a probe."""


class Lines:
    """Lines from a file descriptor, with a time to wait for each."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.pending = b""

    def read(self, until_s: float) -> bytes | None:
        """Read the next line; nothing at the end; None if none came until then, by the machine's monotonic clock."""
        while b"\n" not in self.pending:
            wait_s = max(0.0, min(until_s - time.monotonic(), WAIT_S_MAX))
            if not select.select([self.descriptor], [], [], wait_s)[0]:
                return None
            data = os.read(self.descriptor, 1 << 16)
            if not data:
                return b""
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return line
