"""What happens to programs, as a launcher tells the shell of their controller."""

from typing import NamedTuple

from edgebed.core.records import Record
from edgebed.emulation.orders import Call
from edgebed.roles.events import Injected, NodeStarted, ProgramExited


class Said(NamedTuple):
    """A node's program printed something."""

    node: str
    data: bytes


class Witnessed(NamedTuple):
    """A node's witness has something for the journal."""

    node: str
    monotonic_s: float
    """When, on the monotonic clock of this machine."""
    record: Record


class Called(NamedTuple):
    """A node's program has called the address that its witness serves, or its page was read."""

    node: str
    call: Call


Happening = NodeStarted | ProgramExited | Injected | Said | Witnessed | Called
