"""What a shard and the node that has all gradient modules have in common: they follow the server through histories.

    Start, or a connection that is back ---> Join ---> ... Resume ---> restore, then work of that history alone

The server stores backups of all and tells each where to begin: at the start of the training as after a failure. What
belongs to an earlier history than the last `Resume` began is dropped, and what belongs to a later one waits. One job is
done at a time, and one that is being done is let end.
"""

from collections.abc import Sequence
from typing import ClassVar

from edgebed.core.plan import ModulesPlan, WorkerPlan
from edgebed.core.records import Dropped, Note, ShardPhases
from edgebed.roles.events import (
    Compute,
    Computed,
    Connected,
    Disconnected,
    Effect,
    EndNode,
    Event,
    Expose,
    Journal,
    MessageReceived,
    Observe,
    Send,
    unexpected,
)
from edgebed.roles.layerwise.phases import OF_JOB, Phase, PhaseClock
from edgebed.roles.layerwise.shard_work import RestoreJob, RestoreResult, ShardJob, StateResult
from edgebed.roles.work import Result
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Activation, Backup, Gradient, Join, Refuse, Resume, Start, Taken
from edgebed.wire.tensors import Buffer, decode_dense, encode_dense

Passing = Activation | Gradient | Taken
"""Messages that shards send each other."""


class Follower:
    """Base of the hearts of shards and module nodes; what each has alone is below the line."""

    takes: ClassVar[tuple[type[Passing], ...]]
    """Messages of a history that the node gets."""

    def __init__(self, plan: WorkerPlan | ModulesPlan, incarnation: int) -> None:
        assert plan.shard is not None
        self.plan = plan
        self.shard = plan.shard
        self.incarnation = incarnation
        self.joins = -1
        """Joins of the node before its last one."""
        self.history: int | None = None
        """History of the last `Resume`; None: none has come."""
        self.early: list[MessageReceived] = []
        """Messages of a history that the server has yet to announce."""
        self.clock = PhaseClock()
        self.jobs: list[ShardJob] = []
        """Jobs to be done before anything else, in order; the first of them is being done."""
        self.begin_at(0)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Put a message aside, and begin the next job where none is being done."""
        if isinstance(event, Observe):
            return [] if self.history is None else self.observed(now)
        effects = self._react(event)
        self.clock.turn(now, OF_JOB[type(self.jobs[0])] if self.jobs else self._waits_for())
        return effects

    def observed(self, now: float) -> list[Effect]:
        """What there is to know of it once training has begun."""
        return [Journal(self.phases(now)), Expose(self.queues())]

    def phases(self, now: float) -> ShardPhases:
        """Return where the node's time went until now."""
        spent = self.clock.until(now)
        names = spent.__struct_fields__
        return ShardPhases(**{name: round(getattr(spent, name), 6) for name in names})

    def _waits_for(self) -> Phase | None:
        return None if self.history is None else self.waits_for()

    def _react(self, event: Event) -> list[Effect]:
        try:
            effects = self._happen(event)
        except RemoteWireError as error:
            return [Journal(Dropped(socket="data", reason=str(error)))]
        if self.jobs or self.history is None:
            return effects
        return [*effects, *self.go_on()]

    def _happen(self, event: Event) -> list[Effect]:
        if isinstance(event, MessageReceived):
            return self._received(event)
        if isinstance(event, Computed):
            return self._computed(event.result)
        if isinstance(event, Connected):
            return self._join()
        if isinstance(event, Disconnected):
            return []  # whoever is back joins the server again, and all begin a new history
        raise unexpected(self, event)

    def _received(self, event: MessageReceived) -> list[Effect]:
        message = event.message
        if isinstance(message, Start):
            return self._join()
        if isinstance(message, Resume):
            return self._resume(message, event.frames)
        if isinstance(message, Refuse):
            reason = f"refused by {message.sender} ({message.code}): {message.reason}"
            return [Journal(Note(text=reason)), EndNode(reason)]
        if not isinstance(message, self.takes):
            raise unexpected(self, event)
        if self.history is None or message.history > self.history:
            self.early.append(event)
        elif message.history == self.history:
            return self.put_aside(message, event.frames)
        return []

    def _join(self) -> list[Effect]:
        """Join, also when a connection had broken: what was on its way is lost, and all begin again somewhere."""
        self.joins += 1
        return [Send("server", Join(sender=self.plan.node, incarnation=self.incarnation, joins=self.joins))]

    def _resume(self, resume: Resume, frames: Sequence[Buffer]) -> list[Effect]:
        """Drop all that is on its way, which is of an earlier history, and restore what the server sent."""
        self.history = resume.history
        self.begin_at(resume.step)
        early, self.early = self.early, []
        effects = [effect for event in early for effect in self._received(event)]
        tensor = resume.tensors[0]
        given = decode_dense(tensor, frames)
        is_state = tensor.name == "state"
        job = RestoreJob(resume.step, None if is_state else given, given if is_state else None)
        being_done, self.jobs = self.jobs[:1], [*self.jobs[:1], job]
        effects += self.resumed()
        return effects if being_done else [*effects, Compute(job)]

    def _computed(self, result: Result) -> list[Effect]:
        """Act on a result, unless a new history has begun meanwhile."""
        self.jobs.pop(0)
        is_of_old = any(isinstance(job, RestoreJob) for job in self.jobs)
        if is_of_old or isinstance(result, RestoreResult):
            effects = []
        elif isinstance(result, StateResult):
            effects = [self._backup(result)]
        else:
            effects = self.done(result)
        return [*effects, Compute(self.jobs[0])] if self.jobs else effects

    def _backup(self, result: StateResult) -> Effect:
        tensor, frames = encode_dense("state" if result.whole else "weights", result.state)
        backup = Backup(sender=self.plan.node, step=result.step, tensors=(tensor,), **self.era)
        return Send("server", backup, frames)

    @property
    def era(self) -> dict[str, int]:
        """Return the fields that every message of the present history has."""
        assert self.history is not None
        return {"history": self.history}

    # --- what is theirs alone -------------------------------------------------------------------------------------

    def begin_at(self, step: int) -> None:
        """Reset the node: nothing is on its way, and the next mini-batch has this number."""
        raise AssertionError(type(self).__name__)

    def put_aside(self, message: Passing, frames: Sequence[Buffer]) -> list[Effect]:
        """Store a message of the present history until there is time for it."""
        raise AssertionError(type(self).__name__)

    def resumed(self) -> list[Effect]:
        """React to a new history."""
        return []

    def done(self, result: Result) -> list[Effect]:
        """React to a result of the present history."""
        raise AssertionError(type(self).__name__)

    def go_on(self) -> list[Effect]:
        """Begin what can be done, if anything can, when nothing is being done."""
        raise AssertionError(type(self).__name__)

    def queues(self) -> dict[str, int]:
        """Return how much of each kind is put aside until there is time or use for it."""
        raise AssertionError(type(self).__name__)

    def waits_for(self) -> Phase | None:
        """Return what an idle node waits for; None: it has done all."""
        raise AssertionError(type(self).__name__)
