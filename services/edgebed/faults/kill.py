"""`kill`: a node ends at once and without a word, as by SIGKILL or a power cut, and stays away."""

from types import MappingProxyType
from typing import ClassVar

from edgebed.faults.entry import FaultSection, step
from edgebed.faults.targets import Target
from edgebed.faults.triggers import Triggered
from edgebed.scenario.plan import FaultStep

RESTART = "what is killed stays away; a node that comes back is `restart`, with a `delay`"


class Kill(FaultSection, Triggered):
    """A node ends at once and without a word, as by a power cut. It stays away, unless `on_failure` starts it anew."""

    kind: ClassVar[str] = "kill"
    not_here = MappingProxyType({"for": RESTART, "delay": RESTART})

    kill: Target
    """Whom."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """It is killed."""
        return (step(0.0, node, "kill"),)
