"""The worker: pulls the model, computes one update on its own data, waits as its device would, pushes.

    Join ---> Model ---> gradient, selection, encoding; pause ---> Push ---> Model ---> …

Hardy, Le Merrer, Sericola 2017, Algorithm 1; the pause stands between the computation and the push (their section V.A).

With `pull: changed-since` it keeps the model, and a `Model` may bring only what changed since that version. Of one that
brings what changed since another version nothing is used: the worker says so, and joins anew to be sent all of it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgebed import chance
from edgebed.roles.events import Compute, Computed, Effect, Event, Journal, Received, Send, Stop, unexpected
from edgebed.roles.records import Note
from edgebed.roles.work import GradientJob, GradientResult
from edgebed.scenario.plan import NodePlan
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Join, Model, Push, Refuse, Start
from edgebed.wire.tensors import Buffer, decode_dense, decode_update


class Worker:
    """The heart of a worker. `copy` gives a model memory of its own, where its gradient can be computed."""

    def __init__(
        self,
        plan: NodePlan,
        incarnation: int = 1,
        copy: Callable[[NDArray[np.float32]], NDArray[np.float32]] = np.copy,
    ) -> None:
        self.plan = plan
        self.incarnation = incarnation
        self.copy = copy
        self.order = BatchOrder(plan)
        self.step = 0
        self.base = 0
        self.theta: NDArray[np.float32] | None = None
        """The model of version `base`, where only its changes may come; never written, a job may still use it."""
        self.memory: object = None
        """What the compression remembers from the step before."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """One thing at a time: a model leads to a gradient, a gradient to a push."""
        if isinstance(event, Received):
            return self._received(event)
        if isinstance(event, Computed) and isinstance(event.result, GradientResult):
            return self._push(event.result)
        raise unexpected(self, event)

    def _received(self, event: Received) -> list[Effect]:
        message = event.message
        if isinstance(message, Start):
            return [self._join()]
        if isinstance(message, Model):
            return [] if message.final else self._model(message, event.frames)
        if isinstance(message, Refuse):
            if message.code == "finished":
                return []
            reason = f"refused by {message.sender} ({message.code}): {message.reason}"
            return [Journal(Note(text=reason)), Stop(reason)]
        raise unexpected(self, event)

    def _join(self) -> Send:
        return Send("server", Join(sender=self.plan.node, incarnation=self.incarnation))

    def _model(self, model: Model, frames: Sequence[Buffer]) -> list[Effect]:
        if model.since is None:
            theta = decode_dense(model.tensors[0], frames)
        elif self.theta is not None and model.since == self.base:
            theta = self._changed(self.theta, model, frames)
        else:
            has = "none" if self.theta is None else f"version {self.base}"
            text = f"sent what changed since version {model.since} of the model, and has {has}: joins anew"
            return [Journal(Note(text=text)), self._join()]
        self.base = model.version
        if self.plan.pull == "changed-since":
            self.theta = theta
        job = GradientJob(theta, self.order.batch(self.step), self.step, self.memory)
        return [Compute(job, chance.waiting_time(self.plan.waiting, self.plan.seed, self.plan.node, self.step))]

    def _changed(self, theta: NDArray[np.float32], model: Model, frames: Sequence[Buffer]) -> NDArray[np.float32]:
        """A copy of `theta` with the entries that `model` brings; RemoteWireError if they are not such."""
        tensor = model.tensors[0]
        if (tensor.encoding, tensor.dtype, tensor.shape) != ("sparse", "float32", theta.shape):
            raise RemoteWireError(f"changes of {tensor.encoding} {tensor.dtype} {tensor.shape} to {theta.shape} floats")
        changes = decode_update(tensor, frames)
        present = self.copy(theta)
        present[changes.indices] = changes.values
        return present

    def _push(self, result: GradientResult) -> list[Effect]:
        self.memory = result.memory
        push = Push(
            sender=self.plan.node,
            incarnation=self.incarnation,
            step=self.step,
            base=self.base,
            loss=result.loss,
            tensors=(result.tensor,),
        )
        self.step += 1
        return [Send("server", push, result.frames)]


class BatchOrder:
    """Which examples make up the k-th mini-batch: the node's data in a new seeded order every epoch, without end."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self.orders: dict[int, NDArray[np.int64]] = {}

    def batch(self, k: int) -> NDArray[np.int64]:
        """(b,) positions in the node's data; a batch may span two epochs."""
        size, n = self.plan.task.batch_size, self.plan.num_examples
        first, last = k * size // n, ((k + 1) * size - 1) // n
        self.orders = {epoch: self._order(epoch) for epoch in range(first, last + 1)}
        examples = np.concatenate(list(self.orders.values()))
        start = k * size - first * n
        return examples[start : start + size]

    def _order(self, epoch: int) -> NDArray[np.int64]:
        known = self.orders.get(epoch)
        if known is not None:
            return known
        return chance.generator(self.plan.seed, "order", self.plan.node, epoch).permutation(self.plan.num_examples)
