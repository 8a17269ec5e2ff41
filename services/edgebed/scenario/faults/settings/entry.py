"""What all kinds of faults share: an entry of `faults` with a target, and how it becomes the plan's faults.

A kind is a `FaultSection` with a key of its own that holds its target, settings, and `steps`: what is done to one node,
and when, counted from the trigger. A kind whose nodes do not all have the same steps says so in `resolve` instead.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from edgebed.core.actions import Action
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection
from edgebed.core.planned.link import LinkChange
from edgebed.scenario.faults.settings.targets import Draw, Group, Role, Roster, Target, groups_of, nodes_of
from edgebed.scenario.faults.settings.triggers import Timed
from edgebed.scenario.mistakes.problems import Problem
from edgebed.scenario.names import FaultName

ONLY_WATCHES = "the evaluator only watches; it can be killed, frozen and restarted"
NO_LINK = "the evaluator has no link: watching is not traffic"


class FaultSection(Timed):
    """One entry of `faults`."""

    kind: ClassVar[str]
    """The key that names the kind and holds the target."""
    example: ClassVar[str]
    """An entry as a scenario writes it, of one node `edge-0` or of all `edge`."""
    not_for: ClassVar[Mapping[Role, str]] = MappingProxyType({})
    """Role -> why a node of it cannot be the target."""

    name: FaultName | None = None
    """Name of the fault in the journal and the report; its kind and place if left out, e.g. `freeze-2`, the second
    entry."""

    @abstractmethod
    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return what is done to one node: the first step at once, the others by time."""

    def resolve(self, name: str, roster: Roster, draw: Draw) -> Iterator[FaultPlan]:
        """Yield the faults of all nodes that are meant."""
        for node in nodes_of(self.target, roster, draw):
            yield FaultPlan(name=name, node=node, trigger=self.trigger(), steps=self.steps(node))

    def problems(self, roster: Roster) -> Iterator[Problem]:
        """Yield what does not fit the nodes that are meant."""
        yield from self.target_problems(self.kind, self.target, roster)

    def target_problems(self, key: str, target: Target, roster: Roster) -> Iterator[Problem]:
        """Yield what does not fit the nodes of one target, which stands at `key`."""
        for group in groups_of(target, roster):
            if reason := self.not_for.get(group.role):
                yield Problem((key,), reason)
            elif trigger := next(self._strange_triggers(group.role), None):
                yield trigger
            else:
                yield from self.misfits(group)

    def _strange_triggers(self, role: Role) -> Iterator[Problem]:
        """Yield a trigger that nodes of a role do not know."""
        moment = self.point.partition("-")[0] if self.point else ""
        if role == "program":
            for key in [key for key in (moment, "at_update" if self.at_update is not None else "") if key]:
                why = "of a program no updates and no pushes are known; give at or at_measure"
                yield Problem((key,), why, at_key=True)
        elif self.at_measure is not None:
            why = "nodes that train tell no measures by their output; give at or at_update"
            yield Problem(("at_measure",), why, at_key=True)
        elif moment and role != "worker":
            yield Problem((moment,), f"the {role} does not push; give at or at_update", at_key=True)

    def misfits(self, group: Group) -> Iterable[Problem]:
        """Yield what of this kind's settings does not fit the nodes of a group."""
        return ()

    @property
    def target(self) -> Target:
        """Return the target, which stands at the kind's key."""
        target: Target = getattr(self, self.kind)
        return target


def step(
    after_s: float, node: str, action: Action, *, change: LinkChange | None = None, cpus: float | None = None
) -> FaultStep:
    """Make a step of a fault."""
    return FaultStep(after_s=after_s, injection=Injection(node=node, action=action, change=change, cpus=cpus))


def for_a_while(
    duration_s: float | None, node: str, begin: Action, end: Action, **settings: Any
) -> tuple[FaultStep, ...]:
    """Return `begin`, and after `duration_s` (None: never) `end`."""
    first = step(0.0, node, begin, **settings)
    return (first,) if duration_s is None else (first, step(duration_s, node, end))
