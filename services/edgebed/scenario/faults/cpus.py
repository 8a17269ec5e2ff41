"""`cpus`: a node's CPU cap changes, as when a device heats up or is busy with something else."""

from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.choices import CPUS_MAX, CPUS_MIN
from edgebed.scenario.faults.settings.entry import ONLY_WATCHES, FaultSection, for_a_while
from edgebed.scenario.faults.settings.targets import Target
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.section import Duration


class Cpus(FaultSection, Triggered):
    """A node's CPU cap changes."""

    kind: ClassVar[str] = "cpus"
    example: ClassVar[str] = "{ cpus: edge-0, at: 30s, to: 0.1, for: 10s }"
    not_for = MappingProxyType({"evaluator": ONLY_WATCHES})

    cpus: Target
    """Target node(s)."""
    to: float = Field(ge=CPUS_MIN, le=CPUS_MAX)
    """The new cap in cores, e.g. 0.1; 0.01 at least."""
    duration: Duration | None = Field(default=None, alias="for")
    """Time after which the cap is as planned again; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps: the cap changes, and is as planned again."""
        return for_a_while(self.duration, node, "cpus", "cpus", cpus=self.to)
