"""The parameter server: keeps the model, applies every push, answers with the model.

    Join, Push ---> [ refuse? ] ---> aggregation ---> Model to whom the method lets go on
    Pull (evaluator) ---> held until the version asked for is reached

It believes the data network alone: who joined, with which incarnation. After the last update it answers everybody with
a model marked final, once.

With `pull: changed-since` a worker that has been answered since it joined gets only the entries that may have changed
since then, with their new values, bit for bit. It gets the whole model when it has joined, when its push names another
version than it was last sent, when the model is final, and when the whole model is no larger.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms import registry
from edgebed.algorithms.update import Update as SentUpdate
from edgebed.roles.changes import Changes
from edgebed.roles.events import Effect, Event, Journal, Received, Send, unexpected
from edgebed.roles.records import Dropped, Finished, Refused, Update
from edgebed.scenario.plan import NodePlan
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Checkpoint, Finish, Join, Model, Pull, Push, Refuse, Start, Tensor
from edgebed.wire.tensors import Buffer, cut, decode_update, encode_update, payload_bytes

REASON_LENGTH_MAX = 200  # it may quote a stranger


class ParameterServer:
    """The heart of the server. `theta` is written in place from here on; `snapshot` copies it into frames to send."""

    def __init__(
        self,
        plan: NodePlan,
        theta: NDArray[np.float32],
        peers: tuple[str, ...],
        snapshot: Callable[[NDArray[np.float32]], Sequence[Buffer]] = lambda theta: cut(theta.copy().data),
    ) -> None:
        config = registry.configure("aggregation", plan.method.aggregation)
        self.aggregation = registry.AGGREGATIONS[plan.method.aggregation.name].Aggregation(config, theta)
        self.plan = plan
        self.peers = frozenset(peers)
        self.snapshot = snapshot
        self.tensor = Tensor("theta", "float32", theta.shape, "dense", theta.size)
        self.joined: dict[str, tuple[int, str]] = {}
        """Worker: its incarnation and the connection it joined on."""
        self.pulls: dict[str, int] = {}
        """Connection of a waiting evaluator: the version it waits for."""
        self.changes = Changes(theta.size) if plan.pull == "changed-since" else None
        self.held: dict[str, int] = {}
        """Worker: the version it was last sent, and said it had if it has pushed since; absent: it needs all of it."""
        self.answers: dict[int | None, tuple[Model, Sequence[Buffer]]] = {}
        """The present model since each version asked for (None: whole): who gets the same shares one encoding."""
        self.answered = (-1, False)
        """The version that they are of, and whether it is final."""
        self.finished = False

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to a message; the server keeps no time."""
        if not isinstance(event, Received):
            raise unexpected(self, event)
        message = event.message
        if isinstance(message, Push):
            return self._push(event, message)
        if isinstance(message, Join):
            return self._join(event, message)
        if isinstance(message, Pull):
            return self._pull(event, message)
        if isinstance(message, Finish):
            return self._finish(message.reason)
        if isinstance(message, Start):
            return []  # it serves from the moment it can be reached
        return [
            Journal(Refused(peer=event.peer, code="malformed", reason=f"a server gets no {type(message).__name__}"))
        ]

    def _join(self, event: Received, join: Join) -> list[Effect]:
        known = self.joined.get(join.sender)
        if join.sender not in self.peers:
            return self._refuse(event, "unknown-node", f"{join.sender!r} is not in the plan")
        if known is not None and join.incarnation < known[0]:
            return self._refuse(event, "stale-incarnation", f"incarnation {known[0]} has joined")
        if known is not None and join.incarnation == known[0] and event.peer != known[1]:
            return self._refuse(event, "duplicate", f"incarnation {known[0]} has joined from another connection")
        self.joined[join.sender] = (join.incarnation, event.peer)
        self.held.pop(join.sender, None)
        return [self._answer(join.sender)]

    def _push(self, event: Received, push: Push) -> list[Effect]:
        worker = push.sender
        known = self.joined.get(worker)
        if known is None:
            return self._refuse(event, "not-joined", f"{worker!r} has not joined")
        if known[0] != push.incarnation:
            return self._refuse(event, "stale-incarnation", f"incarnation {known[0]} has joined")
        if known[1] != event.peer:
            return self._refuse(event, "duplicate", f"incarnation {known[0]} has joined from another connection")
        if self.finished:
            return self._refuse(event, "finished", "no more updates are applied")
        try:
            update = self._decode(event, push)
        except RemoteWireError as error:
            return [
                Journal(Dropped(socket="data", reason=f"{worker}: {error}"[:REASON_LENGTH_MAX])),
                *self._refuse(event, "malformed", str(error)),
            ]
        staleness = self.aggregation.version - push.base
        applied = self.aggregation.push(worker, update, push.base)
        version = self.aggregation.version
        if self.changes:
            self.changes.note(version, applied.changed)
        if self.held.get(worker) != push.base:
            self.held.pop(worker, None)
        effects: list[Effect] = [
            Journal(
                Update(
                    worker=worker, incarnation=push.incarnation, step=push.step, version=version, base=push.base,
                    staleness=staleness, entries=update.entries, bits=update.bits, bytes=event.bytes, loss=push.loss,
                )
            )
        ]  # fmt: skip
        if version == self.plan.stop_updates:
            effects += self._finish(f"{version} updates were applied")
        effects += [self._answer(name) for name in applied.released]
        return effects + self._answer_pulls()

    def _decode(self, event: Received, push: Push) -> SentUpdate:
        size = len(self.aggregation.theta)
        if push.tensors[0].shape != (size,):
            raise RemoteWireError(f"an update of shape {push.tensors[0].shape}; the model has ({size},)")
        if not 0 <= push.base <= self.aggregation.version:
            raise RemoteWireError(f"base {push.base}; the model is at version {self.aggregation.version}")
        return decode_update(push.tensors[0], event.frames)

    def _pull(self, event: Received, pull: Pull) -> list[Effect]:
        self.pulls[event.peer] = pull.at_version
        return self._answer_pulls()

    def _answer_pulls(self) -> list[Effect]:
        if not self.pulls:
            return []
        due = [peer for peer, at in self.pulls.items() if self.finished or at <= self.aggregation.version]
        for peer in due:
            del self.pulls[peer]
        return [self._model(peer) for peer in due]

    def _answer(self, worker: str) -> Send:
        self.aggregation.pulled(worker)
        since = self.held.get(worker) if self.changes and not self.finished else None
        self.held[worker] = self.aggregation.version
        return self._model(self.joined[worker][1], since)

    def _model(self, peer: str, since: int | None = None) -> Send:
        present = (self.aggregation.version, self.finished)
        if self.answered != present:
            self.answered = present
            self.answers.clear()
        if since not in self.answers:
            self.answers[since] = self._encode(since)
        return Send(peer, *self.answers[since])

    def _encode(self, since: int | None) -> tuple[Model, Sequence[Buffer]]:
        """The present model, whole, or what may have changed of it since a version if that is smaller."""
        version, final = self.answered
        theta = self.aggregation.theta
        model = Model(sender=self.plan.node, version=version, final=final, tensors=(self.tensor,))
        if since is None:
            return model, self.snapshot(theta)
        assert self.changes is not None
        changed = self.changes.since(since)
        if changed is not None and len(changed) < len(theta):
            tensor, frames = encode_update("theta", SentUpdate(len(theta), changed, theta[changed]))
            if payload_bytes(tensor) < payload_bytes(self.tensor):
                return msgspec.structs.replace(model, since=since, tensors=(tensor,)), frames
        if None not in self.answers:
            self.answers[None] = self._encode(None)
        return self.answers[None]

    def _finish(self, reason: str) -> list[Effect]:
        if self.finished:
            return []
        self.finished = True
        version = self.aggregation.version
        checkpoint = Checkpoint(sender=self.plan.node, version=version, tensors=(self.tensor,))
        return [
            Journal(Finished(version=version, reason=reason)),
            Send("controller", checkpoint, self.snapshot(self.aggregation.theta)),
            *self._answer_pulls(),
        ]

    def _refuse(self, event: Received, code: str, reason: str) -> list[Effect]:
        reason = reason[:REASON_LENGTH_MAX]
        refusal = Refuse(sender=self.plan.node, code=code, reason=reason)  # type: ignore[arg-type]
        return [Journal(Refused(peer=event.peer, code=code, reason=reason)), Send(event.peer, refusal)]
