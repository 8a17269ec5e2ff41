"""`cut`: a node's link carries nothing, in neither direction; no node hears of it, connections stay open at first."""

from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.between import BetweenTwo, OneOrTwo
from edgebed.scenario.faults.settings.entry import NO_LINK, for_a_while
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.section import Duration


class Cut(BetweenTwo, Triggered):
    """A node's link carries nothing. Only the data network is cut: what a node reports still arrives."""

    kind: ClassVar[str] = "cut"
    example: ClassVar[str] = "{ cut: edge-0, at: 30s, for: 10s }"
    not_for = MappingProxyType({"evaluator": NO_LINK})

    cut: OneOrTwo
    """Node(s) whose link is cut; or `{ between: [home-1, home-2] }`: nothing passes between the two."""
    duration: Duration | None = Field(default=None, alias="for")
    """Time after which the link carries again; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps: the link is cut, and healed."""
        return for_a_while(self.duration, node, "cut", "heal")
