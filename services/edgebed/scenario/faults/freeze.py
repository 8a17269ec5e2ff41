"""`freeze`: a node stops in the middle of what it does, as by SIGSTOP; its connections stay open and say nothing."""

from typing import ClassVar

from pydantic import Field

from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.entry import FaultSection, for_a_while
from edgebed.scenario.faults.settings.targets import Target
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.section import Duration


class Freeze(FaultSection, Triggered):
    """A node stops in the middle of what it does. Its connections stay open; nothing comes from it."""

    kind: ClassVar[str] = "freeze"
    example: ClassVar[str] = "{ freeze: edge-0, at: 30s, for: 10s }"

    freeze: Target
    """Target node(s)."""
    duration: Duration | None = Field(default=None, alias="for")
    """Time after which the node continues where it stopped; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps: the node is frozen, and thawed."""
        return for_a_while(self.duration, node, "freeze", "thaw")
