"""The parameter server: holds the model, has every push applied, answers with the model.

    Join, Push ---> [ refuse? ] ---> aggregation ---> Model to whom the method lets go on
    Pull (evaluator) ---> held until the version asked for is reached
    silence, a broken connection ---> the worker has left: its state is released, nobody waits for it

The controller tells it which workers begin. Of all else it believes the data network alone, unless the controller is
asked to tell it who has failed. A worker that left may join again. After the last update it hands the model over,
answers the evaluator, and refuses whatever is pushed.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms import registry
from edgebed.algorithms.aggregator import Aggregator, PushInfo
from edgebed.algorithms.update import Applied, ModelUpdate
from edgebed.core.errors import OwnCodeError
from edgebed.core.plan import ServerPlan
from edgebed.core.records import Dropped, Finished, Joined, Left, Note, Refused, Update
from edgebed.roles.alarm import Alarm
from edgebed.roles.events import Disconnected, Effect, Event, Journal, MessageReceived, Observe, Send, Woken, unexpected
from edgebed.roles.server.answers import Answers
from edgebed.roles.server.membership import JOIN_S, JoinId, Membership, Reason
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.frames import encode, size_bytes
from edgebed.wire.messages import Failed, Finish, Join, Pull, Push, Refuse, Start
from edgebed.wire.tensors import Buffer, bits, cut, decode_pieces

REASON_LENGTH_MAX = 200  # it may quote a stranger


class Held(NamedTuple):
    """A push that the aggregation has and has not applied."""

    peer: str
    push: Push
    entries: int
    bits: int
    bytes: int


class ParameterServer:
    """The heart of the server. `theta` is written in place from here on; `snapshot` copies it into frames to send."""

    def __init__(
        self,
        plan: ServerPlan,
        theta: NDArray[np.float32],
        peers: tuple[str, ...],
        snapshot: Callable[[NDArray[np.float32]], Sequence[Buffer]] = lambda theta: cut(theta.copy().data),
        version: int = 0,
        state: NDArray[np.float64] | None = None,
    ) -> None:
        """`version` is that of `theta`: above 0 the server resumes from a checkpoint, with the aggregation's `state`.

        `state` may be None. ValueError where it is not one of this aggregation.
        """
        aggregation, config = registry.aggregation_of(plan.method)
        self.aggregation: Aggregator = aggregation(config, theta, version)
        self.aggregation.epochs_a_push = plan.epochs_a_push
        self.aggregation.is_buffer = registry.buffer_mask(plan.task)
        if state is not None:
            if len(state) != (size := len(self.aggregation.state())):
                raise ValueError(f"state: {len(state):,} numbers, where the aggregation remembers {size:,}")
            self.aggregation.restore(state)
        self.compression = registry.compression_of(plan.method, plan.task)
        self.plan = plan
        self.workers = frozenset(peers)
        self.membership = Membership(plan.silence_s)
        self.answers = Answers(plan, self.aggregation, snapshot)
        self.pulls: dict[str, int] = {}
        """Versions that waiting evaluators wait for, by connection."""
        self.held: list[Held] = []
        """Held pushes in order of arrival."""
        self.held_s = 0.0
        """Time since when pushes are held."""
        self.alarm = Alarm()
        self.checkpoint_version = version
        """Version of the last checkpoint."""
        self.checkpoint_s: float | None = None
        """Time of the last checkpoint, or when the server could first have made one."""
        self.now = 0.0
        self.sent_bytes = 0
        """Payload of the models handed out since the last update."""
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
        self.membership.heard(message.sender, event.peer, self.now)
        if isinstance(message, Push):
            return self._push(event, message)
        if isinstance(message, Join):
            return self._join(event, message)
        if isinstance(message, Pull):
            self.pulls[event.peer] = message.at_version
            return self._answer_pulls()
        if isinstance(message, Finish):
            return self._finish(message.reason)
        if isinstance(message, Failed):
            return self._failed(message)
        if isinstance(message, Start):
            return self._start(message)
        return [
            Journal(Refused(peer=event.peer, code="malformed", reason=f"a server gets no {type(message).__name__}"))
        ]

    # --- who takes part -----------------------------------------------------------------------------------------

    def _start(self, start: Start) -> list[Effect]:
        """Note who begins; the server serves from the moment it can be reached."""
        for worker in start.workers:
            if worker in self.workers and self.membership.expect(worker, self.now):
                self.aggregation.expected(worker)
        return self._finish_if_reached()

    def _join(self, event: MessageReceived, join: Join) -> list[Effect]:
        worker, join_id = join.sender, JoinId(join.incarnation, join.joins)
        if worker not in self.workers:
            return self._refuse(event.peer, "unknown-node", f"{worker!r} is not in the plan")
        objection = self.membership.refuse_join(worker, join_id, event.peer)
        if objection:
            return self._refuse(event.peer, *objection)
        effects: list[Effect] = []
        if self.membership.join(worker, join_id, event.peer):
            effects.append(Journal(Joined(worker=worker, incarnation=join_id.incarnation, joins=join_id.joins)))
        applied = self.aggregation.joined(worker)
        self.answers.forget(worker)
        return [*effects, self._answer(worker), *self._applied(applied)]

    def _leave(self, worker: str, reason: Reason) -> list[Effect]:
        """Release the state of a worker; others may have waited for it alone."""
        self.membership.leave(worker)
        self.answers.forget(worker)
        left = Left(worker=worker, incarnation=self.membership.latest[worker].incarnation, reason=reason)
        return [Journal(left), *self._applied(self.aggregation.left(worker))]

    def _give_up(self, worker: str) -> list[Effect]:
        """Give up a worker that was expected and has not joined."""
        self.membership.leave(worker)
        return self._applied(self.aggregation.left(worker))

    def _failed(self, failed: Failed) -> list[Effect]:
        """Act on the controller's word that a worker failed; nothing, where a later incarnation has replaced it."""
        if self.finished:
            return []
        if failed.node in self.membership.expected:
            return self._give_up(failed.node)
        here = failed.node in self.membership.peers
        if not here or failed.incarnation < self.membership.latest[failed.node].incarnation:
            return []
        return self._leave(failed.node, "oracle")

    # --- pushes -------------------------------------------------------------------------------------------------

    def _push(self, event: MessageReceived, push: Push) -> list[Effect]:
        worker = push.sender
        objection = self.membership.refuse_push(worker, JoinId(push.incarnation, push.joins), event.peer)
        if objection:
            return self._refuse(event.peer, *objection, push=push)
        if self.finished:
            return self._refuse(event.peer, "finished", "no more updates are applied", push=push)
        try:
            update, num_bits = self._decode(event, push)
        except RemoteWireError as error:
            return [
                Journal(Dropped(socket="data", reason=f"{worker}: {error}"[:REASON_LENGTH_MAX])),
                *self._refuse(event.peer, "malformed", str(error), push=push),
            ]
        self.answers.pushed(worker, push.base)
        if self.aggregation.late(push.base):
            late = f"the model is at version {self.aggregation.version}"
            return [*self._refuse(event.peer, "late", late, push=push), self._answer(worker)]
        self.membership.waits(worker)
        self.aggregation.schedule.note(self.aggregation.epoch, push.loss)
        if not self.held:
            self.held_s = self.now
        self.held.append(Held(event.peer, push, update.entries, num_bits, event.bytes))
        return self._applied(self.aggregation.push(worker, update, push.base, PushInfo(push.examples, push.loss)))

    def _decode(self, event: MessageReceived, push: Push) -> tuple[ModelUpdate, int]:
        """Return the update, and the bits that the algorithm needed of it."""
        if not 0 <= push.base <= self.aggregation.version:
            raise RemoteWireError(f"base {push.base}; the model is at version {self.aggregation.version}")
        pieces = decode_pieces(push.tensors, event.frames)
        try:
            with np.errstate(all="ignore"):  # training that diverges is a result, and seen in its loss
                return self.compression.restore(pieces), sum(map(bits, push.tensors, pieces))
        except ValueError as error:
            raise RemoteWireError(str(error)) from error

    def _applied(self, applied: Applied | None) -> list[Effect]:
        """Record what was applied, if anything, and answer the workers that the method lets continue."""
        if applied is None:
            return []
        if applied.held:
            return [self._answer(worker) for worker in applied.released]
        held, self.held = self.held, []
        before = self.aggregation.version - len(held)
        sent, self.sent_bytes = self.sent_bytes, 0
        effects: list[Effect] = [
            Journal(_record(each, before, before + k, 0 if k > 1 else sent)) for k, each in enumerate(held, 1)
        ]
        self.answers.changed(applied.changed)
        effects += self._finish_if_reached()
        effects += [self._answer(worker) for worker in applied.released]
        effects += self._answer_pulls()
        every = self.plan.checkpoint_every_updates
        return effects + (
            self._checkpoint() if every and self.aggregation.version >= self.checkpoint_version + every else []
        )

    # --- answers ------------------------------------------------------------------------------------------------

    def _answer(self, worker: str) -> Send:
        self.aggregation.pulled(worker)
        self.membership.answered(worker, self.now)
        model, frames = self.answers.to_worker(worker)
        if joins := self.membership.latest[worker].joins:  # most have joined once, and share one message
            model = msgspec.structs.replace(model, joins=joins)
        self.sent_bytes += size_bytes(encode(model, frames))
        return Send(self.membership.peers[worker], model, frames)

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
        reason = reason[:REASON_LENGTH_MAX]
        record = Refused(peer=peer, code=code, reason=reason)
        if push and push.sender in self.workers:
            record = Refused(
                peer=peer, code=code, reason=reason,
                worker=push.sender, incarnation=push.incarnation, joins=push.joins, step=push.step,
            )  # fmt: skip
        refusal = Refuse(sender=self.plan.node, code=code, reason=reason)  # type: ignore[arg-type]
        return [Journal(record), Send(peer, refusal)] if told else [Journal(record)]

    # --- deadlines, checkpoints, the end ------------------------------------------------------------------------

    def _next_s(self) -> float:
        """Return the earliest deadline of all."""
        return min(self.membership.next_s, self._round_ends_s(), self._checkpoint_due_s())

    def _round_ends_s(self) -> float:
        deadline_s = self.aggregation.deadline_s
        return math.inf if deadline_s is None or not self.held else self.held_s + deadline_s

    def _checkpoint_due_s(self) -> float:
        every_s = self.plan.checkpoint_every_s
        return math.inf if every_s is None or self.checkpoint_s is None else self.checkpoint_s + every_s

    def _woken(self, token: str) -> list[Effect]:
        if self.finished or not self.alarm.rings(token):
            return []
        effects: list[Effect] = []
        for worker, reason in self.membership.lost(self.now):
            effects += self._leave(worker, reason)
        for worker in self.membership.absent(self.now):
            effects += [Journal(Note(text=f"{worker} has not joined for {JOIN_S:g} s")), *self._give_up(worker)]
        if self._round_ends_s() <= self.now:
            effects += self._applied(self.aggregation.expire())
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
        held, self.held = self.held, []
        for each in held:
            effects += self._refuse(each.peer, "finished", "no more updates are applied", push=each.push)
        return effects


def _about(event: Event) -> str:
    """What it was that failed, to who has made the part."""
    if isinstance(event, MessageReceived) and isinstance(event.message, Push):
        return f"step {event.message.step} of {event.message.sender}"
    if isinstance(event, MessageReceived):
        return f"{type(event.message).__name__.lower()} of {event.message.sender}"
    return type(event).__name__.lower()


def _record(held: Held, before: int, version: int, sent: int) -> Update:
    """Return the record of an applied push: `before` is the model's version before all that was applied with it."""
    push = held.push
    return Update(
        worker=push.sender, incarnation=push.incarnation, joins=push.joins, step=push.step, version=version,
        base=push.base, staleness=before - push.base, entries=held.entries, bits=held.bits, bytes=held.bytes,
        loss=push.loss, sent=sent,
    )  # fmt: skip
