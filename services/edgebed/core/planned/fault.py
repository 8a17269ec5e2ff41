"""Faults as the plan knows them: what is done to which node, and when, with all draws made."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from edgebed.core.actions import LINK_ACTIONS, Action
from edgebed.core.bounds import Amount, Count, PositiveAmount, Share
from edgebed.core.planned.link import LinkChange

Point = Literal["before-push", "during-push", "after-push", "during-pull", "after-pull"]
"""Points of a worker's protocol: about to push; the push is leaving; all of it has left; the model is coming; the model
is there and nothing has been done with it."""


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """One thing done to one node."""

    node: str
    action: Action
    change: LinkChange | None = None
    """`link`: the change, whatever the plan says; None: back to the plan. With a `peer` its uplink is the most that
    each of the two may send to the other."""
    cpus: PositiveAmount | None = None
    """`cpus`: the new cap in cores; None: back to the plan's."""
    peer: str = ""
    """`cut`, `heal` and `link`: the only other node that it is between; empty: all."""

    def at(self, node: str) -> "Injection | None":
        """Return what it is to a node's own link; None where it is nothing to it. Between two it is so to both."""
        if node == self.peer:
            return msgspec.structs.replace(self, node=node, peer=self.node)
        return self if node == self.node else None


class AtMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """A value that a measure of programs' output is to reach."""

    measure: str
    value: float
    comparison: Literal[">=", "<="] = ">="
    of: str = ""
    """The class or node whose output tells the measure; empty: any."""

    def is_met(self, value: float) -> bool:
        """Whether a value is as high, or as low, as it is to be."""
        return value >= self.value if self.comparison == ">=" else value <= self.value


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """When a fault happens: at a time, an update or a measure's value, or where a worker is in its protocol.

    At a point it happens once at most for each push. Without a probability it happens in the first incarnation of the
    node alone, and without a step the first time only: a restarted node does not die at once again.
    """

    at_s: Amount | None = None
    """Time since training began."""
    at_update: Count | None = None
    """Number of updates that the server has applied when the fault happens."""
    at_measure: AtMeasure | None = None
    """The value of a measure of programs' output that the fault happens at, the first time."""
    point: Point | None = None
    step: Count | None = None
    """At `point`: only at this push, counted from 0; a pull counts as that of the push which follows it."""
    probability: Share | None = None
    """At `point`: by chance at every push of every incarnation, by (seed, fault, node and incarnation, k-th push)."""


class FaultStep(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a fault: what is done, and how long after the fault was triggered."""

    after_s: Amount
    injection: Injection


class FaultPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of one node, with all draws made."""

    name: str
    """Name of the scenario's entry, which several nodes may share: its own, or e.g. `freeze-2`, the second entry."""
    node: str
    trigger: Trigger
    steps: Annotated[tuple[FaultStep, ...], msgspec.Meta(min_length=1)]
    """Steps in the order of their times, the first at once; e.g. cut and heal."""
    recurs: bool = False
    """Whether the entry has many moments, as churn has, or one with `every`: none is missed before it is due."""
    every_s: PositiveAmount | None = None
    """Time between two moments of an entry that is repeated."""


class PointTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """A fault at a point of a worker's protocol, as the worker knows it: where to stop and ask."""

    fault: Count
    """Index of the fault in `Plan.faults`."""
    trigger: Trigger


def nodes_with_changed_links(faults: Iterable[FaultPlan]) -> set[str]:
    """Nodes whose links faults cut, heal or change."""
    injections = (step.injection for fault in faults for step in fault.steps if step.injection.action in LINK_ACTIONS)
    return {name for injection in injections for name in (injection.node, injection.peer) if name}
