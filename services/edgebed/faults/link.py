"""`link`: what a node's link carries changes, as when a phone leaves the house."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from edgebed.faults.entry import NO_LINK, FaultSection, for_a_while
from edgebed.faults.targets import Group, Target
from edgebed.faults.triggers import Triggered
from edgebed.scenario import units
from edgebed.scenario.links import LinkSettings
from edgebed.scenario.plan import FaultStep
from edgebed.scenario.problems import Problem
from edgebed.scenario.section import Duration


class Link(FaultSection, LinkSettings, Triggered):
    """What a node's link carries changes, whatever its steps or its trace say. What is left out stays as it is."""

    kind: ClassVar[str] = "link"
    not_for = MappingProxyType({"evaluator": NO_LINK})

    link: Target
    """Whose."""
    duration: Duration | None = Field(default=None, alias="for")
    """After so long it is again as planned; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """It changes, and is as planned again."""
        return for_a_while(self.duration, node, "link", "link", change=self.change())

    def misfits(self, group: Group) -> Iterable[Problem]:
        """As everywhere, jitter is at most the latency."""
        latency_s = group.latency_s if self.latency is None else self.latency
        jitter_s = group.jitter_s if self.jitter is None else self.jitter
        if jitter_s > latency_s and (self.latency, self.jitter) != (None, None):
            key = "latency" if self.jitter is None else "jitter"
            jitter, latency = units.format_duration(jitter_s), units.format_duration(latency_s)
            yield Problem((key,), f"a jitter of {jitter} is above the latency of {latency}")
