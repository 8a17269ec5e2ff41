"""`cut`: a node's link carries nothing, in neither direction; nobody is told, and connections stay open at first."""

from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from edgebed.faults.entry import NO_LINK, FaultSection, for_a_while
from edgebed.faults.targets import Target
from edgebed.faults.triggers import Triggered
from edgebed.scenario.plan import FaultStep
from edgebed.scenario.section import Duration


class Cut(FaultSection, Triggered):
    """A node's link carries nothing. Only the data network is cut: what a node reports still arrives."""

    kind: ClassVar[str] = "cut"
    not_for = MappingProxyType({"evaluator": NO_LINK})

    cut: Target
    """Whose link."""
    duration: Duration | None = Field(default=None, alias="for")
    """After so long it carries again; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """It is cut, and healed."""
        return for_a_while(self.duration, node, "cut", "heal")
