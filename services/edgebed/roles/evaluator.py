"""The evaluator: measures the model at fixed versions, or at fixed times, on each part of the data that is held out.

It asks the server for a version and gets the model the moment that version is reached, or at once where training has
gone past it: the server has stored what is due and was not asked for yet, so that in every runtime what is measured
belongs to an exact version. When training is over it works off what is still stored before it measures the final model,
for `BACKLOG_S` at most. It uses the management network: watching is no traffic of the method's. When its connection had
broken, or the server is elsewhere now, it asks again for what it waits for. Where each worker has a model of its own,
the server's is none of training, and nothing is measured of it.
"""

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.registry import has_own_models
from edgebed.core.measures.task import TEST, VALIDATION
from edgebed.core.plan import EvaluatorPlan
from edgebed.core.records import Diverged, Evaluated
from edgebed.core.units import LARGEST
from edgebed.learning.objectives.registry import objective_of_task
from edgebed.roles.clients import DueByClient, batched, clients_record
from edgebed.roles.events import (
    Compute,
    Computed,
    Connected,
    Effect,
    EndNode,
    Event,
    Journal,
    MessageReceived,
    Observe,
    Send,
    Wake,
    Woken,
    unexpected,
)
from edgebed.roles.finiteness import NotFinite, first_given
from edgebed.roles.work import ClientsJob, ClientsResult, EvaluationJob, EvaluationResult
from edgebed.wire.messages import Finish, Model, Pull, Refuse, Start
from edgebed.wire.tensors import decode_row

BACKLOG_S = 60.0
"""Time after the end of training in which versions are measured that had still to be."""
BEYOND = LARGEST
"""A version that training never comes to, so that the final model is sent."""


class Evaluator:
    """The heart of the evaluator."""

    def __init__(self, plan: EvaluatorPlan) -> None:
        self.plan = plan
        self.objective = objective_of_task(plan.task)
        self.asked_at_s = 0.0
        self.asking: int | None = 0
        """Version that the evaluator waits for, from the beginning on; None: it waits for none."""
        self.idle = False
        """Whether the evaluator waits for the time of the next evaluation."""
        self.finished_s: float | None = None
        """When the final model was there, or about to be; None: training goes on."""
        self.theta: NDArray[np.float32] | None = None
        """(n,) weights that are being measured."""
        self.due = DueByClient(plan.by_client)
        self.has_diverged = False
        """Whether a model measured something that is not finite, which has been reported."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Pull, measure, report, and pull again until the model is final."""
        if isinstance(event, Observe):
            return []
        if isinstance(event, MessageReceived):
            return self._received(event, now)
        if isinstance(event, Computed) and isinstance(event.result, EvaluationResult):
            return self._evaluated(event.result, now)
        if isinstance(event, Computed) and isinstance(event.result, ClientsResult):
            return [Journal(clients_record(self.objective, event.result))]
        if isinstance(event, Connected):
            return self._ask_again(now)
        if isinstance(event, Woken):
            return self._pull(0, now) if self.idle else []
        raise unexpected(self, event)

    def _received(self, event: MessageReceived, now: float) -> list[Effect]:
        message = event.message
        if isinstance(message, Start):
            return self._ask_again(now)
        if isinstance(message, Model):
            if self.asking is None:
                return []  # it had asked again, and was answered twice
            self.asking = None
            if has_own_models(self.plan.method):
                return self._evaluated(EvaluationResult(message.version, message.final, {}), now)
            row = decode_row([tensor.name for tensor in message.tensors], message.tensors, event.frames)
            self.theta = row[: len(row) // len(message.tensors)]
            return [*self._by_client(message), Compute(EvaluationJob(self.theta, message.version, message.final))]
        if isinstance(message, Finish):
            self.finished_s = now
            return self._pull(0, now) if self.idle else []
        if isinstance(message, Refuse):
            return [EndNode(f"refused by {message.sender} ({message.code}): {message.reason}")]
        raise unexpected(self, event)

    def _by_client(self, model: Model) -> list[Effect]:
        """Measure the model client by client where that is due.

        It is before it is measured as a whole, since the final evaluation is the last that is heard of.
        """
        plan, theta = self.plan.by_client, self.theta
        if plan is None or theta is None or not self.due.is_due(model.version, self.asked_at_s, final=model.final):
            return []
        return [Compute(ClientsJob(theta, model.version, model.final, clients)) for clients in batched(plan.clients)]

    def _diverged(self, result: EvaluationResult) -> list[Effect]:
        """Report what of the model is not finite, the first time that something measured is not."""
        theta, self.theta = self.theta, None
        sums = (each for part in result.sums.values() for each in part.items())
        broken = [name for name, (total, _) in sums if not np.isfinite(total).all()]
        if theta is None or self.has_diverged or not broken:
            return []
        self.has_diverged = True
        what, tensor = first_given(self.plan.task.layout, theta) or NotFinite(broken[0])
        return [Journal(Diverged(step=result.version, what=what, tensor=tensor))]

    def _evaluated(self, result: EvaluationResult, now: float) -> list[Effect]:
        values = {part: self.objective.measured(sums) for part, sums in result.sums.items()}
        record = Evaluated(
            version=result.version,
            measured=values.get(TEST, {}),
            validation=values.get(VALIDATION, {}),
            final=result.final,
        )
        effects: list[Effect] = [*self._diverged(result), Journal(record)]
        if result.final:
            return effects
        if self.plan.evaluate_every_updates is not None:
            every = self.plan.evaluate_every_updates
            is_late = self.finished_s is not None and now > self.finished_s + BACKLOG_S
            return effects + self._pull(BEYOND if is_late else (result.version // every + 1) * every, now)
        if self.finished_s is not None:
            return effects + self._pull(0, now)
        assert self.plan.evaluate_every_s is not None
        next_s = self.asked_at_s + self.plan.evaluate_every_s
        if next_s <= now:
            return effects + self._pull(0, now)
        self.idle = True
        return [*effects, Wake(next_s, "evaluate")]

    def _ask_again(self, now: float) -> list[Effect]:
        return [] if self.asking is None else self._pull(self.asking, now)

    def _pull(self, at_version: int, now: float) -> list[Effect]:
        self.asked_at_s = now
        self.asking = at_version
        self.idle = False
        return [Send("server", Pull(sender=self.plan.node, at_version=at_version))]
