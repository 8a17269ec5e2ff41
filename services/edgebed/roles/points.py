"""Points: where in its protocol a worker is, and which of its faults wait for it there.

    Model ---> after-pull, gradient, before-push ---> Push ---> during-push, after-push, during-pull ---> Model

A pull has the number of the push that follows it. Chance depends on the fault, the incarnation and the push alone,
so that the same faults happen in every runtime.
"""

from edgebed.core import chance
from edgebed.core.plan import WorkerPlan
from edgebed.core.planned.fault import Point, PointTrigger


class PointFaults:
    """Faults of one incarnation of a worker that wait at a point; each happens at most once for each push."""

    def __init__(self, plan: WorkerPlan, incarnation: int) -> None:
        self.triggers = plan.points
        self.seed = plan.seed
        self.draw_name = chance.draw_name(plan.node, incarnation)
        self.is_first_incarnation = incarnation == 1
        self.happened: dict[int, int] = {}
        """Push at which each fault last happened."""

    def due(self, point: Point, step: int) -> int | None:
        """Return the first fault due at `point` of a push and not done there yet; None: the worker may continue."""
        return next((trigger.fault for trigger in self.triggers if self._is_due(trigger, point, step)), None)

    def reached(self, point: Point, step: int) -> int | None:
        """Return what `due` does, and note that it happens now."""
        fault = self.due(point, step)
        if fault is not None:
            self.happened[fault] = step
        return fault

    def _is_due(self, waiting: PointTrigger, point: Point, step: int) -> bool:
        trigger = waiting.trigger
        if trigger.point != point or self.happened.get(waiting.fault) == step or trigger.step not in (None, step):
            return False
        if trigger.probability is not None:
            return chance.uniform(self.seed, f"fault/{waiting.fault}", self.draw_name, step) < trigger.probability
        return self.is_first_incarnation and waiting.fault not in self.happened
