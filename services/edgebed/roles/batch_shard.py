"""A layer shard that nobody holds up: what came is matched by its batch with what it predicted, in whatever epoch.

    own step:  teach the gradient module a pair, if one matches ---> teach the input module one ---> forward, learn

What is matched says algorithms/layerwise/synthetic_inputs.py. What arrives is confirmed by `Taken` at once, so that
no more than the queue is on its way. A store confirms, too; it hands over the newest of a batch to whoever asks for it,
which a shard does at each of its steps whose outputs go up.

A backup is made at its step without waiting for anything. What is kept by batch is not in it.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from edgebed.algorithms.layerwise.rule import At, Rule
from edgebed.roles.by_batch import ByBatch, Outbox
from edgebed.roles.events import Compute, Effect, Send
from edgebed.roles.follower import Passing
from edgebed.roles.layer_shard import LayerShard
from edgebed.roles.phases import Phase
from edgebed.roles.shard_work import ForwardJob, ShardJob, TeachInputsJob, TeachJob
from edgebed.scenario.plan import NodePlan
from edgebed.wire.messages import Activation, Taken
from edgebed.wire.tensors import Buffer, decode_exchanged


def shard_of(plan: NodePlan, rule: Rule, incarnation: int = 1) -> LayerShard:
    """The heart of the shard that the plan tells of."""
    return (BatchShard if rule.match == "batch" else LayerShard)(plan, rule, incarnation)


class BatchShard(LayerShard):
    """The heart of such a shard."""

    def begin_at(self, step: int) -> None:
        """Nothing has been predicted, and nothing has come."""
        super().begin_at(step)
        assert self.shard.batches is not None
        self.batches = self.shard.batches
        self.came_up: ByBatch[NDArray[np.float32]] = ByBatch(self.batches)
        """Inputs from below."""
        self.came_down: ByBatch[NDArray[np.float32]] = ByBatch(self.batches)
        """Gradients from above."""
        self.made: dict[int, int] = {}
        """By batch, the step whose outputs the gradient module remembers."""
        self.to_teach: list[str] = []
        """Which modules have yet to have their turn before the next step."""
        self.matched: dict[str, int | None] = {}
        """How far the pairs since the last step were apart."""
        self.asked: set[tuple[str, int]] = set()
        """What a store has been asked for and has not given: whose, and the batch."""
        self.outboxes = {
            neighbour: Outbox(self.batches, self.shard.queue, is_open=neighbour != self.shard.below)
            for neighbour in ([self.shard.store] if self.shard.store else [self.shard.above, self.shard.below])
            if neighbour
        }

    def put_aside(self, message: Passing, frames: Sequence[Buffer]) -> list[Effect]:
        """The newest of its batch is kept, and its sender hears that it has come."""
        if isinstance(message, Taken):
            return self.outboxes[message.sender].taken()
        kept = self.came_up if isinstance(message, Activation) else self.came_down
        kept.put(message.step, decode_exchanged(message.tensors[0], frames))
        self.asked.discard((message.sender, message.step % self.batches))
        if self.shard.store:
            return []
        taken = Taken(sender=self.plan.node, step=message.step, **self.era)
        return [Send(message.sender, taken), *self.outboxes[message.sender].open()]

    def queues(self) -> dict[str, int]:
        """Of batches: inputs and gradients that wait for their pair, what is on its way, and what waits for that."""
        outboxes = self.outboxes.values()
        return {
            "inputs": len(self.came_up),
            "gradients": len(self.came_down),
            "unanswered": sum(outbox.on_their_way for outbox in outboxes),
            "unsent": sum(len(outbox.waiting) for outbox in outboxes),
        }

    def resumed(self) -> list[Effect]:
        """Whoever comes to a step asks for its batch."""
        return []

    # --- work ---------------------------------------------------------------------------------------------------

    def go_on(self) -> list[Effect]:
        """A backup where one is due, a pair for each module, the next batch."""
        job = self._backup_job() or self._teach() or self._forward()
        if job is None:
            return []
        self.jobs.append(job)
        asked = self._ask(self.shard.below, "activation", job.at) if isinstance(job, ForwardJob) else []
        return [*asked, Compute(job)]

    def is_settled(self) -> bool:
        """Nothing is waited for."""
        return True

    def may_begin(self, at: At) -> bool:
        """At any time."""
        return True

    def waits_for(self) -> Phase | None:
        """For nothing."""
        return None

    def _teach(self) -> ShardJob | None:
        """Who has made all steps has no more use for modules."""
        while self.to_teach and self.next.step != self.shard.steps:
            job = self._teach_gradient() if self.to_teach.pop(0) == "gradient" else self._teach_input()
            if job is not None:
                return job
        return None

    def _teach_gradient(self) -> ShardJob | None:
        found = self.came_down.pop_first(self.made.__contains__)
        if found is None:
            return None
        step, gradient = found
        own = self.made.pop(step % self.batches)
        self.matched["gradient_lag"] = own - step
        return TeachJob(At(own), gradient, passes=False)

    def _teach_input(self) -> ShardJob | None:
        found = self.came_up.pop_first(lambda batch: self._last(batch) >= self.since)
        if found is None:
            return None
        step, inputs = found
        own = self._last(step % self.batches)
        self.matched["input_lag"] = own - step
        return TeachInputsJob(At(own), self._batch(At(own)), inputs)

    def _last(self, batch: int) -> int:
        """The last step that had this batch."""
        last = self.next.step - 1
        return last - (last - batch) % self.batches

    def _forward(self) -> ForwardJob | None:
        job = super()._forward()
        if job is None:
            return None
        self.to_teach = ["gradient", "input"]
        if not self.shard.above or not self.rule.sends(job.at.step):
            return job
        batch = job.at.step % self.batches
        before, self.made[batch] = self.made.get(batch), job.at.step
        return job if before is None else replace(job, forgets=At(before))

    def lags(self) -> dict[str, int | None]:
        """Of the pairs since the step before."""
        lags, self.matched = self.matched, {}
        return lags

    # --- what is sent ---------------------------------------------------------------------------------------------

    def hand_up(self, at: At, sent: Send) -> list[Effect]:
        """Outputs leave when there is room on the way."""
        return [*self.outboxes[sent.to].put(sent), *self._ask(self.shard.above, "answer", at)]

    def hand_down(self, at: At, sent: Send) -> list[Effect]:
        """The gradient of inputs leaves when there is room on the way."""
        return self.outboxes[sent.to].put(sent)

    def _ask(self, of: str, what: Literal["activation", "answer"], at: At) -> list[Effect]:
        """A store, for the newest of this batch, unless it has been asked and has none yet."""
        key = of, at.step % self.batches
        if not self.shard.store or not of or key in self.asked or not self.rule.sends(at.step):
            return []
        self.asked.add(key)
        return [self._fetch(of, what, at)]
