"""`heal`: a link that was cut carries again, whatever cut it."""

from types import MappingProxyType
from typing import ClassVar

from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.between import BetweenTwo, OneOrTwo
from edgebed.scenario.faults.settings.entry import NO_LINK, step


class Heal(BetweenTwo):
    """A link that was cut carries again; for a `cut` without `for`."""

    kind: ClassVar[str] = "heal"
    example: ClassVar[str] = "{ heal: edge-0, at: 40s }"
    not_for = MappingProxyType({"evaluator": NO_LINK})

    heal: OneOrTwo
    """Node(s) whose link is healed; or `{ between: [home-1, home-2] }`, as in `cut`."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the one step: the link is healed."""
        return (step(0.0, node, "heal"),)
