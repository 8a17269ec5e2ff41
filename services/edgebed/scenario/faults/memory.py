"""`memory`: a node fills its memory until the kernel ends it for being above its cap."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import ClassVar

from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.entry import ONLY_WATCHES, FaultSection, step
from edgebed.scenario.faults.settings.targets import Group, Target
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.mistakes.problems import Problem


class Memory(FaultSection, Triggered):
    """A node fills its memory until it is above its cap, and is ended for it."""

    kind: ClassVar[str] = "memory"
    example: ClassVar[str] = "{ memory: edge-0, at: 30s }"
    not_for = MappingProxyType(
        {
            "evaluator": ONLY_WATCHES,
            "program": "a node of edgebed's fills its own memory, and a program does not; kill it, or lower its memory",
        }
    )

    memory: Target
    """Target node(s); each needs a memory cap."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the one step: the node's memory is filled."""
        return (step(0.0, node, "memory"),)

    def misfits(self, group: Group) -> Iterable[Problem]:
        """Yield a problem for a node without a cap, where the fault would fill the machine's memory."""
        if not group.memory_capped:
            owner = group.nodes[0].rpartition("-")[0] or group.nodes[0]
            message = f"{owner} has no memory cap to run into; give it one, e.g. memory: 512MiB"
            yield Problem((self.kind,), message)
