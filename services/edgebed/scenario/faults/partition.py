"""`partition`: the data network falls apart into groups that cannot reach one another.

All traffic passes the server, so to those who are not with it this is a cut of their links, and the others notice
nothing but their silence.
"""

from collections import Counter
from collections.abc import Iterator
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from edgebed.core.planned.fault import FaultPlan, FaultStep
from edgebed.scenario.faults.settings.entry import NO_LINK, FaultSection, for_a_while
from edgebed.scenario.faults.settings.targets import Draw, NamedTarget, Roster, nodes_of
from edgebed.scenario.mistakes.problems import Problem, show
from edgebed.scenario.section import Duration


def _read_side(given: object) -> object:
    if isinstance(given, list):
        return given
    raise ValueError(f"not a group: {show(given)}; a list, e.g. [[server, hubs], [phones]]")


Side = Annotated[list[NamedTarget], Field(min_length=1), BeforeValidator(_read_side)]


class Partition(FaultSection):
    """The data network falls apart into groups; those that are not with the server are cut off, as by `cut`."""

    kind: ClassVar[str] = "partition"
    example: ClassVar[str] = "{ partition: [[server, edge-0], [edge-1]], at: 30s, for: 10s }"
    not_for = MappingProxyType(
        {
            "evaluator": NO_LINK,
            "program": "programs have no server that all traffic passes; cut takes a node off all others",
        }
    )

    partition: Annotated[list[Side], Field(min_length=2)]
    """Groups of nodes and classes, one of them with the server, e.g. `[[server, hubs], [phones-0, phones-1]]`. Who is
    in none stays with the server."""
    duration: Duration | None = Field(default=None, alias="for")
    """Time after which the groups reach one another again; never if left out."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps of a node that is not with the server: it is cut off, and healed."""
        return for_a_while(self.duration, node, "cut", "heal")

    def resolve(self, name: str, roster: Roster, draw: Draw) -> Iterator[FaultPlan]:
        """Yield one fault for each node that is not with the server."""
        for side in self.partition:
            members = _members(side, roster)
            if "server" not in members:
                for node in members:
                    yield FaultPlan(name=name, node=node, trigger=self.trigger(), steps=self.steps(node))

    def problems(self, roster: Roster) -> Iterator[Problem]:
        """Yield a problem for a node in two groups, and where no group has the server."""
        found = [
            Problem((self.kind, str(k), str(j)), problem.message)
            for k, side in enumerate(self.partition)
            for j, each in enumerate(side)
            for problem in self.target_problems(self.kind, each, roster)
        ]
        yield from found
        if not found:
            yield from self._overlaps(roster)

    def _overlaps(self, roster: Roster) -> Iterator[Problem]:
        sides = [_members(side, roster) for side in self.partition]
        times = Counter(node for side in sides for node in side)
        if twice := [node for node in times if times[node] > 1]:
            yield Problem((self.kind,), f"{twice[0]} is in two groups")
        if "server" not in times:
            yield Problem((self.kind,), "no group has the server; all traffic passes it, so one has to")


def _members(side: list[str], roster: Roster) -> tuple[str, ...]:
    """Return the nodes of one group, each once."""
    return tuple(dict.fromkeys(node for each in side for node in nodes_of(each, roster, lambda _node, _k: 0.0)))
