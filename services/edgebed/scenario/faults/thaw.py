"""`thaw`: a frozen node continues, whatever froze it."""

from typing import ClassVar

from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.entry import FaultSection, step
from edgebed.scenario.faults.settings.targets import Target


class Thaw(FaultSection):
    """A frozen node continues where it stopped; for a `freeze` without `for`."""

    kind: ClassVar[str] = "thaw"
    example: ClassVar[str] = "{ thaw: edge-0, at: 40s }"

    thaw: Target
    """Target node(s)."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the one step: the node is thawed."""
        return (step(0.0, node, "thaw"),)
