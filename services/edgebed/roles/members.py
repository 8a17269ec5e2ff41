"""What the controller knows of each node of a trial."""

import msgspec

from edgebed.scenario.plan import NodePlan
from edgebed.wire import messages

PRESENT = ("joined", "ready", "running", "unresponsive")
"""The states of a node that can be talked to."""
COMING = ("expected", "started", "joined")
"""Of one that is waited for before training starts."""
GONE = ("died", "missing", "stopped")


class Member(msgspec.Struct):
    """A node, whichever of its lives it is in."""

    plan: NodePlan
    state: str = "expected"
    peer: str = ""
    incarnation: int = 0
    ready: messages.Ready | None = None
    missed: int = 0
    """Checks in a row without a sign of life."""

    @property
    def health(self) -> str:
        """`coming`, `good`, `late` where it missed the last check, `failed` after two or when it is gone, `over`."""
        if self.state == "stopped":
            return "over"
        if self.state in GONE or self.state == "unresponsive":
            return "failed"
        if self.state != "running":
            return "coming"
        return "late" if self.missed else "good"

    @property
    def is_reached(self) -> bool:
        """Whether others can connect to it."""
        return self.ready is not None and self.state in ("ready", "running", "unresponsive")

    @property
    def is_there(self) -> bool:
        """Whether it has a process or container."""
        return self.state in PRESENT or self.state == "started"
