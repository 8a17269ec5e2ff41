"""`kill`: a node ends at once and without a word, as by SIGKILL or a power cut, and stays away."""

from types import MappingProxyType
from typing import ClassVar

from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.entry import FaultSection, step
from edgebed.scenario.faults.settings.targets import Target
from edgebed.scenario.faults.settings.triggers import Triggered

RESTART = "what is killed stays away; a node that comes back is `restart`, with a `delay`"


class Kill(FaultSection, Triggered):
    """A node ends at once and without a word, as by a power cut. It stays away, unless `on_failure` restarts it."""

    kind: ClassVar[str] = "kill"
    example: ClassVar[str] = "{ kill: edge-0, at: 30s }"
    not_here = MappingProxyType({"for": RESTART, "delay": RESTART})

    kill: Target
    """Target node(s)."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the one step: the node is killed."""
        return (step(0.0, node, "kill"),)
