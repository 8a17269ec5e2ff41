"""`restart`: a node is killed and started anew, with nothing of what it knew; the server has its last checkpoint."""

from typing import ClassVar

from edgebed.faults.entry import FaultSection, step
from edgebed.faults.targets import Target
from edgebed.faults.triggers import Triggered
from edgebed.scenario.plan import FaultStep
from edgebed.scenario.section import DurationFromZero


class Restart(FaultSection, Triggered):
    """A node is killed and started anew. It knows nothing of before; the server goes on from the last checkpoint."""

    kind: ClassVar[str] = "restart"

    restart: Target
    """Whom."""
    delay: DurationFromZero = 1.0
    """How long it is away before it is started."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """It is killed, and launched."""
        return step(0.0, node, "kill"), step(self.delay, node, "launch")
