"""`heal`: a link that was cut carries again, whatever cut it."""

from types import MappingProxyType
from typing import ClassVar

from edgebed.faults.entry import NO_LINK, FaultSection, step
from edgebed.faults.targets import Target
from edgebed.scenario.plan import FaultStep


class Heal(FaultSection):
    """A link that was cut carries again; for a `cut` without `for`."""

    kind: ClassVar[str] = "heal"
    not_for = MappingProxyType({"evaluator": NO_LINK})

    heal: Target
    """Whose link."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """It is healed."""
        return (step(0.0, node, "heal"),)
