"""What is known of programs of the user's: what they measured, how they ended, how much of what they said is kept."""

import msgspec

from edgebed.core.bounds import Count
from edgebed.core.recorded.record import Loss, Record


class Measured(Record):
    """A line of a program's output told measures; said by its node."""

    measured: dict[str, Loss]
    """The value of each measure in the line."""


class Exited(Record):
    """A program ended; by the controller, beside the change of its node's state."""

    name: str
    """The node."""
    incarnation: Count
    code: Count | None = None
    """Its exit code; None: a signal ended it, or it could not be started."""
    signal: str = ""
    """The signal that ended it, e.g. `SIGKILL`."""
    oom: bool = False
    """Whether the kernel killed a process of its for want of memory."""
    asked: bool = False
    """Whether it was ended on purpose: by a fault, a policy, the user, or with the trial."""
    consequence_of: str = ""
    """The node whose end on purpose, within `deadlines.silence` before, this one is put down to; empty: none."""
    left: Count = 0
    """Processes of its that were still there, and were killed."""

    @property
    def is_failure(self) -> bool:
        """Whether it ended with another code than 0, or by a signal, and nobody had asked for that."""
        return self.code != 0 and not self.asked and not self.consequence_of

    @property
    def text(self) -> str:
        """How it ended, in words."""
        what = f"exit code {self.code}" if self.code is not None else self.signal or "not started"
        why = " on purpose" if self.asked else ""
        if self.consequence_of:
            why = f", a consequence of the end of {self.consequence_of}"
        return ("out of memory" if self.oom else what) + why


class Output(Record):
    """How much of what a node's program said in all its lives is kept; said by the node, when the trial ends."""

    bytes: Count
    """Bytes of its output."""
    left_out_bytes: Count = 0
    """Bytes of these that are in neither part of the log, the first and the last."""
    dropped: Count = 0
    """Measures beyond those that are taken in a second."""
    unusable: Count = 0
    """Values of measures that were no finite numbers."""
    unread: dict[str, str] = msgspec.field(default_factory=dict)
    """Why each measure was not found on the program's page, of those that never were."""
