"""What is said to the helper that holds a container's link, and what it answers: JSON, one message a line."""

import msgspec

from edgebed.scenario.plan import Link


class Order(msgspec.Struct, frozen=True):
    """What it is to hold."""

    subnet: str
    """The data network's; the interface is the one that has an address in it."""
    netem: bool
    """Whether the kernel makes latency, jitter and loss, too."""
    link: Link


class Began(msgspec.Struct, frozen=True):
    """When training began, in seconds of the machine's monotonic clock: the link follows its timeline from there."""

    began: float


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What it says."""

    interface: str = ""
    """The kernel holds the link as it is when training begins, on this interface."""
    problem: str = ""
    netem: bool | None = None
    """Whether this kernel has netem; the answer to a probe."""
