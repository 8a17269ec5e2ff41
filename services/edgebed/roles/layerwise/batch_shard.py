"""A layer shard that nobody holds up: what came is matched by its batch with what it predicted, in whatever epoch.

    own step:  teach the gradient module a pair, if one matches ---> teach the input module one ---> forward, learn

What is matched says algorithms/layerwise/synthetic_inputs.py. What arrives is confirmed by `Taken` at once, so that
no more than the queue is on its way. A store confirms, too; it hands over the newest of a batch to whoever asks for it,
which a shard does at each of its steps whose outputs go up.

A backup is made at its step without waiting for anything. What is stored by batch is not in it.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from edgebed.algorithms.layerwise.rule import BatchPart, Rule
from edgebed.core.plan import WorkerPlan
from edgebed.roles.events import Compute, Effect, Send
from edgebed.roles.layerwise.by_batch import ByBatch, Outbox
from edgebed.roles.layerwise.follower import Passing
from edgebed.roles.layerwise.layer_shard import LayerShard
from edgebed.roles.layerwise.phases import Phase
from edgebed.roles.layerwise.shard_work import ForwardJob, ShardJob, TeachInputsJob, TeachJob
from edgebed.wire.messages import Activation, Taken
from edgebed.wire.tensors import Buffer, decode_exchanged


def shard_of(plan: WorkerPlan, rule: Rule, incarnation: int = 1) -> LayerShard:
    """Return the heart of the shard that the plan describes."""
    return (BatchShard if rule.match == "batch" else LayerShard)(plan, rule, incarnation)


class BatchShard(LayerShard):
    """The heart of a layer shard that matches by batch."""

    def begin_at(self, step: int) -> None:
        """Begin with nothing predicted, and nothing come."""
        super().begin_at(step)
        assert self.shard.batches is not None
        self.batches = self.shard.batches
        self.came_up: ByBatch[NDArray[np.float32]] = ByBatch(self.batches)
        """Inputs from below."""
        self.came_down: ByBatch[NDArray[np.float32]] = ByBatch(self.batches)
        """Gradients from above."""
        self.made: dict[int, int] = {}
        """Steps by batch whose outputs the gradient module remembers."""
        self.to_teach: list[str] = []
        """Modules that have yet to have their turn before the next step."""
        self.matched: dict[str, int | None] = {}
        """Lags between the members of each pair since the last step."""
        self.asked: set[tuple[str, int]] = set()
        """(maker, batch) of what a store has been asked for and has not given."""
        self.outboxes = {
            neighbour: Outbox(self.batches, self.shard.queue, is_open=neighbour != self.shard.below)
            for neighbour in ([self.shard.store] if self.shard.store else [self.shard.above, self.shard.below])
            if neighbour
        }

    def put_aside(self, message: Passing, frames: Sequence[Buffer]) -> list[Effect]:
        """Store the newest of its batch, and tell its sender that it has come."""
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
        """Return how many batches' inputs and gradients wait for their pair, are on their way, and wait for that."""
        outboxes = self.outboxes.values()
        return {
            "inputs": len(self.came_up),
            "gradients": len(self.came_down),
            "unanswered": sum(outbox.on_their_way for outbox in outboxes),
            "unsent": sum(len(outbox.waiting) for outbox in outboxes),
        }

    def resumed(self) -> list[Effect]:
        """Ask for nothing: a shard asks for a batch when it comes to a step of it."""
        return []

    # --- work ---------------------------------------------------------------------------------------------------

    def go_on(self) -> list[Effect]:
        """Begin a backup where one is due, a pair for each module, or the next batch."""
        job = self._backup_job() or self._teach() or self._forward()
        if job is None:
            return []
        self.jobs.append(job)
        asked = self._ask(self.shard.below, "activation", job.at) if isinstance(job, ForwardJob) else []
        return [*asked, Compute(job)]

    def is_settled(self) -> bool:
        """Return True: a backup never has to wait."""
        return True

    def may_begin(self, at: BatchPart) -> bool:
        """Return True: a step may begin at any time."""
        return True

    def waits_for(self) -> Phase | None:
        """Return None: the shard waits for nothing."""
        return None

    def _teach(self) -> ShardJob | None:
        """Return the next lesson of a module; none when all steps are made, as modules have no more use."""
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
        return TeachJob(BatchPart(own), gradient, passes=False)

    def _teach_input(self) -> ShardJob | None:
        found = self.came_up.pop_first(lambda batch: self._last(batch) >= self.since)
        if found is None:
            return None
        step, inputs = found
        own = self._last(step % self.batches)
        self.matched["input_lag"] = own - step
        return TeachInputsJob(BatchPart(own), self._batch(BatchPart(own)), inputs)

    def _last(self, batch: int) -> int:
        """Return the last step that had this batch."""
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
        return job if before is None else replace(job, forgets=BatchPart(before))

    def lags(self) -> dict[str, int | None]:
        """Return the lags of the pairs since the step before."""
        lags, self.matched = self.matched, {}
        return lags

    # --- what is sent ---------------------------------------------------------------------------------------------

    def hand_up(self, at: BatchPart, sent: Send) -> list[Effect]:
        """Send outputs up when there is room on the way."""
        return [*self.outboxes[sent.to].put(sent), *self._ask(self.shard.above, "answer", at)]

    def hand_down(self, at: BatchPart, sent: Send) -> list[Effect]:
        """Send the gradient of inputs down when there is room on the way."""
        return self.outboxes[sent.to].put(sent)

    def _ask(self, of: str, what: Literal["activation", "answer"], at: BatchPart) -> list[Effect]:
        """Ask a store for the newest of this batch, unless it has been asked and has none yet."""
        key = of, at.step % self.batches
        if not self.shard.store or not of or key in self.asked or not self.rule.sends(at.step):
            return []
        self.asked.add(key)
        return [self._fetch(of, what, at)]
