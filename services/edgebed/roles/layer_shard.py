"""A layer shard: some layers of the model, which learn while others learn theirs.

    below ---- Activation ---> forward ---- Activation ---> above
    below <--- Gradient ------ learn   <--- Gradient ------ above

What a shard learns from, and whether it waits for it, says the method's rule (algorithms/layerwise/). It does one thing
at a time: first what came from above, then the next (micro-)batch. At most `queue` activations are unanswered at a
time, so that a fast shard cannot flood a slow one.

A backup is made when everything that has been sent is answered, so that nothing that was on its way is missing in it;
follower.py has what becomes of it.
"""

import functools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed import chance
from edgebed.algorithms.layerwise.rule import At, Rule, Source
from edgebed.roles.events import Compute, Effect, Journal, Send
from edgebed.roles.follower import Follower, Passing
from edgebed.roles.records import Step
from edgebed.roles.shard_work import (
    ForwardJob,
    ForwardResult,
    LearnJob,
    LearnResult,
    ShardJob,
    StateJob,
    TeachInputsJob,
    TeachInputsResult,
    TeachJob,
    TeachResult,
)
from edgebed.roles.work import Result
from edgebed.scenario.plan import NodePlan
from edgebed.wire.messages import Activation, Fetch, Gradient, Taken, Tensor
from edgebed.wire.tensors import Buffer, decode_exchanged

PREFETCH = 2
"""Inputs that a store is asked for before they are needed, so that nobody waits for the way there and back."""
ORDER = "shards"
"""Whose order of batches it is: one for all shards."""


