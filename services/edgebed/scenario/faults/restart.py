"""`restart`: a node is killed and started again, with nothing of what it knew; the server has its log or checkpoint."""

from typing import ClassVar

from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.entry import FaultSection, step
from edgebed.scenario.faults.settings.targets import Target
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.section import DurationFromZero


class Restart(FaultSection, Triggered):
    """A node is killed and started again. It knows nothing of before, but a server what its `durability` has kept."""

    kind: ClassVar[str] = "restart"
    example: ClassVar[str] = "{ restart: edge-0, at: 30s, delay: 3s }"

    restart: Target
    """Target node(s)."""
    delay: DurationFromZero = 1.0
    """How long the node is away before it is started."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps: the node is killed, and launched."""
        return step(0.0, node, "kill"), step(self.delay, node, "launch")
