"""The parameter server: keeps the model, applies every push, answers with the model.

    Join, Push ---> [ refuse? ] ---> aggregation ---> Model to whom the method lets go on
    Pull (evaluator) ---> held until the version asked for is reached

It believes the data network alone: who joined, with which incarnation. After the last update it answers everybody with
a model marked final, once.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms import registry
from edgebed.algorithms.update import Update as SentUpdate
from edgebed.roles.events import Effect, Event, Journal, Received, Send, unexpected
from edgebed.roles.records import Dropped, Finished, Refused, Update
from edgebed.scenario.plan import NodePlan
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Checkpoint, Finish, Join, Model, Pull, Push, Refuse, Start, Tensor
from edgebed.wire.tensors import Buffer, cut, decode_update

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
        self.model: Model | None = None
        self.model_frames: Sequence[Buffer] = ()
        """The last answer: those who get the same version share one snapshot."""
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
        released = self.aggregation.push(worker, update, push.base)
        version = self.aggregation.version
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
        effects += [self._answer(name) for name in released]
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
        return self._model(self.joined[worker][1])

    def _model(self, peer: str) -> Send:
        version = self.aggregation.version
        if self.model is None or self.model.version != version or self.model.final != self.finished:
            self.model = Model(sender=self.plan.node, version=version, final=self.finished, tensors=(self.tensor,))
            self.model_frames = self.snapshot(self.aggregation.theta)
        return Send(peer, self.model, self.model_frames)

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
