"""A layer shard: some layers of the model, which learn while others learn theirs.

    below ---- Activation ---> forward ---- Activation ---> above
    below <--- Gradient ------ learn   <--- Gradient ------ above

What a shard learns from, and whether it waits for it, says the method's rule (algorithms/layerwise/). It does one thing
at a time: first what came from above, then the next (micro-)batch. At most `queue` activations are unanswered at a
time, so that a fast shard cannot flood a slow one.

The server keeps backups of all shards and tells each where to begin: at the start of the training as after a failure.
What belongs to an earlier history than the last `Resume` began is dropped, and what belongs to a later one waits. A
backup is made when everything that has been sent is answered, so that nothing that was on its way is missing in it.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed import chance
from edgebed.algorithms.layerwise.rule import At, Rule, Source
from edgebed.roles.events import Compute, Computed, Connected, Effect, Event, Journal, Received, Send, Stop, unexpected
from edgebed.roles.records import Dropped, Note, Step
from edgebed.roles.shard_work import (
    ForwardJob,
    ForwardResult,
    LearnJob,
    LearnResult,
    Restored,
    RestoreJob,
    ShardJob,
    StateJob,
    StateResult,
    TeachInputsJob,
    TeachInputsResult,
    TeachJob,
    TeachResult,
)
from edgebed.roles.work import Result
from edgebed.scenario.plan import NodePlan
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Activation, Backup, Fetch, Gradient, Join, Refuse, Resume, Start, Taken, Tensor
from edgebed.wire.tensors import Buffer, decode_dense, encode_dense

PREFETCH = 2
"""Inputs that a store is asked for before they are needed, so that nobody waits for the way there and back."""
ORDER = "shards"
"""Whose order of batches it is: one for all shards."""


class LayerShard:
    """The heart of a layer shard."""

    def __init__(self, plan: NodePlan, rule: Rule, incarnation: int = 1) -> None:
        assert plan.shard is not None
        self.plan = plan
        self.shard = plan.shard
        self.rule = rule
        self.incarnation = incarnation
        self.joins = -1
        """How often it had joined before its last join."""
        self.history: int | None = None
        """That of the last `Resume`; None: none has come."""
        self.early: list[Received] = []
        """What belongs to a history of which the server has yet to tell."""
        self.jobs: list[ShardJob] = []
        """What has to be done before anything else, in order; the first of them is being done."""
        self._begin_at(0)

    def _begin_at(self, step: int) -> None:
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
        self.heard = step
        """Steps whose inputs have come, where they are predicted meanwhile."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """A message is put aside, and the next job is begun where none is being done."""
        try:
            effects = self._happen(event)
        except RemoteWireError as error:
            return [Journal(Dropped(socket="data", reason=str(error)))]
        return effects if self.jobs else [*effects, *self._go_on()]

    def _happen(self, event: Event) -> list[Effect]:
        if isinstance(event, Received):
            return self._received(event)
        if isinstance(event, Computed):
            return self._computed(event.result)
        if isinstance(event, Connected):
            return self._join()
        raise unexpected(self, event)

    # --- messages -----------------------------------------------------------------------------------------------

    def _received(self, event: Received) -> list[Effect]:
        message = event.message
        if isinstance(message, Start):
            return self._join()
        if isinstance(message, Resume):
            return self._resume(message, event.frames)
        if isinstance(message, Refuse):
            reason = f"refused by {message.sender} ({message.code}): {message.reason}"
            return [Journal(Note(text=reason)), Stop(reason)]
        if not isinstance(message, Activation | Gradient | Taken):
            raise unexpected(self, event)
        if self.history is None or message.history > self.history:
            self.early.append(event)
        elif message.history == self.history:
            self._put_aside(message, event.frames)
        return []

    def _put_aside(self, message: Activation | Gradient | Taken, frames: Sequence[Buffer]) -> None:
        """Until there is time for it."""
        at = At(message.step, message.micro)
        if isinstance(message, Activation):
            self.inputs[at] = decode_dense(message.tensors[0], frames)
        elif isinstance(message, Gradient):
            self.gradients[at] = decode_dense(message.tensors[0], frames)
        else:
            self.unanswered.discard(at)

    def _join(self) -> list[Effect]:
        """Also when a connection had broken: what was on its way is lost, and all have to begin anew somewhere."""
        self.joins += 1
        return [Send("server", Join(sender=self.plan.node, incarnation=self.incarnation, joins=self.joins))]

    def _resume(self, resume: Resume, frames: Sequence[Buffer]) -> list[Effect]:
        """All that is on its way is of an earlier history; a job that is being done is let end."""
        self.history = resume.history
        self._begin_at(resume.step)
        early, self.early = self.early, []
        effects = [effect for event in early for effect in self._received(event)]
        tensor = resume.tensors[0]
        given = decode_dense(tensor, frames)
        is_state = tensor.name == "state"
        effects += [effect for ahead in range(PREFETCH) for effect in self._fetch_input(ahead)]
        job = RestoreJob(resume.step, None if is_state else given, given if is_state else None)
        being_done, self.jobs = self.jobs[:1], [*self.jobs[:1], job]
        return effects if being_done else [*effects, Compute(job)]

    # --- work ---------------------------------------------------------------------------------------------------

    def _computed(self, result: Result) -> list[Effect]:
        """What it leads to, unless a new history has begun meanwhile."""
        self.jobs.pop(0)
        is_of_old = any(isinstance(job, RestoreJob) for job in self.jobs)
        effects = [] if is_of_old or isinstance(result, Restored) else self._done(result)
        return [*effects, Compute(self.jobs[0])] if self.jobs else effects

    def _done(self, result: Result) -> list[Effect]:
        if isinstance(result, ForwardResult):
            return self._went_forward(result)
        if isinstance(result, LearnResult):
            return self._learnt(result)
        if isinstance(result, TeachResult):
            return self._taught(result)
        if isinstance(result, TeachInputsResult):
            self.heard += 1
            return []
        assert isinstance(result, StateResult)
        tensor, frames = encode_dense("state" if result.whole else "weights", result.state)
        return [Send("server", Backup(sender=self.plan.node, step=result.step, tensors=(tensor,), **self._era), frames)]

    def _went_forward(self, result: ForwardResult) -> list[Effect]:
        at = result.at
        source = self._source
        if source == "loss" or not (self.rule.waits or self.shard.modules):
            self.jobs.append(self._learn(at, source))
        if not self.shard.above:
            return []
        self.unanswered.add(at)
        sent = Activation(sender=self.plan.node, step=at.step, micro=at.micro, tensors=(result.tensor,), **self._era)
        to_module = [Send(self.shard.modules, sent, result.frames)] if self.shard.modules else []
        return [Send(self.shard.store or self.shard.above, sent, result.frames), *to_module, *self._fetch_answer(at)]

    def _learnt(self, result: LearnResult) -> list[Effect]:
        at = result.at
        effects: list[Effect] = []
        if at.micro == self.rule.micro_batches - 1:
            effects.append(Journal(Step(step=self.learnt, loss=result.loss, **self._era)))
            self.learnt += 1
            self._copy_weights()
        if not self.shard.below:
            return effects
        if self.rule.down == "nothing":
            taken = Taken(sender=self.plan.node, step=at.step, micro=at.micro, **self._era)
            return [*effects, Send(self.shard.store or self.shard.below, taken)]
        if self.rule.down == "true-gradient" and self._source != "loss":
            return effects
        return [*effects, self._send_down(at, result.tensor, result.frames)]

    def _taught(self, result: TeachResult) -> list[Effect]:
        if result.passed is None or not self.shard.below:
            return []
        return [self._send_down(result.at, *result.passed)]

    def _send_down(self, at: At, tensor: Tensor, frames: Sequence[Buffer]) -> Send:
        gradient = Gradient(
            sender=self.plan.node,
            step=at.step,
            micro=at.micro,
            tensors=(tensor,),
            **self._era,
        )
        return Send(self.shard.modules or self.shard.store or self.shard.below, gradient, frames)

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
        fetch = Fetch(sender=self.plan.node, of=of, what=what, step=at.step, micro=at.micro, **self._era)
        return Send(self.shard.store, fetch)

    def _copy_weights(self) -> None:
        every, step = self.shard.weights_every, self.learnt
        if step == self.shard.steps or (every and step % every == 0):
            self.jobs.append(StateJob(step, whole=False))

    # --- what is next -------------------------------------------------------------------------------------------

    def _go_on(self) -> list[Effect]:
        """Begin what can be done, if anything can."""
        job = (
            None
            if self.history is None
            else self._from_above() or self._from_below() or self._backup() or self._forward()
        )
        if job is None:
            return []
        self.jobs.append(job)
        asked = self._fetch_input(PREFETCH - 1) if isinstance(job, ForwardJob) else []
        return [*asked, Compute(job)]

    def _from_above(self) -> ShardJob | None:
        at = min((at for at in self.gradients if at in self.unanswered), default=None)
        if at is None:
            return None  # who predicts its inputs may be ahead of us
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

    def _backup(self) -> ShardJob | None:
        is_behind = self.rule.synthetic_inputs and bool(self.shard.below) and self.heard < self.learnt
        if not self._backup_is_due or self.unanswered or is_behind:
            return None
        self.kept = self.learnt
        return StateJob(self.learnt, whole=True)

    @property
    def _backup_is_due(self) -> bool:
        every = self.shard.backup_every
        due = self.learnt == self.shard.steps or (every is not None and self.learnt % every == 0)
        return due and self.learnt > self.kept and self.next == At(self.learnt)

    def _forward(self) -> ShardJob | None:
        at = self.next
        if at.step == self.shard.steps or self._backup_is_due:
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

    @property
    def _era(self) -> dict[str, int]:
        assert self.history is not None
        return {"history": self.history}


def batch_of(plan: NodePlan, step: int) -> NDArray[np.int64]:
    """(b,) positions of a mini-batch in the training data: a new seeded order every epoch, one for all shards."""
    size, n = plan.task.batch_size, plan.num_examples
    first, last = step * size // n, ((step + 1) * size - 1) // n
    orders = [chance.generator(plan.seed, "order", ORDER, epoch).permutation(n) for epoch in range(first, last + 1)]
    start = step * size - first * n
    return np.concatenate(orders)[start : start + size]
