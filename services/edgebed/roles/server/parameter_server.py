"""The parameter server: holds the model, has every push applied, answers with the model.

    Join, Push ---> [ refuse? ] ---> aggregation ---> Model to whom the method lets go on
    Pull (evaluator) ---> held until the version asked for is reached; a due version waits for a slow evaluator
    silence, a broken connection ---> the worker has left: its state is released, nobody waits for it

The controller tells it which workers begin, and in which incarnation. Of all else it believes the data network alone,
unless the controller is asked to tell it who has failed. A worker that left may join again. After the last update it
hands the model over, answers the evaluator, and refuses whatever is pushed.

What is to outlast it is done by entries (entries.py): `_log` hands one to the log and does it, `redo` does those of a
log again. A push that comes once more, because the answer was lost with a server, is answered and not applied.
"""

import math
import zlib
from collections.abc import Sequence
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms import registry
from edgebed.algorithms.aggregator import Aggregator, PushInfo
from edgebed.algorithms.several import apart
from edgebed.algorithms.update import Applied, ModelUpdate
from edgebed.core.errors import EdgebedError, OwnCodeError
from edgebed.core.plan import ServerPlan
from edgebed.core.records import AtWork, Dropped, Finished, Joined, Left, Note, Record, Refused, Update
from edgebed.roles.alarm import Alarm
from edgebed.roles.events import (
    Append,
    Disconnected,
    Effect,
    Event,
    Journal,
    MessageReceived,
    Observe,
    Send,
    Woken,
    unexpected,
)  # fmt: skip
from edgebed.roles.server.answers import Answers
from edgebed.roles.server.due_models import DueModels
from edgebed.roles.server.entries import (
    Accepted,
    AnyEntry,
    Departed,
    ModelHash,
    Rejected,
    RoundExpired,
    Snapshot,
)  # fmt: skip
from edgebed.roles.server.membership import JOIN_S, JoinId, Membership
from edgebed.roles.server.snapshot import PendingPush, dump, load, load_lasting
from edgebed.wire.compressed import restored
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.frames import message_bytes
from edgebed.wire.messages import Failed, Finish, Incarnations, Join, Pull, Push, Refuse, Start, Working
from edgebed.wire.tensors import Buffer, CopyFrames, beside_bytes, copied

REASON_LENGTH_MAX = 200  # it may quote a stranger
AT_WORK_S = 0.1  # workers say so far more seldom


EARLY_A_WORKER = 4
"""Joins that wait for the controller's word at most, by the number of workers."""
HASH_EVERY = 100
"""Versions from one hash of the model in the log to the next."""


