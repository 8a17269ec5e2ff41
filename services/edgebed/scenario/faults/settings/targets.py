"""Targets of a fault: a node, a class, a host's nodes, all workers, or some of them, which the seed draws.

What a scenario writes is a text, or a mapping of `Some`. It is compared with the `Roster`, and every node gets a draw:
those with the lowest are chosen, so that another fleet, or another share, changes as little as possible.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from edgebed.core import units
from edgebed.scenario.mistakes.problems import Problem, Problems, choose, show
from edgebed.scenario.names import WORKERS
from edgebed.scenario.section import Form, Section, of_pattern

Role = Literal["server", "evaluator", "store", "modules", "worker", "program"]
OF_CLASSES = ("worker", "program")
"""Roles of the nodes that have a class of the fleet."""
Draw = Callable[[str, int], float]
"""(node, k) -> a number from [0, 1), by the seed and the entry."""


class Group(NamedTuple):
    """The nodes of a class; or one other node, alone."""

    role: Role
    nodes: tuple[str, ...]
    memory_capped: bool = False
    latency_s: float = 0.0
    """Initial latency of the nodes' links; likewise the jitter."""
    jitter_s: float = 0.0
    hosts: tuple[str, ...] = ()
    """Host of each node; empty texts where there is one machine alone."""

    def on(self, host: str) -> "Group":
        """Return the group with the nodes on that host alone."""
        here = tuple(node for node, each in zip(self.nodes, self.hosts, strict=True) if each == host)
        return self._replace(nodes=here, hosts=(host,) * len(here))


Roster = Mapping[str, Group]
"""Groups of nodes by class; `server`, `evaluator` and what serves shards by themselves."""


def _read_share(given: object) -> float:
    share = units.parse_percentage(given)
    if share == 0.0:
        raise ValueError("0% is nobody")
    return share


Share = Annotated[
    float, Form(_read_share, units.format_percentage, of_pattern("percentage", units.PERCENTAGE_PATTERN, "50%"))
]


class Some(Section):
    """Some workers, of one class or of all. `count`, `fraction` and `random` exclude each other."""

    device_class: str | None = Field(default=None, alias="class")
    """A device class; all workers if left out."""
    count: int | None = Field(default=None, ge=1)
    """First n workers, e.g. 2 for `phones-0` and `phones-1`."""
    fraction: Share | None = None
    """Share of the workers, rounded, at least one; which ones is drawn by the seed."""
    random: int | None = Field(default=None, ge=1)
    """Number of workers, drawn by the seed."""

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where nothing says how many, or two keys do."""
        ways = [key for key in ("count", "fraction", "random") if given.get(key) is not None]
        if len(ways) > 1:
            yield Problem((ways[1],), f"{' and '.join(ways)} exclude each other", at_key=True)
        elif not ways and given.get("class") is None:
            yield Problem((), f"which workers? give class, count, fraction or random; or write {WORKERS} for all")

    def size(self, available: int) -> int:
        """Return the number of workers meant out of `available` ones."""
        if self.fraction is not None:
            return max(1, math.floor(self.fraction * available + 0.5))
        return self.count or self.random or available


ROSTER = "roster"
"""Key of the validation context: the roster, where it is known; without it no node is looked for."""


def read_target(given: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str | Some:
    """Read a target; ValueError or Problems say what is allowed."""
    if isinstance(given, dict) and "between" in given:
        kinds = "cut, heal, flap and link"
        raise ValueError(f"between two nodes there is {kinds} alone, e.g. cut: {{ between: [home-1, home-2] }}")
    if isinstance(given, dict):
        given = Some.model_validate(given)
    if not isinstance(given, str | Some) or not given:
        form = f"a node, a class, a host, {WORKERS}, or e.g. {{class: phones, count: 3}}"
        raise ValueError(f"not a node: {show(given)}; {form}")
    if roster := (info.context or {}).get(ROSTER):
        groups_of(given, roster)
    return given


def _read_name(given: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str:
    if isinstance(given, str) and given:
        return str(read_target(given, handler, info))
    raise ValueError(f"not a node: {show(given)}; a node, a class, a host or {WORKERS}")


Target = Annotated[str | Some, WrapValidator(read_target)]
NamedTarget = Annotated[str, WrapValidator(_read_name)]
"""Name of a node, of a class, of a host or of all workers."""


def groups_of(target: str | Some, roster: Roster) -> list[Group]:
    """Return the groups that `target` is among; Problems if there are none, or fewer nodes than it wants."""
    if isinstance(target, str):
        return _named(target, roster)
    name = target.device_class or WORKERS
    if name != WORKERS and (name not in roster or roster[name].role not in OF_CLASSES):
        choice = choose(name, classes_of(roster))
        raise Problems([Problem(("class",), f"no class {name!r}; {choice}", choice=choice)])
    groups = _named(name, roster, is_class=True)
    available = sum(len(group.nodes) for group in groups)
    if (wanted := target.size(available)) > available:
        whose = "all workers together" if name == WORKERS else f"class {name}"
        key = "random" if target.random else "count"
        raise Problems([Problem((key,), f"{wanted} are more than the {available} of {whose}")])
    return groups


def nodes_of(target: str | Some, roster: Roster, draw: Draw) -> tuple[str, ...]:
    """Return the nodes that `target` means, in the roster's order."""
    groups = groups_of(target, roster)
    if isinstance(target, str) and len(groups) == 1 and target in groups[0].nodes:
        return (target,)
    nodes = [node for group in groups for node in group.nodes]
    if isinstance(target, str):
        return tuple(nodes)
    size = target.size(len(nodes))
    if target.fraction is None and target.random is None:
        return tuple(nodes[:size])
    chosen = frozenset(sorted(nodes, key=lambda node: (draw(node, 0), node))[:size])
    return tuple(node for node in nodes if node in chosen)


def size_of(target: str | Some, roster: Roster) -> int:
    """Return the number of nodes that `target` means."""
    return len(nodes_of(target, roster, lambda _node, _k: 0.0))


def classes_of(roster: Roster) -> list[str]:
    """Return the names of the device classes."""
    return [name for name, group in roster.items() if group.role in OF_CLASSES]


def _named(name: str, roster: Roster, *, is_class: bool = False) -> list[Group]:
    if name == WORKERS:
        return [group for group in roster.values() if group.role in OF_CLASSES]
    owner = name.rpartition("-")[0]
    if not is_class and owner in roster and name in roster[owner].nodes:
        return [roster[owner]]
    if name in roster:
        return [roster[name]]
    if not is_class and (on_host := [group.on(name) for group in roster.values() if name in group.hosts]):
        return on_host
    raise Problems([_unknown(name, roster)])


def _unknown(name: str, roster: Roster) -> Problem:
    """Say what could have been meant: of a class that there is, its nodes."""
    for owner in sorted(classes_of(roster), key=len, reverse=True):
        if name.startswith(owner) and name[len(owner) :].lstrip("-._ [#").rstrip("]").isdecimal():
            first, last = roster[owner].nodes[0], roster[owner].nodes[-1]
            has = f"{first} to {last}" if first != last else f"{first} alone"
            return Problem((), f"no node {name!r}; class {owner} has {has}")
    hosts = sorted({host for group in roster.values() for host in group.hosts if host})
    known = [*classes_of(roster), WORKERS, *(role for role in ("server", "evaluator") if role in roster), *hosts]
    choice = choose(name, known)
    message = f"no node or class {name!r}{' or host with nodes' if hosts else ''}; {choice}"
    return Problem((), message, choice=choice)
