"""The server of layer-wise training: it stores the weights of all shards, and tells them where to begin.

    all shards have joined ---> Resume(history 0, step 0) ---> Backup, Backup, ... of each shard, at equal steps
    one joins again        ---> Resume(history 1, step s) to all; s is the last step of which there is a backup of each

A backup is whole or nothing: only when that of the last shard has come does it take the place of the one before. So all
shards always resume from one and the same step (Tong et al. 2016, Layer-wise asynchronous training of neural networks
with synthetic gradients, section 6, describe it and leave it undone).

The model is the shards' weights one after the other; the evaluator is sent what copies of one step make together. What
it has not asked for yet waits for it, unless a roll-back makes it again.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgebed.core.plan import ServerPlan
from edgebed.core.records import BackedUp, Finished, Joined, Left, Refused, Resumed
from edgebed.roles.alarm import Alarm
from edgebed.roles.events import (
    Disconnected,
    Effect,
    Event,
    Journal,
    MessageReceived,
    Observe,
    Send,
    Wake,
    Woken,
    unexpected,
)
from edgebed.roles.layerwise.histories import HISTORIES
from edgebed.roles.server.due_models import DueModels
from edgebed.roles.server.membership import JoinId, Membership
from edgebed.wire.messages import (
    Backup,
    Checkpoint,
    Failed,
    Finish,
    Join,
    Keep,
    Model,
    Pull,
    Refuse,
    Resume,
    RollBack,
    Start,
    Tensor,
)
from edgebed.wire.tensors import Buffer, CopyFrames, copied, decode_dense, encode_dense

Floats = NDArray[np.float32]
SETTLE_S = 0.1
"""Seconds without another join after which a new history begins."""


def split_parts(parts: Sequence[tuple[str, int]], state: Floats) -> dict[str, Floats]:
    """Each shard's part of (s,) `state`, which has one after the other."""
    ends = np.cumsum([size for _, size in parts])[:-1]
    return {name: piece for (name, _), piece in zip(parts, np.split(state, ends), strict=True)}


