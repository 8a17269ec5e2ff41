"""`thaw`: a frozen node goes on, whatever froze it."""

from typing import ClassVar

from edgebed.faults.entry import FaultSection, step
from edgebed.faults.targets import Target
from edgebed.scenario.plan import FaultStep


class Thaw(FaultSection):
    """A frozen node goes on where it stopped; for a `freeze` without `for`."""

    kind: ClassVar[str] = "thaw"

    thaw: Target
    """Whom."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """It is thawed."""
        return (step(0.0, node, "thaw"),)
