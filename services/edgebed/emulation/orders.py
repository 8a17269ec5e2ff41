"""What is said to whoever holds links, a container's helper or the switch, and what they answer: JSON, a line each."""

import os
import select
import time

import msgspec

from edgebed.scenario.plan import Injection, Link

WAIT_S_MAX = 3600.0  # then it looks again; select takes no infinity


class Order(msgspec.Struct, frozen=True):
    """What a helper is to hold."""

    subnet: str
    """The data network's; the interface is the one that has an address in it."""
    netem: bool
    """Whether the kernel makes latency, jitter and loss, too."""
    link: Link
    node: str = "own"
    """What changes will call it."""
    stays: bool = False
    """Whether it is to stay for changes that faults make; one whose link changes with time stays in any case."""
    injected: tuple[Injection, ...] = ()
    """What was done to the link before, and holds from the beginning."""


class Began(msgspec.Struct, frozen=True):
    """When training began, in seconds of the machine's monotonic clock: the link follows its timeline from there."""

    began: float


class Change(msgspec.Struct, frozen=True):
    """Do this to a node's link now: an injection that cuts, heals or changes it."""

    change: Injection
    number: int
    """What the answer is to carry."""


class Told(msgspec.Struct, frozen=True):
    """Either of the two, as it is read."""

    began: float | None = None
    change: Injection | None = None
    number: int = 0


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a helper says."""

    interface: str = ""
    """The kernel holds the link as it is when training begins, on this interface."""
    done: int | None = None
    """The number of a change: the kernel holds it, or refuses it, which is the problem."""
    problem: str = ""
    """Without a number: it can do nothing more."""
    netem: bool | None = None
    """Whether this kernel has netem; the answer to a probe."""


class Lines:
    """Lines from a file descriptor, with a time to wait for each."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.pending = b""

    def read(self, until_s: float) -> bytes | None:
        """The next line; nothing at the end; None if it has not come until then, by the machine's monotonic clock."""
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
