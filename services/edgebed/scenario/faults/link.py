"""`link`: what a node's link carries changes, as when a phone leaves the house."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from edgebed.core import units
from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.entry import NO_LINK, FaultSection, for_a_while
from edgebed.scenario.faults.settings.targets import Group, Target
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.links import LinkSettings
from edgebed.scenario.mistakes.problems import Problem
from edgebed.scenario.section import Duration


class LinkFault(FaultSection, LinkSettings, Triggered):
    """What a node's link carries changes, whatever its steps or its trace say. What is left out stays as it is."""

    kind: ClassVar[str] = "link"
    example: ClassVar[str] = "{ link: edge-0, at: 30s, uplink: 1mbit, for: 10s }"
    not_for = MappingProxyType({"evaluator": NO_LINK})

    link: Target
    """Node(s) whose link changes."""
    duration: Duration | None = Field(default=None, alias="for")
    """Time after which the link is as planned again; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps: the link changes, and is as planned again."""
        return for_a_while(self.duration, node, "link", "link", change=self.change())

    def misfits(self, group: Group) -> Iterable[Problem]:
        """Yield a problem where the jitter is above the latency, as for every link."""
        latency_s = group.latency_s if self.latency is None else self.latency
        jitter_s = group.jitter_s if self.jitter is None else self.jitter
        if jitter_s > latency_s and (self.latency, self.jitter) != (None, None):
            key = "latency" if self.jitter is None else "jitter"
            jitter, latency = units.format_duration(jitter_s), units.format_duration(latency_s)
            yield Problem((key,), f"a jitter of {jitter} is above the latency of {latency}")