class LayerShard(Follower):
    """The heart of a layer shard."""

    takes = (Activation, Gradient, Taken)

    def __init__(self, plan: NodePlan, rule: Rule, incarnation: int = 1) -> None:
        self.rule = rule
        super().__init__(plan, incarnation)

    def begin_at(self, step: int) -> None:
        """Nothing is on its way, and the next mini-batch is that of this number."""
        self.next = At(step)
        self.learnt = step
        """Steps made."""
        self.kept = step
        """The step of the last backup."""
        self.inputs: dict[At, NDArray[np.float32]] = {}
        """What has come from below and is not used."""
        self.gradients: dict[At, NDArray[np.float32]] = {}
        """What has come from above and is not used."""
        self.unanswered: set[At] = set()
        self.come = step
        """Steps whose inputs have come."""
        self.heard = step
        """Of these, those that have been learnt from, where inputs are predicted meanwhile."""
        self.held: dict[At, Send] = {}
        """Gradients of inputs that have not come yet: whoever makes these has no use for them before."""

    def put_aside(self, message: Passing, frames: Sequence[Buffer]) -> list[Effect]:
        """Until there is time for it."""
        at = At(message.step, message.micro)
        if isinstance(message, Activation):
            self.inputs[at] = decode_exchanged(message.tensors[0], frames)
            self.come = at.step + 1
            held = self.held.pop(at, None)
            return [held] if held else []
        if isinstance(message, Gradient):
            self.gradients[at] = decode_exchanged(message.tensors[0], frames)
        else:
            self.unanswered.discard(at)
        return []

    def resumed(self) -> list[Effect]:
        """Ask for the first inputs."""
        return [effect for ahead in range(PREFETCH) for effect in self._fetch_input(ahead)]

    # --- work ---------------------------------------------------------------------------------------------------

    def done(self, result: Result) -> list[Effect]:
        """What a result leads to."""
        if isinstance(result, ForwardResult):
            return self._went_forward(result)
        if isinstance(result, LearnResult):
            return self._learnt(result)
        if isinstance(result, TeachResult):
            return self._taught(result)
        assert isinstance(result, TeachInputsResult)
        self.heard += 1
        return []

    def _went_forward(self, result: ForwardResult) -> list[Effect]:
        at = result.at
        source = self._source
        if source == "loss" or not (self.rule.waits or self.shard.modules):
            self.jobs.append(self._learn(at, source))
        if not self.shard.above:
            return []
        self.unanswered.add(at)
        sent = Activation(sender=self.plan.node, step=at.step, micro=at.micro, tensors=(result.tensor,), **self.era)
        to_module = [Send(self.shard.modules, sent, result.frames)] if self.shard.modules else []
        return [Send(self.shard.store or self.shard.above, sent, result.frames), *to_module, *self._fetch_answer(at)]

    def _learnt(self, result: LearnResult) -> list[Effect]:
        at = result.at
        effects: list[Effect] = []
        if at.micro == self.rule.micro_batches - 1:
            made = 0 if self.shard.above else self.learnt + 1
            effects.append(Journal(Step(step=self.learnt, made=made, loss=result.loss, **self.era)))
            self.learnt += 1
            self._copy_weights()
        if not self.shard.below:
            return effects
        if self.rule.down == "nothing":
            taken = Taken(sender=self.plan.node, step=at.step, micro=at.micro, **self.era)
            return [*effects, Send(self.shard.store or self.shard.below, taken)]
        if self.rule.down == "true-gradient" and self._source != "loss":
            return effects
        return [*effects, *self._send_down(at, result.tensor, result.frames)]

    def _taught(self, result: TeachResult) -> list[Effect]:
        if result.passed is None or not self.shard.below:
            return []
        return self._send_down(result.at, *result.passed)

    def _send_down(self, at: At, tensor: Tensor, frames: Sequence[Buffer]) -> list[Effect]:
        gradient = Gradient(
            sender=self.plan.node,
            step=at.step,
            micro=at.micro,
            tensors=(tensor,),
            **self.era,
        )
        sent = Send(self.shard.modules or self.shard.store or self.shard.below, gradient, frames)
        if self.rule.synthetic_inputs and at.step >= self.come:
            self.held[at] = sent
            return []
        return [sent]

    # --- what a store has -----------------------------------------------------------------------------------------

    def _fetch_input(self, ahead: int) -> list[Effect]:
        """Ask for the inputs so many places behind the next ones."""
        number = self.next.step * self.rule.micro_batches + self.next.micro + ahead
        at = At(*divmod(number, self.rule.micro_batches))
        is_beyond = self.shard.steps is not None and at.step >= self.shard.steps
        if not self.shard.store or not self.shard.below or is_beyond:
            return []
        return [self._fetch(self.shard.below, "activation", at)]

    def _fetch_answer(self, at: At) -> list[Effect]:
        """A module elsewhere answers by itself."""
        return [self._fetch(self.shard.above, "answer", at)] if self.shard.store and not self.shard.modules else []

    def _fetch(self, of: str, what: Literal["activation", "answer"], at: At) -> Send:
        fetch = Fetch(sender=self.plan.node, of=of, what=what, step=at.step, micro=at.micro, **self.era)
        return Send(self.shard.store, fetch)

    def _copy_weights(self) -> None:
        every, step = self.shard.weights_every, self.learnt
        if step == self.shard.steps or (every and step % every == 0):
            self.jobs.append(StateJob(step, whole=False))

    # --- what is next -------------------------------------------------------------------------------------------

    def go_on(self) -> list[Effect]:
        """First what came from above, then the next (micro-)batch."""
        job = self._from_above() or self._from_below() or self._backup_job() or self._forward()
        if job is None:
            return []
        self.jobs.append(job)
        asked = self._fetch_input(PREFETCH - 1) if isinstance(job, ForwardJob) else []
        return [*asked, Compute(job)]

    def _from_above(self) -> ShardJob | None:
        # who predicts its inputs may be ahead of us; a module elsewhere has seen our outputs
        at = min((at for at in self.gradients if self.shard.modules or at in self.unanswered), default=None)
        if at is None:
            return None
        gradient = self.gradients.pop(at)
        if self.shard.modules:
            return self._learn(at, "gradient", gradient)
        self.unanswered.discard(at)
        if self.rule.waits:
            return self._learn(at, self.rule.source, gradient)
        return TeachJob(at, gradient, passes=self._keeps)

    def _from_below(self) -> ShardJob | None:
        """Inputs that have been predicted teach how to."""
        if not self.rule.synthetic_inputs or not self.inputs:
            return None
        at = min(self.inputs)
        return TeachInputsJob(at, self._batch(at), self.inputs.pop(at))

    def _backup_job(self) -> ShardJob | None:
        is_behind = self.rule.synthetic_inputs and bool(self.shard.below) and self.heard < self.learnt
        if not self._backup_is_due or self.unanswered or is_behind:
            return None
        self.kept = self.learnt
        return StateJob(self.learnt, whole=True)

    @property
    def _backup_is_due(self) -> bool:
        return self._needs_backup(self.learnt) and self.next == At(self.learnt)

    def _needs_backup(self, step: int) -> bool:
        """Whether a backup is to be made after so many steps, and is not."""
        every = self.shard.backup_every
        return step > self.kept and (step == self.shard.steps or (every is not None and step % every == 0))

    def _forward(self) -> ShardJob | None:
        at = self.next
        if at.step == self.shard.steps or (at.micro == 0 and self._needs_backup(at.step)):
            return None
        if self.rule.waits and at.step > self.learnt:
            return None
        if not self.rule.waits and len(self.unanswered) >= self.shard.queue:
            return None
        if self.shard.below and not self._has_inputs(at):
            return None
        is_last_part = at.micro == self.rule.micro_batches - 1
        self.next = At(at.step + 1) if is_last_part else At(at.step, at.micro + 1)
        inputs = None if self.rule.synthetic_inputs else self.inputs.pop(at, None)
        return ForwardJob(at, self._batch(at), inputs)

    def _has_inputs(self, at: At) -> bool:
        """Those that are predicted may not be too far ahead of those that come."""
        return at.step < self.heard + self.shard.queue if self.rule.synthetic_inputs else at in self.inputs

    def _batch(self, at: At) -> NDArray[np.int64]:
        """(B,) positions in the training data, the same for all shards."""
        positions = batch_of(self.plan, at.step)
        return np.array_split(positions, self.rule.micro_batches)[at.micro]

    def _learn(self, at: At, source: Source, gradient: NDArray[np.float32] | None = None) -> LearnJob:
        parts = self.rule.micro_batches
        share = len(self._batch(at)) / self.plan.task.batch_size if parts > 1 else 1.0
        return LearnJob(at, source, share, at.micro == parts - 1, self._keeps, gradient)

    @property
    def _source(self) -> Source:
        return self.rule.source if self.shard.above else "loss"

    @property
    def _keeps(self) -> bool:
        """The true gradient goes through the graph once more."""
        return self.rule.down == "true-gradient" and bool(self.shard.above and self.shard.below)


def batch_of(plan: NodePlan, step: int) -> NDArray[np.int64]:
    """(b,) positions of a mini-batch in the training data: a new seeded order every epoch, one for all shards."""
    size, n = plan.task.batch_size, plan.num_examples
    first, last = step * size // n, ((step + 1) * size - 1) // n
    start = step * size - first * n
    if first == last:
        return _order(plan.seed, n, first)[start : start + size]
    orders = [_order(plan.seed, n, epoch) for epoch in range(first, last + 1)]
    return np.concatenate(orders)[start : start + size]


@functools.lru_cache(maxsize=2)
def _order(seed: int, n: int, epoch: int) -> NDArray[np.int64]:
    """(n,) positions as an epoch has them, remembered: drawing them anew for each step would take a millisecond."""
    order = chance.generator(seed, "order", ORDER, epoch).permutation(n)
    order.flags.writeable = False
    return order
