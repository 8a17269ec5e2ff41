"""`link`: what a node's link carries changes, as when a phone leaves the house; or what passes between two nodes."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from edgebed.core import units
from edgebed.core.planned.fault import FaultStep
from edgebed.core.planned.link import PROPERTIES, LinkChange
from edgebed.scenario.faults.settings.between import Between, BetweenTwo, OneOrTwo
from edgebed.scenario.faults.settings.entry import NO_LINK, for_a_while
from edgebed.scenario.faults.settings.targets import Group
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.links import LinkSettings, Rate
from edgebed.scenario.mistakes.problems import Problem
from edgebed.scenario.section import Duration


class LinkFault(BetweenTwo, LinkSettings, Triggered):
    """What a node's link carries changes, whatever its steps or its trace say. What is left out stays as it is."""

    kind: ClassVar[str] = "link"
    example: ClassVar[str] = "{ link: edge-0, at: 30s, uplink: 1mbit, for: 10s }"
    not_for = MappingProxyType({"evaluator": NO_LINK})

    link: OneOrTwo
    """Node(s) whose link changes; or `{ between: [home-1, home-2] }`, with `rate`: what passes between the two."""
    rate: Rate | None = None
    """Between two: the most that passes in each direction, whatever else their links carry, which hold as before."""
    duration: Duration | None = Field(default=None, alias="for")
    """Time after which the link is as planned again; until the end if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps: the link changes, and is as planned again."""
        return for_a_while(self.duration, node, "link", "link", change=self.change())

    def change(self, at_s: float = 0.0) -> LinkChange:
        """Return the change for a plan; between two the rate is that at which each may send to the other."""
        return super().change(at_s) if self.rate is None else LinkChange(at_s=at_s, uplink_bit_s=self.rate)

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where nothing changes, and where a key is that of the other form."""
        target = given.get(cls.kind)
        is_between = isinstance(target, Between) or (isinstance(target, dict) and "between" in target)
        foreign = [key for key in (PROPERTIES if is_between else ("rate",)) if given.get(key) is not None]
        if is_between or foreign:
            yield from super(LinkSettings, cls).contradictions(given)
        else:
            yield from super().contradictions(given)
        why = "rate is of what passes between two; give link: { between: [home-1, home-2] }, or uplink and downlink"
        if is_between:
            why = "this is of a node's whole link; between two give rate alone, which holds in each direction"
        yield from (Problem((key,), why, at_key=True) for key in foreign)
        if is_between and not foreign and given.get("rate") is None:
            yield Problem((), "nothing changes; give rate, the most that passes between the two in each direction")

    def misfits(self, group: Group) -> Iterable[Problem]:
        """Yield a problem where the jitter is above the latency, as for every link."""
        latency_s = group.latency_s if self.latency is None else self.latency
        jitter_s = group.jitter_s if self.jitter is None else self.jitter
        if jitter_s > latency_s and (self.latency, self.jitter) != (None, None):
            key = "latency" if self.jitter is None else "jitter"
            jitter, latency = units.format_duration(jitter_s), units.format_duration(latency_s)
            yield Problem((key,), f"a jitter of {jitter} is above the latency of {latency}")