class ShardServer:
    """The heart of the server where shards train."""

    def __init__(
        self,
        plan: ServerPlan,
        theta: Floats,
        snapshot: CopyFrames = copied,
        incarnation: int = 1,
        backup: tuple[int, Mapping[str, Floats]] | None = None,
    ) -> None:
        """(w,) initial weights of the model; `snapshot` makes them frames to send.

        `backup`: a step, and each shard's state, to resume from. The node that has all gradient modules is one of the
        shards, without any of the weights.
        """
        assert plan.shard is not None
        self.plan = plan
        self.snapshot = snapshot
        self.sizes = dict(plan.shard.sizes)
        self.steps = plan.shard.steps
        self.membership = Membership(None)
        self.alarm = Alarm()
        self.first = (incarnation - 1) * HISTORIES
        """First history of this incarnation: what was on its way in the one before belongs to none of these."""
        self.history = self.first - 1
        self.rejoined = 0
        """How often somebody has joined since training began."""
        self.reason = ""
        """Reason of the next history: who joined last."""
        self.pieces = dict(zip(self.sizes, np.split(theta, np.cumsum(list(self.sizes.values()))[:-1]), strict=True))
        """Initial weights of each shard."""
        self.backup_step, self.states = backup or (0, {})
        """Step of the last backup, and the state of every shard; empty: there is none yet."""
        self.coming: dict[int, dict[str, Floats]] = {}
        """Backups that are not whole yet, by step."""
        self.copies: dict[int, dict[str, Floats]] = {}
        """Copies of the weights by step, where not all have come."""
        self.version = -1 if self.backup_step else 0
        """The step of the newest model that there is; -1: what a backup holds is no model yet."""
        self.made_in = self.first
        """History in which the shards came to that model."""
        self.theta = theta
        """(w,) weights of that model."""
        self.newest = self.version
        """Step that the present history has come to, as models show; what is beyond it will be measured again."""
        self.due = DueModels(plan.due_every_updates, theta.nbytes)
        self.pulls: dict[str, int] = {}
        """Versions that waiting evaluators wait for, by connection."""
        self.finished = False
        if self.version == 0:
            self.due.add(*self._whole())

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to a message, a connection that broke, or one that is not coming back."""
        if isinstance(event, Observe):
            return []
        effects = self._react(event, now)
        return effects if self.finished else [*effects, *self.alarm.set(self.membership.next_s)]

    def _react(self, event: Event, now: float) -> list[Effect]:
        if isinstance(event, Disconnected):
            self.membership.disconnected(event.peer, now)
            return []
        if isinstance(event, Woken):
            return self._woken(event.token, now)
        if not isinstance(event, MessageReceived):
            raise unexpected(self, event)
        message = event.message
        self.membership.heard(message.sender, event.peer, now)
        if isinstance(message, Join):
            return self._join(event, message, now)
        if isinstance(message, Backup):
            return self._backup(event, message)
        if isinstance(message, Pull):
            return self._pull(event.peer, self._due(message.at_version))
        if isinstance(message, Finish):
            return self._finish(message.reason)
        if isinstance(message, RollBack):
            return self._roll_back(message, event.frames)
        if isinstance(message, Start | Failed):
            return []  # a shard that has failed is missed by all: it comes back, or training stands still
        return self._refuse(event.peer, "malformed", f"this server gets no {type(message).__name__}")

    # --- who takes part -----------------------------------------------------------------------------------------

    def _join(self, event: MessageReceived, join: Join, now: float) -> list[Effect]:
        """Take a join; it is seldom the only one: a node that comes back is joined by those that lost it."""
        shard, join_id = join.sender, JoinId(join.incarnation, join.joins)
        if shard not in self.sizes:
            return self._refuse(event.peer, "unknown-node", f"{shard!r} has no shard")
        if objection := self.membership.refuse_join(shard, join_id, event.peer):
            return self._refuse(event.peer, objection.code, objection.reason, told=objection.told)
        if not self.membership.join(shard, join_id, event.peer):
            return []
        joined = Journal(Joined(worker=shard, incarnation=join_id.incarnation, joins=join_id.joins))
        if self.history < self.first:
            return [joined, *self._begin("")]
        self.rejoined += 1
        self.reason = f"{shard} has joined anew"
        return [joined, Wake(now + SETTLE_S, f"begin {self.rejoined}")]

    def _woken(self, token: str, now: float) -> list[Effect]:
        if token == f"begin {self.rejoined}":
            return self._begin(self.reason)
        if self.finished or not self.alarm.rings(token):
            return []
        effects: list[Effect] = []
        for shard, reason in self.membership.lost(now):
            self.membership.leave(shard)
            incarnation = self.membership.latest[shard].incarnation
            effects.append(Journal(Left(worker=shard, incarnation=incarnation, reason=reason)))
        return effects

    def _begin(self, reason: str) -> list[Effect]:
        """Begin a new history, from the last backup of all, once all shards are there."""
        if self.finished or self.membership.peers.keys() != self.sizes.keys():
            return []
        self.history += 1
        self.coming.clear()
        self.copies.clear()
        self.newest = min(self.newest, self.backup_step)
        self.due.give_up(self.backup_step)
        self.pulls = {peer: self._due(at) for peer, at in self.pulls.items()}
        effects: list[Effect] = [Journal(Resumed(history=self.history, step=self.backup_step, reason=reason))]
        for shard, peer in self.membership.peers.items():
            name, given = ("state", self.states) if self.states else ("weights", self.pieces)
            tensor, frames = encode_dense(name, given[shard])
            resume = Resume(sender=self.plan.node, history=self.history, step=self.backup_step, tensors=(tensor,))
            effects.append(Send(peer, resume, frames))
        return effects

    def _roll_back(self, message: RollBack, frames: Sequence[Buffer]) -> list[Effect]:
        """Roll back by hand: what was learnt beyond that step will be made again."""
        self.backup_step, self.states = (
            message.step,
            split_parts(message.parts, decode_dense(message.tensors[0], frames)),
        )
        return self._begin("rolled back by hand")

    # --- what is stored -----------------------------------------------------------------------------------------

    def _backup(self, event: MessageReceived, backup: Backup) -> list[Effect]:
        """Store a backup of the present history; others are of no use."""
        shard = backup.sender
        if shard not in self.sizes or backup.history != self.history:
            return []
        tensor = backup.tensors[0]
        if tensor.name == "weights" and tensor.shape != (self.sizes[shard],):
            return self._refuse(event.peer, "malformed", f"weights of shape {tensor.shape}, not ({self.sizes[shard]},)")
        kind = self.coming if tensor.name == "state" else self.copies
        pieces = kind.setdefault(backup.step, {})
        pieces[shard] = decode_dense(tensor, event.frames)
        if not all(each in pieces for each, size in self.sizes.items() if size or tensor.name == "state"):
            return []
        del kind[backup.step]
        return self._keep(backup.step, pieces) if tensor.name == "state" else self._assemble(backup.step, pieces)

    def _keep(self, step: int, states: dict[str, Floats]) -> list[Effect]:
        if step <= self.backup_step:
            return []
        self.backup_step, self.states = step, states
        parts = tuple((shard, len(state)) for shard, state in states.items())
        tensor, frames = encode_dense("state", np.concatenate(list(states.values())))
        keep = Keep(sender=self.plan.node, step=step, parts=parts, tensors=(tensor,))
        return [Journal(BackedUp(history=self.history, step=step)), Send("controller", keep, frames)]

    def _assemble(self, step: int, pieces: dict[str, Floats]) -> list[Effect]:
        if step and step <= self.newest:
            return []
        self.version = self.newest = step
        self.made_in = self.history
        self.theta = np.concatenate([pieces[shard] for shard, size in self.sizes.items() if size])
        if step == self.steps:
            return self._finish(f"{step} steps were made")
        self.due.add(*self._whole())
        return self._answer_pulls()

    # --- answers and the end ------------------------------------------------------------------------------------

    def _due(self, at: int) -> int:
        """Return the version to answer an evaluator at: no later than the next that is made, after a roll-back."""
        every = self.plan.shard.weights_every if self.plan.shard else None
        return min(at, (max(self.newest, 0) // every + 1) * every) if every else at

    def _pull(self, peer: str, at: int) -> list[Effect]:
        """Answer an evaluator with a model that waits for it, or when that version is made."""
        if due := self.due.next(at):
            return [Send(peer, *due)]
        self.pulls[peer] = at
        return self._answer_pulls()

    def _answer_pulls(self) -> list[Effect]:
        due = [peer for peer, at in self.pulls.items() if self.finished or at <= self.newest]
        if not due:
            return []
        whole = self._whole()
        for peer in due:
            del self.pulls[peer]
        return [Send(peer, *whole) for peer in due]

    def _whole(self) -> tuple[Model, Sequence[Buffer]]:
        tensor, frames = self._encoded()
        return Model(sender=self.plan.node, version=self.version, final=self.finished, tensors=(tensor,)), frames

    def _finish(self, reason: str) -> list[Effect]:
        if self.finished:
            return []
        self.finished = True
        self.version = max(0, self.version)
        tensor, frames = self._encoded()
        checkpoint = Checkpoint(sender=self.plan.node, version=self.version, final=True, tensors=(tensor,))
        finished = Journal(Finished(version=self.version, reason=reason, history=self.made_in))
        return [finished, Send("controller", checkpoint, frames), *self._answer_pulls()]

    def _encoded(self) -> tuple[Tensor, Sequence[Buffer]]:
        tensor = Tensor("theta", "float32", self.theta.shape, "dense", self.theta.size)
        return tensor, self.snapshot(self.theta, [tensor])

    def _refuse(self, peer: str, code: str, reason: str, told: bool = True) -> list[Effect]:
        record = Journal(Refused(peer=peer, code=code, reason=reason))
        refusal = Refuse(sender=self.plan.node, code=code, reason=reason)  # type: ignore[arg-type]
        return [record, Send(peer, refusal)] if told else [record]
