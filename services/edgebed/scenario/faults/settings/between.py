"""Faults between two nodes: `cut: { between: [home-1, home-2] }`, where other kinds have one target."""

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any

import msgspec
from pydantic import BeforeValidator, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from edgebed.core.planned.fault import FaultPlan, FaultStep
from edgebed.scenario.faults.settings.entry import FaultSection
from edgebed.scenario.faults.settings.targets import (
    OF_CLASSES,
    Draw,
    NamedTarget,
    Role,
    Roster,
    Some,
    groups_of,
    nodes_of,
    read_target,
)
from edgebed.scenario.mistakes.problems import Problem, show
from edgebed.scenario.section import Section


def _read_two(given: object) -> object:
    if isinstance(given, list) and len(given) == 2:
        return given
    raise ValueError(f"not two nodes: {show(given)}; two nodes or classes, e.g. [home-1, home-2]")


class Between(Section):
    """The way between two nodes, or between each node of one class and each of another."""

    between: Annotated[list[NamedTarget], BeforeValidator(_read_two)]
    """Two nodes, classes or hosts, e.g. `[home-1, home-2]`: what each of the first sends to each of the second, and the
    other way round."""


def _read(given: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str | Some | Between:
    if isinstance(given, dict) and "between" in given:
        return Between.model_validate(given, context=info.context)
    if isinstance(given, list):
        two = "write an entry for each, or { between: [home-1, home-2] } for what passes between two"
        raise ValueError(f"not a node: {show(given)}, which reads as several targets; {two}")  # noqa: TRY004 - pydantic takes no other
    return given if isinstance(given, Between) else read_target(given, handler, info)


OneOrTwo = Annotated[str | Some | Between, WrapValidator(_read)]
"""Nodes, each with its whole link, or what is between two."""


class BetweenTwo(FaultSection):
    """A kind whose steps may concern what is between two nodes, instead of one's link."""

    @property
    def _two(self) -> list[str] | None:
        """Return the two that are named; None where there is a target as of other kinds."""
        meant: Any = getattr(self, self.kind)
        return meant.between if isinstance(meant, Between) else None

    def resolve(self, name: str, roster: Roster, draw: Draw) -> Iterator[FaultPlan]:
        """Yield the faults of all nodes that are meant, or one for each two."""
        if self._two is None:
            yield from super().resolve(name, roster, draw)
            return
        for node, _, peer in self._pairs(roster):
            steps = tuple(_with(peer, each) for each in self.steps(node))
            yield FaultPlan(name=name, node=node, trigger=self.trigger(), steps=steps)

    def problems(self, roster: Roster) -> Iterator[Problem]:
        """Yield what does not fit the nodes that are meant."""
        if self._two is None:
            yield from super().problems(roster)
            return
        place = (self.kind, "between")
        refused = [
            Problem((*place, str(k)), reason)
            for k, each in enumerate(self._two)
            for group in groups_of(each, roster)
            if (reason := self.not_for.get(group.role))
        ]
        pairs = list(self._pairs(roster))
        if refused:
            yield from refused
        elif same := [node for node, _, peer in pairs if node == peer]:
            yield Problem(place, f"{same[0]} is on both sides; name two nodes, or two classes")
        else:
            yield from list(self._strange_triggers(pairs[0][1]))[:1]

    def _pairs(self, roster: Roster) -> Iterator[tuple[str, Role, str]]:
        """Yield each two nodes in the roster's order, but those of classes first, with the role of the first."""
        roles = {node: group.role for group in roster.values() for node in group.nodes}
        order = sorted(roles, key=lambda node: roles[node] not in OF_CLASSES)
        one, other = (nodes_of(each, roster, lambda _node, _k: 0.0) for each in self._two or ())
        for pair in product(one, other):
            first, second = sorted(pair, key=order.index)
            yield first, roles[first], second


def _with(peer: str, each: FaultStep) -> FaultStep:
    injection = msgspec.structs.replace(each.injection, peer=peer)
    return msgspec.structs.replace(each, injection=injection)
