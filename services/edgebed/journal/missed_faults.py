"""Faults in a plan that did not happen because training ended before. Computed from the plan and the series; pure.

A fault that began has happened, even if it was to be undone later, after a `for` or a `delay`. One that was done only
when training had ended did nothing to it: it did not happen. A fault with a `probability` may not happen at all.
"""

from collections import Counter
from typing import NamedTuple

from edgebed.core.plan import Plan
from edgebed.core.planned.fault import FaultPlan, Injection
from edgebed.core.quantities import number_text, seconds_text
from edgebed.journal.series import Series
from edgebed.roles.control.fault_text import trigger_text

SECONDS_MAX = 100.0
"""Times below this are shown in seconds as they stand in a scenario."""


class Missed(NamedTuple):
    """A fault of one node that did not happen."""

    fault: FaultPlan
    no_op: str = ""
    """Why the fault could not happen: the node had gone before; empty if training just ended too early."""
    goes_on: bool = False
    """Whether it is a moment of an entry with several, as churn, and was not due yet, or others of them happened."""

    @property
    def begins_with(self) -> Injection:
        """The fault's first action."""
        return self.fault.steps[0].injection

    @property
    def text(self) -> str:
        """The fault's name and when it was due, e.g. `restart-1 at 20 s`, `kill-1 of edge-2, after-push 500`."""
        trigger = self.fault.trigger
        if trigger.at_s is not None:
            at_s = trigger.at_s
            return f"{self.fault.name} at {f'{number_text(at_s)} s' if at_s < SECONDS_MAX else seconds_text(at_s)}"
        of_node = f" of {self.fault.node}," if trigger.point else ""
        return f"{self.fault.name}{of_node} {trigger_text(trigger, trigger.step)}"


def missed_faults(plan: Plan, series: Series) -> tuple[Missed, ...]:
    """Faults that will not happen any more, in the plan's order; none while the trial is in progress."""
    if series.trial is None or series.ended is None:
        return ()
    in_time = [done.record for done in series.faults if done.t <= series.trained_s]
    begun = Counter((record.name, record.target, record.action) for record in in_time)
    last = {node.name: node.state for t, node in series.nodes if t <= series.trained_s}
    recurring = {fault.name for fault in plan.faults if fault.recurs}
    began = {record.name for record in in_time}
    missed = []
    for fault in sorted(plan.faults, key=lambda fault: fault.trigger.at_s or 0.0):
        key = fault.name, fault.node, fault.steps[0].injection.action
        if fault.trigger.probability is not None:
            continue
        if begun[key]:
            begun[key] -= 1
            continue
        state = last.get(fault.node, "")
        is_no_op = fault.trigger.point is not None and state in ("died", "missing")
        no_op = f"it had gone before ({state})" if is_no_op else ""
        is_due = (fault.trigger.at_s or 0.0) <= series.trained_s
        goes_on = fault.name in recurring and (fault.name in began or not is_due)
        missed.append(Missed(fault, no_op, goes_on))
    return tuple(missed)
