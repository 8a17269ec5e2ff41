"""`cpus`: a node's CPU cap changes, as when a device heats up or is busy with something else."""

from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from edgebed.faults.entry import ONLY_WATCHES, FaultSection, for_a_while
from edgebed.faults.targets import Target
from edgebed.faults.triggers import Triggered
from edgebed.scenario.plan import FaultStep
from edgebed.scenario.section import Duration


class Cpus(FaultSection, Triggered):
    """A node's CPU cap changes."""

    kind: ClassVar[str] = "cpus"
    not_for = MappingProxyType({"evaluator": ONLY_WATCHES})

    cpus: Target
    """Whose."""
    to: float = Field(gt=0.0)
    """The new cap in cores, e.g. 0.1."""
    duration: Duration | None = Field(default=None, alias="for")
    """After so long it is again as planned; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """It changes, and is as planned again."""
        return for_a_while(self.duration, node, "cpus", "cpus", cpus=self.to)
