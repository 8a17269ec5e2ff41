"""When training stops: at a level of a measure, after a time, or because the server has applied its last update."""

import math
from collections import deque
from statistics import fmean

from edgebed.core.plan import TrainingPlan, WorkerPlan
from edgebed.core.records import Clients, Evaluated, Finished
from edgebed.roles.control.members import Members, State
from edgebed.roles.control.name import NAME
from edgebed.roles.events import Effect
from edgebed.wire import messages


class Stopping:
    """Tells the server to apply no more updates; one that is away hears it when it is back."""

    def __init__(self, plan: TrainingPlan, members: Members) -> None:
        self.plan = plan
        self.members = members
        self.reason = ""
        """Why no more updates are to be applied; empty while updates are applied."""
        self.evaluated: deque[float] = deque(maxlen=plan.stop_level.window if plan.stop_level else 1)
        """Last values of the measure, whose mean may end the training; of a resumed trial, since it was resumed."""
        self.version = -1
        """Version that was evaluated last."""
        self.final_version: int | None = None
        """Version of the final model, once that has been evaluated."""
        self.with_own = [each.node for each in plan.workers() if each.by_client]
        """Workers that measure models of their own."""
        self.measuring = {*self.with_own}
        """Workers that are still to measure their final models."""

    def measured(self, record: Evaluated) -> list[Effect]:
        """Stop training if that was the level to be reached."""
        level = self.plan.stop_level
        if level is None or record.version == self.version:
            return []
        self.version = record.version
        self.evaluated.append(record.selecting.get(level.measure, math.nan))
        mean = fmean(self.evaluated)
        measure = next(each for each in self.plan.measures if each.name == level.measure)
        if len(self.evaluated) < level.window or not measure.is_reached(mean, level.value):
            return []
        words = measure.words_on(self.plan.evaluator.selects_by)
        of = "" if level.window == 1 else f" (mean of {level.window} evaluations)"
        return self._stop(f"{words} {mean:.4g}{of} reached {level.value:g} at update {record.version}")

    def timed_out(self) -> list[Effect]:
        """Stop training as its time has passed."""
        return self._stop(f"{self.plan.stop_time_s:g} s have passed")

    def finished(self, record: Finished) -> list[Effect]:
        """Have the final model evaluated, and those that workers have of their own."""
        self.reason = record.reason
        self.measuring = {name for name in self.with_own if self.members[name].state is State.RUNNING}
        finish = messages.Finish(sender=NAME, reason=record.reason, version=record.version)
        return [effect for name in ("evaluator", *self.with_own) for effect in self.members.send(name, finish)]

    def measured_own(self, worker: str, record: Clients) -> None:
        """Note that a worker has measured its own final model on some of its clients."""
        plan = self.members[worker].plan
        assert isinstance(plan, WorkerPlan)
        assert plan.by_client
        if record.final and record.clients[-1:] in ((), plan.by_client.clients[-1:]):
            self.measuring.discard(worker)

    @property
    def is_measured(self) -> bool:
        """Whether everything that is final has been measured, but by those who are away."""
        there = (name for name in self.measuring if self.members[name].state is State.RUNNING)
        return self.final_version is not None and not any(there)

    def _stop(self, reason: str) -> list[Effect]:
        self.reason = self.reason or reason
        return self.members.send("server", messages.Finish(sender=NAME, reason=reason))
