"""A layer shard: some layers of the model, which learn while others learn theirs.

    below ---- Activation ---> forward ---- Activation ---> above
    below <--- Gradient ------ learn   <--- Gradient ------ above

What a shard learns from, and whether it waits for it, says the method's rule (algorithms/layerwise/). It does one thing
at a time: first what came from above, then the next (micro-)batch. At most `queue` activations are unanswered at a
time, so that a fast shard cannot flood a slow one.

Where the method sends outputs of every k-th step only, the first shard makes all steps and the others those that they
get; a step of theirs stands for the k - 1 that follow it, too, so that all agree on what was learnt until a step.

A backup is made when everything that has been sent is answered, so that nothing that was on its way is missing in it;
follower.py has what becomes of it.
"""

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from edgebed.algorithms.layerwise.rule import BatchPart, Rule, Source
from edgebed.core import chance
from edgebed.core.plan import ModulesPlan, WorkerPlan
from edgebed.core.records import Diverged, Progress, Step, Taught
from edgebed.roles.events import Compute, Effect, Event, Journal, Send
from edgebed.roles.finiteness import NotFinite
from edgebed.roles.layerwise.follower import Follower, Passing
from edgebed.roles.layerwise.phases import Phase
from edgebed.roles.layerwise.shard_tally import tallied
from edgebed.roles.layerwise.shard_work import (
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
from edgebed.wire.messages import Activation, Fetch, Gradient, Resume, Taken, Tensor
from edgebed.wire.tensors import Buffer, decode_exchanged

PREFETCH = 2
"""Inputs that a store is asked for before they are needed, so that nobody waits for the way there and back."""
ORDER = "shards"
"""Name of the order of batches: one for all shards."""


class LayerShard(Follower):
    """The heart of a layer shard."""

    takes = (Activation, Gradient, Taken)

    def __init__(self, plan: WorkerPlan, rule: Rule, incarnation: int = 1) -> None:
        self.rule = rule
        assert plan.shard is not None
        self.stride = rule.stride(is_first=not plan.shard.below)
        """Steps from one that the shard makes to its next."""
        self.tally: Counter[str] = Counter()
        """Counts of what the shard has done in the present history, by the fields of `Progress`."""
        super().__init__(plan, incarnation)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to an event, and count the effects."""
        effects = super().handle(event, now)
        self.tally.update(tallied(effects, self.shard.modules))
        return effects

    def observed(self, now: float) -> list[Effect]:
        """How far it has come, too."""
        return [*super().observed(now), Journal(self.progress())]

    def progress(self) -> Progress:
        """Return how far the shard has come in the present history."""
        below, who = self.shard.below, self.incarnation
        return Progress(incarnation=who, since=self.since, every=self.stride, below=below, **self.era, **self.tally)

    def begin_at(self, step: int) -> None:
        """Reset the shard: nothing is on its way, and the next mini-batch is its first from this number on."""
        self.since = step
        """Step at which the present history began."""
        self.next = BatchPart(_ceil(step, self.stride))
        self.learnt = self._until(self.next.step)
        """Step below which the shard has made all its own."""
        self.backup_step = step
        """Step of the last backup."""
        self.inputs: dict[BatchPart, NDArray[np.float32]] = {}
        """Inputs that have come from below and are not used."""
        self.gradients: dict[BatchPart, NDArray[np.float32]] = {}
        """Gradients that have come from above and are not used."""
        self.unanswered: set[BatchPart] = set()
        self.come = step
        """Steps whose inputs have come."""
        self.heard = _ceil(step, self.rule.send_every)
        """First step whose inputs have yet to be learnt from, where inputs are predicted meanwhile."""
        self.has_diverged = False
        """Whether something was not finite, which has been reported."""
        self.held: dict[BatchPart, Send] = {}
        """Gradients of inputs that have not come yet: whoever makes these has no use for them before."""

    def put_aside(self, message: Passing, frames: Sequence[Buffer]) -> list[Effect]:
        """Store a message until there is time for it."""
        at = BatchPart(message.step, message.micro)
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

    def queues(self) -> dict[str, int]:
        """Return how many inputs and gradients came and are not used, and outputs are unanswered, in micro-batches."""
        return {"inputs": len(self.inputs), "gradients": len(self.gradients), "unanswered": len(self.unanswered)}

    def resumed(self) -> list[Effect]:
        """Ask for the first inputs; copy the weights that have been final at steps beyond where all begin."""
        self._copy_weights(self.backup_step)
        return [effect for ahead in range(PREFETCH) for effect in self._fetch_input(ahead)]

    def _resume(self, resume: Resume, frames: Sequence[Buffer]) -> list[Effect]:
        """Begin a new account, and close that of the history before."""
        closed = [] if self.history is None else [Journal(self.progress())]
        self.tally.clear()
        effects = super()._resume(resume, frames)
        return [*closed, Journal(self.progress()), *effects]

    # --- work ---------------------------------------------------------------------------------------------------

    def done(self, result: Result) -> list[Effect]:
        """Act on the result of a job."""
        if isinstance(result, ForwardResult):
            return [*self._diverged(result.at, result.not_finite), *self._went_forward(result)]
        if isinstance(result, LearnResult):
            return [*self._diverged(result.at, result.not_finite), *self._learnt(result)]
        if isinstance(result, TeachResult):
            return self._taught(result)
        assert isinstance(result, TeachInputsResult)
        self.heard += self.rule.send_every
        return [self._was_taught(result.at, result.module_loss, inputs=True)]

    def _diverged(self, at: BatchPart, found: NotFinite | None) -> list[Effect]:
        """Report what was not finite, the first time in a history."""
        if found is None or self.has_diverged:
            return []
        self.has_diverged = True
        what, tensor = found
        told = Diverged(step=at.step, what=what, tensor=tensor, incarnation=self.incarnation, **self.era)
        return [Journal(told)]

    def _went_forward(self, result: ForwardResult) -> list[Effect]:
        at = result.at
        source = self._source
        if source == "loss" or not (self.rule.waits or self.shard.modules):
            self.jobs.append(self._learn(at, source))
        if not self.shard.above or not self.rule.sends(at.step):
            return []
        sent = Activation(sender=self.plan.node, step=at.step, micro=at.micro, tensors=(result.tensor,), **self.era)
        return self.hand_up(at, Send(self.shard.store or self.shard.above, sent, result.frames))

    def hand_up(self, at: BatchPart, sent: Send) -> list[Effect]:
        """Send outputs to whoever needs them."""
        self.unanswered.add(at)
        to_module = [Send(self.shard.modules, sent.message, sent.frames)] if self.shard.modules else []
        return [sent, *to_module, *self._fetch_answer(at)]

    def _learnt(self, result: LearnResult) -> list[Effect]:
        at = result.at
        effects: list[Effect] = []
        if result.module_loss is not None:
            effects.append(self._was_taught(at, result.module_loss))
        if at.micro == self.rule.micro_batches - 1:
            before, self.learnt = self.learnt, self._until(at.step + self.stride)
            made = 0 if self.shard.above else self.learnt
            step = Step(step=at.step, every=self.stride, made=made, loss=result.loss, **self.era)
            effects.append(Journal(replace(step, **self.lags())))
            self._copy_weights(before)
        if not self.shard.below or not self.rule.sends(at.step):
            return effects
        if self.rule.down == "nothing":
            taken = Taken(sender=self.plan.node, step=at.step, micro=at.micro, **self.era)
            return [*effects, Send(self.shard.store or self.shard.below, taken)]
        if self.rule.down == "true-gradient" and self._source != "loss":
            return effects
        return [*effects, *self._send_down(at, result.tensor, result.frames)]

    def _taught(self, result: TeachResult) -> list[Effect]:
        taught = self._was_taught(result.at, result.module_loss)
        if result.passed is None or not self.shard.below:
            return [taught]
        return [taught, *self._send_down(result.at, *result.passed)]

    def _was_taught(self, at: BatchPart, loss: float, *, inputs: bool = False) -> Effect:
        return Journal(Taught(shard=self.plan.node, step=at.step, loss=loss, inputs=inputs, **self.era))

    def _send_down(self, at: BatchPart, tensor: Tensor, frames: Sequence[Buffer]) -> list[Effect]:
        gradient = Gradient(
            sender=self.plan.node,
            step=at.step,
            micro=at.micro,
            tensors=(tensor,),
            **self.era,
        )
        return self.hand_down(at, Send(self.shard.modules or self.shard.store or self.shard.below, gradient, frames))

    def hand_down(self, at: BatchPart, sent: Send) -> list[Effect]:
        """Send the gradient of inputs to whoever needs it."""
        if self.rule.synthetic_inputs and at.step >= self.come:
            self.held[at] = sent
            return []
        return [sent]

    # --- what a store has -----------------------------------------------------------------------------------------

    def _fetch_input(self, ahead: int) -> list[Effect]:
        """Ask for the inputs `ahead` places behind the next ones."""
        number = self.next.step // self.stride * self.rule.micro_batches + self.next.micro + ahead
        place, micro = divmod(number, self.rule.micro_batches)
        at = BatchPart(place * self.stride, micro)
        is_beyond = self.shard.steps is not None and at.step >= self.shard.steps
        if not self.shard.store or not self.shard.below or is_beyond or not self.rule.sends(at.step):
            return []
        return [self._fetch(self.shard.below, "activation", at)]

    def _fetch_answer(self, at: BatchPart) -> list[Effect]:
        """Ask a store for the answer of the shard above; a module elsewhere answers by itself."""
        return [self._fetch(self.shard.above, "answer", at)] if self.shard.store and not self.shard.modules else []

    def _fetch(self, of: str, what: Literal["activation", "answer"], at: BatchPart) -> Send:
        fetch = Fetch(sender=self.plan.node, of=of, what=what, step=at.step, micro=at.micro, **self.era)
        return Send(self.shard.store, fetch)

    def _copy_weights(self, before: int) -> None:
        """Copy the weights for each step after `before` that a copy is due at, and that what is learnt stands for."""
        every = self.shard.weights_every
        for step in range(before + 1, self.learnt + 1):
            if step == self.shard.steps or (every and step % every == 0):
                self.jobs.append(StateJob(step, whole=False))

    def _until(self, step: int) -> int:
        """Return that step, or the end of the training if it comes before."""
        return step if self.shard.steps is None else min(step, self.shard.steps)

    def lags(self) -> dict[str, int | None]:
        """Return what the record of a step says of what was matched with it."""
        return {}

    # --- what is next -------------------------------------------------------------------------------------------

    def go_on(self) -> list[Effect]:
        """Begin with what came from above, then the next (micro-)batch."""
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
        """Return a lesson in predicting the inputs that have come."""
        if not self.rule.synthetic_inputs or not self.inputs:
            return None
        at = min(self.inputs)
        return TeachInputsJob(at, self._batch(at), self.inputs.pop(at))

    def _backup_job(self) -> ShardJob | None:
        has_learnt_all = self.next.micro == 0 and self.next.step - self.stride < self.learnt
        due = self._due_backup(self.learnt)
        if due is None or not has_learnt_all or not self.is_settled():
            return None
        self.backup_step = due
        return StateJob(due, whole=True)

    def is_settled(self) -> bool:
        """Whether nothing is on its way that a backup would miss."""
        is_behind = self.rule.synthetic_inputs and bool(self.shard.below) and self.heard < self.learnt
        return not self.unanswered and not is_behind

    def _due_backup(self, until: int) -> int | None:
        """Return the first step after the last backup for which another is due; None: it is beyond `until`."""
        every, steps = self.shard.backup_every, self.shard.steps
        due = [] if every is None else [(self.backup_step // every + 1) * every]
        due += [steps] if steps is not None and self.backup_step < steps else []
        return min((step for step in due if step <= until), default=None)

    def _forward(self) -> ForwardJob | None:
        at = self.next
        if self._pauses or not self.may_begin(at):
            return None
        is_last_part = at.micro == self.rule.micro_batches - 1
        self.next = BatchPart(at.step + self.stride) if is_last_part else BatchPart(at.step, at.micro + 1)
        inputs = None if self.rule.synthetic_inputs else self.inputs.pop(at, None)
        return ForwardJob(at, self._batch(at), inputs)

    def waits_for(self) -> Phase | None:
        """Return `answers` at most, with all steps made; where the shard may go forward, `inputs`."""
        at = self.next
        if self._pauses:
            return "answers" if self.unanswered or self.learnt < self._until(at.step) else None
        return "answers" if self._needs_answers(at) else "inputs"

    @property
    def _pauses(self) -> bool:
        """Whether all steps are made, or a backup comes first."""
        at, steps = self.next, self.shard.steps
        is_over = steps is not None and at.step >= steps
        return is_over or (at.micro == 0 and self._due_backup(at.step) is not None)

    def may_begin(self, at: BatchPart) -> bool:
        """Whether (micro-)batch `at` may begin, as nothing has to be waited for."""
        return not self._needs_answers(at) and (not self.shard.below or self._has_inputs(at))

    def _needs_answers(self, at: BatchPart) -> bool:
        """Whether answers have to come first: to the step before, or for there to be room for what would be sent."""
        if self.rule.waits:
            return at.step > self.learnt
        return len(self.unanswered) >= self.shard.queue and self.rule.sends(at.step)

    def _has_inputs(self, at: BatchPart) -> bool:
        """Whether inputs are there; predicted ones may not be too far ahead of what comes."""
        ahead = self.shard.queue * self.rule.send_every
        return at.step < self.heard + ahead if self.rule.synthetic_inputs else at in self.inputs

    def _batch(self, at: BatchPart) -> NDArray[np.int64]:
        """(B,) positions in the training data, the same for all shards."""
        positions = batch_of(self.plan, at.step)
        return np.array_split(positions, self.rule.micro_batches)[at.micro]

    def _learn(self, at: BatchPart, source: Source, gradient: NDArray[np.float32] | None = None) -> LearnJob:
        parts = self.rule.micro_batches
        share = len(self._batch(at)) / self.plan.task.batch_size if parts > 1 else 1.0
        return LearnJob(at, source, share, at.micro == parts - 1, self._keeps, gradient)

    @property
    def _source(self) -> Source:
        return self.rule.source if self.shard.above else "loss"

    @property
    def _keeps(self) -> bool:
        """Whether the true gradient goes through the graph once more."""
        return self.rule.down == "true-gradient" and bool(self.shard.above and self.shard.below)


def batch_of(plan: WorkerPlan | ModulesPlan, step: int) -> NDArray[np.int64]:
    """(b,) positions of a mini-batch in the training data: a new seeded order every epoch, one for all shards.

    Where the plan has so many batches in an epoch, these are the same ones in every epoch.
    """
    size, n = plan.task.batch_size, plan.num_examples
    if plan.shard and plan.shard.batches:
        start = step % plan.shard.batches * size
        return _order(plan.seed, n, 0)[start : start + size]
    first, last = step * size // n, ((step + 1) * size - 1) // n
    start = step * size - first * n
    if first == last:
        return _order(plan.seed, n, first)[start : start + size]
    orders = [_order(plan.seed, n, epoch) for epoch in range(first, last + 1)]
    return np.concatenate(orders)[start : start + size]


def _ceil(step: int, every: int) -> int:
    """Return the first multiple of `every` that is not below `step`."""
    return -(-step // every) * every


@functools.lru_cache(maxsize=2)
def _order(seed: int, n: int, epoch: int) -> NDArray[np.int64]:
    """(n,) positions as an epoch has them, remembered: drawing them again for each step would take a millisecond."""
    order = chance.generator(seed, "order", ORDER, epoch).permutation(n)
    order.flags.writeable = False
    return order
