"""Evaluations that could not be made while the evaluator was away: the controller notes which ones are missing."""

from edgebed.core.plan import TrainingPlan
from edgebed.core.records import Evaluated, Note
from edgebed.roles.events import Effect, Journal


class Evaluations:
    """Follows what the evaluator reports, one life after another."""

    def __init__(self, plan: TrainingPlan, last: tuple[float, int] | None = None) -> None:
        """`last`: seconds of training and version of a resumed trial's last evaluation; None: there is none."""
        self.evaluator = plan.evaluator
        self.has_shards = not plan.pushes
        self.last = last
        self.incarnation = 1
        """The life of the evaluator that reported last."""

    def measured(self, time_s: float, record: Evaluated, incarnation: int) -> list[Effect]:
        """Note which evaluations were due between this one, the first of a new life, and the last of the life before.

        Versions of a model that lies in shards are not exact, and not compared.
        """
        last, self.last = self.last, (time_s, record.version)
        is_first, self.incarnation = incarnation != self.incarnation, incarnation
        if not is_first or self.has_shards:
            return []
        missing = self._missing(last, time_s, record.version)
        return [Journal(Note(text=f"{missing} not made: the evaluator was away"))] if missing else []

    def _missing(self, last: tuple[float, int] | None, time_s: float, version: int) -> str:
        """Name the evaluations that were due in between; empty if there is none."""
        every_s, every = self.evaluator.evaluate_every_s, self.evaluator.evaluate_every_updates
        if every is not None:
            first = 0 if last is None else (last[1] // every + 1) * every
            due = range(first, version, every)
            if len(due) > 1:
                return f"{len(due)} evaluations, of updates {due[0]} to {due[-1]}, were"
            return f"the evaluation of update {due[0]} was" if due else ""
        assert every_s is not None
        num_due = 0 if last is None else int((time_s - last[0]) / every_s) - 1
        verb = "was" if num_due == 1 else "were"
        return f"{num_due} of the evaluations every {every_s:g} s {verb}" if num_due > 0 else ""
