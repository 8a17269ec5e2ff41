"""`freeze`: a node stops in the middle of what it does, as by SIGSTOP; its connections stay open and say nothing."""

from typing import ClassVar

from pydantic import Field

from edgebed.faults.entry import FaultSection, for_a_while
from edgebed.faults.targets import Target
from edgebed.faults.triggers import Triggered
from edgebed.scenario.plan import FaultStep
from edgebed.scenario.section import Duration


class Freeze(FaultSection, Triggered):
    """A node stops in the middle of what it does. Its connections stay open; nothing comes from it."""

    kind: ClassVar[str] = "freeze"

    freeze: Target
    """Whom."""
    duration: Duration | None = Field(default=None, alias="for")
    """After so long it goes on where it stopped; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """It is frozen, and thawed."""
        return for_a_while(self.duration, node, "freeze", "thaw")