class ParameterServer:
    """The heart of the server. `theta` is written in place from here on; `snapshot` copies it into frames to send."""

    transient: ClassVar[tuple[str, ...]] = (
        "compression", "plan", "workers", "due", "pulls", "replays", "at_work", "logs", "alarm", "checkpoint_s", "now",
    )  # fmt: skip
    """Attributes that do not outlast it; everything else is in a snapshot, with its parts'."""

    def __init__(
        self,
        plan: ServerPlan,
        theta: NDArray[np.float32],
        peers: tuple[str, ...],
        snapshot: CopyFrames = copied,
        version: int = 0,
        state: NDArray[np.uint8] | None = None,
    ) -> None:
        """`version` is that of `theta`: above 0 the server resumes from a checkpoint, with the aggregation's `state`.

        `state` may be None. ValueError where it is not one of this aggregation.
        """
        aggregation, config = registry.aggregation_of(plan.method)
        self.aggregation: Aggregator = aggregation(config, theta, version)
        self.aggregation.epochs_a_push = plan.epochs_a_push
        self.aggregation.num_workers = len(peers)
        self.aggregation.is_buffer = registry.buffer_mask(plan.task)
        if state is not None:
            load_lasting(self.aggregation, state)
        self.compression = registry.compression_of(plan.method, plan.task)
        self.plan = plan
        self.workers = frozenset(peers)
        self.membership = Membership(plan.silence_s)
        self.answers = Answers(plan, self.aggregation, snapshot)
        self.due = DueModels(plan.due_every_updates, self.aggregation.row.nbytes)
        self.pulls: dict[str, int] = {}
        """Versions that waiting evaluators wait for, by connection."""
        self.pending: list[PendingPush] = []
        """Held pushes in order of arrival."""
        self.pending_s = 0.0
        """Time since when pushes are held."""
        self.steps: dict[str, dict[int, int]] = {}
        """Step of the last push that took effect, by worker and incarnation."""
        self.rejected: dict[str, tuple[int, int]] = {}
        """Incarnation and step of each worker's last push that was refused."""
        self.replays: dict[str, tuple[int, set[int]]] = {}
        """Pushes that came once more, as incarnation and steps of each worker."""
        self.at_work: dict[str, float] = {}
        """When it was last reported of each worker that it works."""
        self.unanswered: set[str] = set()
        """Workers whose last push waits for its answer."""
        self.logs = plan.durability != "none"
        self.alarm = Alarm()
        self.checkpoint_version = version
        """Version of the last checkpoint."""
        self.checkpoint_s: float | None = None
        """Time of the last checkpoint, or when the server could first have made one."""
        self.now = 0.0
        self.sent_bytes = 0
        """Payload of the models handed out since the last update."""
        self.beside_bytes = 0
        """What of it is of vectors beside the model."""
        self.finished = False

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to a message, a connection that broke, or a deadline."""
        if isinstance(event, Observe):
            return []
        self.now = now
        if self.checkpoint_s is None:
            self.checkpoint_s = now
        try:
            effects = self._react(event)
        except OwnCodeError as error:
            raise error.at(_about(event)) from error
        return effects if self.finished else [*effects, *self.alarm.set(self._next_s())]

    def _react(self, event: Event) -> list[Effect]:
        if isinstance(event, MessageReceived):
            return self._received(event)
        if isinstance(event, Disconnected):
            self.membership.disconnected(event.peer, self.now)
            return []
        if isinstance(event, Woken):
            return self._woken(event.token)
        raise unexpected(self, event)

    def _received(self, event: MessageReceived) -> list[Effect]:
        message = event.message
        is_owing = self.membership.heard(message.sender, event.peer, self.now)
        if isinstance(message, Push):
            return self._pushed(event, message)
        if isinstance(message, Join):
            return self._joins(event, message)
        if isinstance(message, Working):
            return self._at_work(message.sender) if is_owing else []
        if isinstance(message, Pull):
            if due := self.due.next(message.at_version):
                return [Send(event.peer, *due)]
            self.pulls[event.peer] = message.at_version
            return self._answer_pulls()
        if isinstance(message, Failed):
            return self._failed(message)
        if isinstance(message, Incarnations):
            waited = self.membership.tell(message.workers)
            return [effect for join in waited for effect in self._received(join)]
        if isinstance(message, Finish | Start):
            return self._log(self._accepted(event, message))
        return [
            Journal(Refused(peer=event.peer, code="malformed", reason=f"a server gets no {type(message).__name__}"))
        ]

    def _at_work(self, worker: str) -> list[Effect]:
        """Report that a worker works, unless that was reported just now."""
        if self.now < self.at_work.get(worker, -math.inf) + AT_WORK_S:
            return []
        self.at_work[worker] = self.now
        return [Journal(AtWork(worker=worker))]

    # --- the log ------------------------------------------------------------------------------------------------

    def _accepted(self, event: MessageReceived, message: Join | Push | Start | Finish) -> Accepted:
        return Accepted(now=self.now, peer=event.peer, bytes=event.bytes, message=message)

    def _log(self, entry: AnyEntry, frames: Sequence[Buffer] = ()) -> list[Effect]:
        """Do what an entry says; where there is a log, it is appended before anything comes of it."""
        before = self.aggregation.version
        effects = self._do(entry, frames)
        if not self.logs:
            return effects
        effects.insert(0, Append(entry, frames))
        if self.aggregation.version // HASH_EVERY > before // HASH_EVERY:
            crc = zlib.crc32(self.aggregation.theta.data)
            effects.append(Append(ModelHash(now=self.now, version=self.aggregation.version, crc=crc)))
        return effects

    def _do(self, entry: AnyEntry, frames: Sequence[Buffer]) -> list[Effect]:
        match entry:
            case Accepted(message=Push() as push):
                return self._push(entry, push, frames)
            case Accepted(message=Join() as join):
                return self._join(entry, join)
            case Accepted(message=Start() as start):
                return self._start(start)
            case Accepted(message=Finish() as finish):
                return self._finish(finish.reason)
            case Departed():
                return self._leave(entry)
            case RoundExpired():
                return self._applied(self.aggregation.expire())
            case Rejected(record=refused):
                self.rejected[refused.worker] = refused.incarnation, refused.step
                return [Journal(refused)]
        raise AssertionError(f"{entry!r:.200} is no entry to be done")

    def redo(self, entry: AnyEntry, frames: Sequence[Buffer] = ()) -> list[Record]:
        """Do an entry of the log again, and return the records that come of it; nobody is answered.

        EdgebedError where the model is not what it was.
        """
        self.now = entry.now
        if not isinstance(entry, ModelHash):
            return [effect.record for effect in self._do(entry, frames) if isinstance(effect, Journal)]
        version, crc = self.aggregation.version, zlib.crc32(self.aggregation.theta.data)
        if (version, crc) != (entry.version, entry.crc):
            raise EdgebedError(
                f"the model of update {entry.version:,} has the hash {entry.crc:08x}, and comes to {crc:08x} at update "
                f"{version:,} when its updates are applied again"
            )
        return []

    def revive(self, now: float) -> None:
        """Go on where a server has ended, once all that it did has been done again: no connection is left.

        Whether training is over is for the controller to say, and for the plan when it begins.
        """
        self.now = now
        self.pending_s = min(self.pending_s, now)  # a server without a controller may have come further than its clock
        self.finished = self.answers.final = False
        self.membership.disconnect_all(now)

    def snapshot(self) -> tuple[Snapshot, list[Buffer]]:
        """Return all that outlasts this server; OwnCodeError where an aggregation keeps what cannot be stored."""
        return dump(self, self.now)

    def restore(self, snapshot: Snapshot, payload: Buffer) -> None:
        """Become the server that a snapshot is of; ValueError where it is not of this trial's."""
        load(self, snapshot, payload)
        expected = self.answers.tensors[0].shape
        if self.aggregation.theta.shape != expected:
            raise ValueError(f"a model of {self.aggregation.theta.shape}, not {expected}")

    # --- who takes part -----------------------------------------------------------------------------------------

    def _start(self, start: Start) -> list[Effect]:
        """Note who begins; the server serves from the moment it can be reached.

        Of those who took part before the server came back, who is not named is gone.
        """
        effects: list[Effect] = []
        for worker in sorted(self.membership.away - set(start.workers)):
            effects += self._leave(Departed(now=self.now, worker=worker, reason="absence"))
        for worker in start.workers:
            if worker in self.workers and self.membership.expect(worker, self.now):
                self.aggregation.expected(worker)
        effects += self._finish_if_reached()
        self._keep_if_due(self.aggregation.version - 1)
        return effects

    def _joins(self, event: MessageReceived, join: Join) -> list[Effect]:
        worker, join_id = join.sender, JoinId(join.incarnation, join.joins)
        if worker not in self.workers:
            return self._refuse(event.peer, "unknown-node", f"{worker!r} is not in the plan")
        if not self.membership.is_known(worker, join.incarnation):
            if len(self.membership.early) >= EARLY_A_WORKER * len(self.workers):
                return self._refuse_unknown(event.peer, worker, join.incarnation)
            self.membership.wait(event, worker, join.incarnation, self.now)
            return []
        objection = self.membership.refuse_join(worker, join_id, event.peer)
        if objection:
            return self._refuse(event.peer, *objection)
        return self._log(self._accepted(event, join))

    def _refuse_unknown(self, peer: str, worker: str, incarnation: int) -> list[Effect]:
        return self._refuse(peer, "not-joined", f"the controller knows of no incarnation {incarnation} of {worker}")

    def _join(self, entry: Accepted, join: Join) -> list[Effect]:
        worker, join_id = join.sender, JoinId(join.incarnation, join.joins)
        effects: list[Effect] = []
        if self.membership.join(worker, join_id, entry.peer):
            effects.append(Journal(Joined(worker=worker, incarnation=join_id.incarnation, joins=join_id.joins)))
        self.aggregation.forgotten(worker)
        applied = self.aggregation.joined(worker)
        self.answers.forget(worker)
        return [*effects, *self._answer(worker), *self._applied(applied)]

    def _leave(self, departed: Departed) -> list[Effect]:
        """Release the state of a worker; others may have waited for it alone."""
        worker, effects = departed.worker, list[Effect]()
        if departed.reason != "absence":
            incarnation = self.membership.latest[worker].incarnation
            effects = [Journal(Left(worker=worker, incarnation=incarnation, reason=departed.reason))]
        self.membership.leave(worker)
        self.answers.forget(worker)
        self.unanswered.discard(worker)
        return [*effects, *self._applied(self.aggregation.left(worker))]

    def _failed(self, failed: Failed) -> list[Effect]:
        """Act on the controller's word that a worker failed; nothing, where a later incarnation has replaced it."""
        if self.finished:
            return []
        if failed.node in self.membership.expected:
            return self._log(Departed(now=self.now, worker=failed.node, reason="absence"))
        here = failed.node in self.membership.peers
        if not here or failed.incarnation < self.membership.latest[failed.node].incarnation:
            return []
        return self._log(Departed(now=self.now, worker=failed.node, reason="oracle"))

    # --- pushes -------------------------------------------------------------------------------------------------

    def _pushed(self, event: MessageReceived, push: Push) -> list[Effect]:
        objection = self.membership.refuse_push(push.sender, JoinId(push.incarnation, push.joins), event.peer)
        if objection:
            return self._refuse(event.peer, *objection, push=push)
        if self.finished and not self._has_come(push):
            return self._refuse(event.peer, "finished", "no more updates are applied", push=push)
        try:
            return self._log(self._accepted(event, push), event.frames)
        except RemoteWireError as error:
            return [
                Journal(Dropped(socket="data", reason=f"{push.sender}: {error}"[:REASON_LENGTH_MAX])),
                *self._refuse(event.peer, "malformed", str(error), push=push),
            ]

    def _has_come(self, push: Push) -> bool:
        """Whether the push took effect before: its answer was lost."""
        return push.step <= self.steps.get(push.sender, {}).get(push.incarnation, -1)

    def _push(self, entry: Accepted, push: Push, frames: Sequence[Buffer]) -> list[Effect]:
        """Take a push, unless it has come before; RemoteWireError where it cannot be read, before anything changes."""
        worker = push.sender
        if self._has_come(push):
            effects = self._replayed(entry.peer, push)
            self.membership.connected(worker, entry.peer)
            self.answers.pushed(worker, push.base)
            return effects if worker in self.unanswered else [*effects, *self._answer(worker)]
        update, num_bits = self._decode(push, frames)
        self.membership.connected(worker, entry.peer)
        self.steps.setdefault(worker, {})[push.incarnation] = push.step
        self.unanswered.add(worker)
        self.answers.pushed(worker, push.base)
        if objection := self._objection(push, update):
            refusal = self._refusal(entry.peer, *objection, push)
            self.aggregation.forgotten(worker)
            return [Journal(refusal), self._refuse_to(entry.peer, refusal), *self._answer(worker)]
        self.membership.waits(worker)
        self.aggregation.schedule.note(self.aggregation.epoch, push.loss)
        if not self.pending:
            self.pending_s = self.now
        self.pending.append(PendingPush(entry.peer, push, update.entries, num_bits, entry.bytes))
        of_model, *beside = apart(update, len(self.aggregation.vectors))
        info = PushInfo(push.examples, push.loss, push.steps, tuple(beside))
        return self._applied(self.aggregation.push(worker, of_model, push.base, info))

    def _replayed(self, peer: str, push: Push) -> list[Effect]:
        """Report a push that took effect before, once, unless the server has come back since and is told it again."""
        incarnation, known = self.replays.get(push.sender, (0, set[int]()))
        if incarnation != push.incarnation:
            known = set()
            self.replays[push.sender] = push.incarnation, known
        if push.sender in self.membership.away or push.step in known:
            return []
        known.add(push.step)
        reason = f"step {push.step} of {push.sender}, incarnation {push.incarnation}, has come before"
        return [Journal(Refused(peer=peer, code="replayed", reason=reason))]

    def _objection(self, push: Push, update: ModelUpdate) -> tuple[str, str] | None:
        """Return (code, reason) where a push is not applied, and its worker is to go on with the model as it is."""
        if self.aggregation.late(push.base):
            return "late", f"the model is at version {self.aggregation.version}"
        if self.plan.non_finite == "refuse":
            if not math.isfinite(push.loss):
                return "not-finite", f"its loss is {push.loss}"
            if (count := len(update.values) - int(np.count_nonzero(np.isfinite(update.values)))) > 0:
                return "not-finite", f"{count:,} of its {len(update.values):,} entries are not finite"
        return None

    def _decode(self, push: Push, frames: Sequence[Buffer]) -> tuple[ModelUpdate, int]:
        """Return the update, and the bits that the algorithm needed of it."""
        if not 0 <= push.base <= self.aggregation.version:
            raise RemoteWireError(f"base {push.base}; the model is at version {self.aggregation.version}")
        try:
            return restored(self.compression, push.tensors, frames)
        except OwnCodeError as error:  # what a worker sends is to end no server, whoever has made the part
            raise RemoteWireError(str(error)) from error

    def _applied(self, applied: Applied | None) -> list[Effect]:
        """Record what was applied, if anything, and answer the workers that the method lets continue."""
        if applied is None:
            return []
        if applied.buffered:
            return self._answer(*applied.released)
        pending, self.pending = self.pending, []
        before = self.aggregation.version - len(pending)
        (sent, beside_sent), self.sent_bytes, self.beside_bytes = (self.sent_bytes, self.beside_bytes), 0, 0
        effects: list[Effect] = [
            Journal(_record(each, before, before + k, *((0, 0) if k > 1 else (sent, beside_sent))))
            for k, each in enumerate(pending, 1)
        ]
        self.answers.changed(applied.changed)
        effects += self._finish_if_reached()
        effects += self._answer(*applied.released)
        self._keep_if_due(before)
        effects += self._answer_pulls()
        every = self.plan.checkpoint_every_updates
        return effects + (
            self._checkpoint() if every and self.aggregation.version >= self.checkpoint_version + every else []
        )

    # --- answers ------------------------------------------------------------------------------------------------

    def _answer(self, *workers: str) -> list[Effect]:
        """Answer workers with the model; one that is not back yet is answered when it pushes once more."""
        effects: list[Effect] = []
        for worker in workers:
            self.aggregation.pulled(worker)
            self.unanswered.discard(worker)
            if peer := self.membership.peers.get(worker):
                self.membership.answered(worker, self.now)
                model, frames = self.answers.to_worker(worker)
                if joins := self.membership.latest[worker].joins:  # most have joined once, and share one message
                    model = msgspec.structs.replace(model, joins=joins)
                self.sent_bytes += message_bytes(model, frames)
                self.beside_bytes += beside_bytes(model)
                effects.append(Send(peer, model, frames))
        return effects

    def _keep_if_due(self, before: int) -> None:
        """Let the present model wait for the evaluator if it is due; `before` is the version of the model before it."""
        if not self.finished and self.due.is_due(before, self.aggregation.version):
            self.due.add(*self.answers.whole())

    def _answer_pulls(self) -> list[Effect]:
        if not self.pulls:
            return []
        due = [peer for peer, at in self.pulls.items() if self.finished or at <= self.aggregation.version]
        for peer in due:
            del self.pulls[peer]
        return [Send(peer, *self.answers.whole()) for peer in due]

    def _refuse(
        self, peer: str, code: str, reason: str, told: bool = True, *, push: Push | None = None
    ) -> list[Effect]:
        """Refuse a message, which takes no effect; of a push the record says which one it was."""
        refusal = self._refusal(peer, code, reason, push)
        noted: list[Effect] = [Journal(refusal)]
        if push and refusal.worker:
            is_known = self._has_come(push) or self.rejected.get(push.sender) == (push.incarnation, push.step)
            noted = [] if is_known else self._log(Rejected(now=self.now, record=refusal))
        return [*noted, self._refuse_to(peer, refusal)] if told else noted

    def _refusal(self, peer: str, code: str, reason: str, push: Push | None = None) -> Refused:
        record = Refused(peer=peer, code=code, reason=reason[:REASON_LENGTH_MAX])
        if push is None or push.sender not in self.workers:
            return record
        return msgspec.structs.replace(
            record, worker=push.sender, incarnation=push.incarnation, joins=push.joins, step=push.step
        )

    def _refuse_to(self, peer: str, refusal: Refused) -> Send:
        return Send(peer, Refuse(sender=self.plan.node, code=refusal.code, reason=refusal.reason))  # type: ignore[arg-type]

    # --- deadlines, checkpoints, the end ------------------------------------------------------------------------

    def _next_s(self) -> float:
        """Return the earliest deadline of all."""
        return min(self.membership.next_s, self._round_ends_s(), self._checkpoint_due_s())

    def _round_ends_s(self) -> float:
        deadline_s = self.aggregation.deadline_s
        return math.inf if deadline_s is None or not self.pending else self.pending_s + deadline_s

    def _checkpoint_due_s(self) -> float:
        every_s = self.plan.checkpoint_every_s
        return math.inf if every_s is None or self.checkpoint_s is None else self.checkpoint_s + every_s

    def _woken(self, token: str) -> list[Effect]:
        if self.finished or not self.alarm.rings(token):
            return []
        effects: list[Effect] = []
        for worker, reason in self.membership.lost(self.now):
            effects += self._log(Departed(now=self.now, worker=worker, reason=reason))
        for join in self.membership.unknown(self.now):
            effects += self._refuse_unknown(join.event.peer, join.worker, join.incarnation)
        for worker in self.membership.absent(self.now):
            effects.append(Journal(Note(text=f"{worker} has not joined for {JOIN_S:g} s")))
            effects += self._log(Departed(now=self.now, worker=worker, reason="absence"))
        if self._round_ends_s() <= self.now:
            effects += self._log(RoundExpired(now=self.now))
        if self._checkpoint_due_s() <= self.now and not self.finished:
            effects += self._checkpoint()
        return effects

    def _checkpoint(self) -> list[Effect]:
        """Hand the model over, unless that was done at this version."""
        self.checkpoint_s = self.now
        if self.checkpoint_version == self.aggregation.version and not self.finished:
            return []
        self.checkpoint_version = self.aggregation.version
        return [Send("controller", *self.answers.checkpoint())]

    def _finish_if_reached(self) -> list[Effect]:
        """Finish if the last update is reached; a round may end beyond it."""
        version, stop = self.aggregation.version, self.plan.stop_updates
        return self._finish(f"{version} updates were applied") if stop and version >= stop else []

    def _finish(self, reason: str) -> list[Effect]:
        if self.finished:
            return []
        self.finished = self.answers.final = True
        effects: list[Effect] = [Journal(Finished(version=self.aggregation.version, reason=reason))]
        effects += self._checkpoint()
        effects += self._answer_pulls()
        pending, self.pending = self.pending, []
        for each in pending:
            self.unanswered.discard(each.push.sender)
            refusal = self._refusal(each.peer, "finished", "no more updates are applied", each.push)
            effects += [Journal(refusal), self._refuse_to(each.peer, refusal)]
        return effects


def _about(event: Event) -> str:
    """What it was that failed, to who has made the part."""
    if isinstance(event, MessageReceived) and isinstance(event.message, Push):
        return f"step {event.message.step} of {event.message.sender}"
    if isinstance(event, MessageReceived):
        return f"{type(event.message).__name__.lower()} of {event.message.sender}"
    return type(event).__name__.lower()


def _record(held: PendingPush, before: int, version: int, sent: int, beside_sent: int) -> Update:
    """Return the record of an applied push: `before` is the model's version before all that was applied with it."""
    push = held.push
    return Update(
        worker=push.sender, incarnation=push.incarnation, joins=push.joins, step=push.step, version=version,
        base=push.base, staleness=before - push.base, entries=held.entries, bits=held.bits, bytes=held.bytes,
        loss=push.loss, sent=sent, beside=beside_bytes(push), beside_sent=beside_sent,
    )  # fmt: skip
