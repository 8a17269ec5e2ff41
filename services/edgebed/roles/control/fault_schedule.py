"""When a plan's faults are triggered: at a time, a number of updates, a measure, or a point of a worker's protocol."""

from collections.abc import Iterator, Mapping
from operator import itemgetter

from edgebed.core.actions import UNDOES
from edgebed.core.plan import Plan
from edgebed.core.planned.fault import Injection
from edgebed.roles.control.fault_text import trigger_text
from edgebed.roles.control.pending_actions import FaultCause
from edgebed.wire.messages import Reached

Steps = Iterator[tuple[FaultCause, Injection]]
"""Steps of faults that are triggered; `asked_s` of the cause is when each is due."""


class FaultSchedule:
    """A plan's faults, and which of them have been triggered."""

    def __init__(self, plan: Plan) -> None:
        self.faults = plan.faults
        self.by_update = sorted(
            (fault.trigger.at_update, k) for k, fault in enumerate(plan.faults) if fault.trigger.at_update is not None
        )
        """(update, index in the plan) of faults that are still to come."""
        self.by_measure = {k: at for k, fault in enumerate(plan.faults) if (at := fault.trigger.at_measure)}
        """Places in the plan of faults at a measure that are still to come, and what each waits for."""
        self.passed_s = -1.0
        """Time since training began until which timed steps have been done."""
        self.met: set[int] = set()
        """Places in the plan of faults at a point, each met once, that a worker has come to."""
        self.triggered_s: Mapping[tuple[str, str], float] = {}
        """When the faults until then were triggered, since training began, by name and node."""

    def timed(self, began_s: float) -> Steps:
        """Yield steps whose time is known now that training began, but for those that have been done."""
        for cause, injection in self._known(began_s):
            if cause.asked_s > began_s + self.passed_s:
                yield cause, injection

    def resume(
        self, passed_s: float, updates: int, triggered_s: Mapping[tuple[str, str], float]
    ) -> list[tuple[FaultCause, Injection]]:
        """Note what has been triggered before the trial was resumed; return the steps that were done, in order."""
        self.passed_s = passed_s
        self.by_update = [due for due in self.by_update if due[0] > updates]
        self.triggered_s = triggered_s
        passed = [(cause.asked_s, cause, step) for cause, step in self._known(0.0) if cause.asked_s <= passed_s]
        return [(cause, step) for _, cause, step in sorted(passed, key=itemgetter(0))]

    def updated(self, version: int, now: float) -> Steps:
        """Yield steps of faults that are triggered now that the server has applied so many updates."""
        while self.by_update and self.by_update[0][0] <= version:
            yield from self._steps(self.by_update.pop(0)[1], now)

    def measured(self, node: str, device_class: str, measured: Mapping[str, float], now: float) -> Steps:
        """Yield steps of faults that are triggered now that the program of a node has told these measures."""
        for k, at in list(self.by_measure.items()):
            value = measured.get(at.measure)
            if value is not None and at.of in ("", node, device_class) and at.is_met(value):
                del self.by_measure[k]
                yield from self._steps(k, now)

    def reached(self, message: Reached, now: float) -> Steps:
        """Yield steps of the fault that waits where a worker stands; none if there is no such fault of its own."""
        place = message.fault
        fault = self.faults[place] if place < len(self.faults) else None
        if fault is None or fault.node != message.sender or fault.trigger.point is None or place in self.met:
            return iter(())
        if fault.trigger.probability is None:
            self.met.add(place)
        return self._steps(place, now, message)

    def _known(self, began_s: float) -> Steps:
        """Yield steps of the faults whose time is known: planned, or triggered before the trial was resumed.

        For a fault that chance triggers again and again no time is known.
        """
        for k, fault in enumerate(self.faults):
            at_s = fault.trigger.at_s
            if at_s is None and fault.trigger.probability is None:
                at_s = self.triggered_s.get((fault.name, fault.node))
            if at_s is not None:
                yield from self._steps(k, began_s + at_s)

    def _steps(self, place: int, at_s: float, reached: Reached | None = None) -> Steps:
        fault = self.faults[place]
        text = trigger_text(fault.trigger, reached.step if reached else None)
        for k, step in enumerate(fault.steps):
            waiting = reached.sender if reached and k == 0 else ""
            undoes_all = k == 0 and step.injection.action in UNDOES
            begun_s = at_s if k else None
            yield (
                FaultCause(fault.name, text, at_s + step.after_s, waiting, undoes_all=undoes_all, begun_s=begun_s),
                step.injection,
            )
