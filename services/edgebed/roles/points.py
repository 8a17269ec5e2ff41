"""Points: where in its protocol a worker is, and which of its faults wait for it there.

    Model ---> after-pull, gradient, before-push ---> Push ---> during-push, after-push, during-pull ---> Model

A pull has the number of the push that follows it. Chance depends on nothing but the fault, the life and the push, so
that the same faults happen in every runtime.
"""

from edgebed import chance
from edgebed.scenario.plan import NodePlan, Point, PointTrigger


class Points:
    """The faults of one life of a worker that wait at a point; each happens at most once for each push."""

    def __init__(self, plan: NodePlan, incarnation: int) -> None:
        self.triggers = plan.points
        self.seed = plan.seed
        self.life = chance.life(plan.node, incarnation)
        self.is_first_life = incarnation == 1
        self.happened: dict[int, int] = {}
        """Fault: the push that it last happened at."""

    def due(self, point: Point, step: int) -> int | None:
        """The first fault that waits at `point` of a push and has not happened there; None: the worker may go on."""
        return next((trigger.fault for trigger in self.triggers if self._is_due(trigger, point, step)), None)

    def reached(self, point: Point, step: int) -> int | None:
        """The same, and it happens now."""
        fault = self.due(point, step)
        if fault is not None:
            self.happened[fault] = step
        return fault

    def _is_due(self, waiting: PointTrigger, point: Point, step: int) -> bool:
        trigger = waiting.trigger
        if trigger.point != point or self.happened.get(waiting.fault) == step or trigger.step not in (None, step):
            return False
        if trigger.probability is not None:
            return chance.uniform(self.seed, f"fault/{waiting.fault}", self.life, step) < trigger.probability
        return self.is_first_life and waiting.fault not in self.happened
