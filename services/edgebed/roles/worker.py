"""The worker: pulls the model, computes one update on its own data, waits as its device would, pushes.

    Join ---> Model ---> gradient, selection, encoding; pause ---> Push ---> Model ---> …

Hardy, Le Merrer, Sericola 2017, Algorithm 1; the pause stands between the computation and the push (their section V.A).

With `pull: changed-since`, or a method's `downlink`, it remembers the model, and a `Model` may bring only what changed
since that version. Of one that brings what changed since another version nothing is used: the worker says so, and joins
again to be sent all of it.

A worker is either asking (it has joined or pushed, and waits for the answer), or computing, or neither: not started, or
done. When its connection had broken, or the server is elsewhere now, a worker that is asking gives up and joins again;
one that is computing pushes as ever, and joins again if that is refused. Where a new server goes on from its log, a
worker pushes once more what was not answered. It counts its joins, and the answer to an
earlier one is not used, so that two answers never set two jobs going.

Where local work goes on while a push travels, the worker begins with that as soon as it has pushed. A model that comes
before it is done waits for it.

While it computes and pauses for longer than the server may take it to have left, it says in time that it works.

A worker with a model of its own, which its method's local work remembers, measures it on its own clients when the
server's model comes to a version that is due, and once more when the controller tells it that training is over.

Where a fault waits for it (points.py) it says how many updates it has made, tells the controller and holds still:
later events are queued, in order, until it may proceed.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.registry import (
    batches_a_push,
    batches_ahead,
    compresses_down,
    compression_of,
    cut_of,
    forgetting_of,
    vectors_of,
)
from edgebed.core import chance
from edgebed.core.errors import OwnCodeError
from edgebed.core.plan import WorkerPlan
from edgebed.core.planned.fault import Point
from edgebed.core.records import Clients, Diverged, Dropped, Note, Pushes, Unanswered
from edgebed.learning.objectives.registry import objective_of_task
from edgebed.roles.alarm import Alarm
from edgebed.roles.clients import DueByClient, batched, clients_record
from edgebed.roles.events import (
    AtPoint,
    Await,
    Compute,
    Computed,
    Connected,
    Effect,
    EndNode,
    Event,
    Journal,
    MessageReceived,
    Observe,
    Release,
    Send,
    Wake,
    Woken,
    unexpected,
)  # fmt: skip
from edgebed.roles.points import PointFaults
from edgebed.roles.server.downlink import add
from edgebed.roles.work import ClientsJob, ClientsResult, GradientJob, GradientResult
from edgebed.wire.compressed import restored
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Finish, Join, Model, Proceed, Push, Reached, Refuse, Start, Working
from edgebed.wire.tensors import Buffer, decode_row, decode_update, split_frames

ONLY_JOINED = -1  # in place of a push: what is asked for is the answer to a join


class Worker:
    """The heart of a worker. `copy` gives a model memory of its own, where its gradient can be computed."""

    def __init__(
        self,
        plan: WorkerPlan,
        incarnation: int = 1,
        copy: Callable[[NDArray[np.float32]], NDArray[np.float32]] = np.copy,
    ) -> None:
        self.plan = plan
        self.incarnation = incarnation
        self.copy = copy
        self.draw_name = chance.draw_name(plan.node, incarnation)
        self.order = BatchOrder(plan, self.draw_name)
        self.batches = batches_a_push(plan)
        self.ahead = batches_ahead(plan)
        self.downlink = None
        if compresses_down(plan.method):
            self.downlink = compression_of(plan.method, plan.task, "downlink")
        self.vectors = vectors_of(plan.method)
        self.forgets = forgetting_of(plan.method)
        self.points = PointFaults(plan, incarnation)
        self.joins = -1
        """Joins of the worker before its last one."""
        self.asking: int | None = None
        """Push, or ONLY_JOINED, whose answer the worker waits for; None: it waits for none."""
        self.asked: Send | None = None
        """What it asked last."""
        self.computing = False
        self.goes_on = False
        """Whether steps are being made that come after the push."""
        self.early: MessageReceived | None = None
        """A model that has come before they were done."""
        self.now = 0.0
        self.alarm = Alarm()
        """The time to tell the server that the work goes on."""
        self.told_s = 0.0
        """When the work on a push began, or the server was last told of it."""
        self.step = 0
        """The next push, or the one being computed."""
        self.base = 0
        self.rounds = 0
        """Steps in which the server had made version `base`."""
        self.theta: NDArray[np.float32] | None = None
        """(v n,) the model of version `base` and what is beside it, where only changes may come; never written, a job
        may still use it."""
        self.memory: Any = None
        """What local work and compression remember from the step before."""
        self.due = DueByClient(plan.by_client)
        self.has_diverged = False
        """Whether something was not finite, which has been reported."""
        self.awaited: dict[Point, int] = {}
        """Points, in order, at which faults wait for what the worker asked last, and the push that each is about."""
        self.paused = False
        """Whether a fault is being done; `postponed` waits until the worker may proceed."""
        self.postponed: deque[Event] = deque()

    def pushes(self) -> Pushes:
        """Return how many updates the worker has made so far."""
        return Pushes(incarnation=self.incarnation, begun=self.step + self.computing, pushed=self.step)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to one thing at a time: a model leads to a gradient, a gradient to a push."""
        if isinstance(event, Observe):
            return [Journal(self.pushes())]
        self.now = now
        proceeds = isinstance(event, MessageReceived) and isinstance(event.message, Proceed)
        if proceeds:
            self.paused = False
        else:
            self.postponed.append(event)
        effects: list[Effect] = []
        while self.postponed and not self.paused:
            effects += self._next(self.postponed.popleft())
        if (proceeds or isinstance(event, AtPoint)) and not self.paused:
            effects.append(Release())
        return effects

    def _next(self, event: Event) -> list[Effect]:
        for point, step in self._points_of(event):
            fault = self.points.reached(point, step)
            if fault is not None:
                self.paused = True
                self.postponed.appendleft(event)
                reached = Reached(sender=self.plan.node, fault=fault, step=step)
                return [Journal(self.pushes()), Send("controller", reached)]
        try:
            return self._happen(event)
        except RemoteWireError as error:
            return [Journal(Dropped(socket="data", reason=f"from the server: {error}"))]

    def _points_of(self, event: Event) -> Iterable[tuple[Point, int]]:
        """Yield where in its protocol an event finds the worker; an answer shows that it is past all before."""
        if isinstance(event, Computed) and isinstance(event.result, GradientResult):
            return [("before-push", self.step)] if event.result.is_push else []
        if isinstance(event, AtPoint):
            return [(point, step) for point, step in self.awaited.items() if point == event.point]
        if isinstance(event, MessageReceived) and isinstance(event.message, Model) and self._is_answer(event.message):
            return [] if event.message.final else [*self.awaited.items(), ("after-pull", self.step)]
        return []

    def _happen(self, event: Event) -> list[Effect]:
        if isinstance(event, MessageReceived):
            return self._received(event)
        if isinstance(event, Computed) and isinstance(event.result, GradientResult):
            return self._push(event.result) if event.result.is_push else self._gone_on(event.result)
        if isinstance(event, Computed) and isinstance(event.result, ClientsResult):
            return [Journal(clients_record(objective_of_task(self.plan.task), event.result))]
        if isinstance(event, Woken):
            return self._tell_working() if self.alarm.rings(event.token) else []
        if isinstance(event, Connected):
            return [] if self.asking is None else self._join_anew("its connection had broken")
        if isinstance(event, AtPoint):
            return []
        raise unexpected(self, event)

    def _received(self, event: MessageReceived) -> list[Effect]:
        message = event.message
        if isinstance(message, Start):
            return self._server_is_back(message)
        if isinstance(message, Model):
            if not self._is_answer(message):
                return []
            if self.goes_on and not message.final:
                self.early = event
                return []
            return self._model(message, event.frames)
        if isinstance(message, Refuse):
            return self._refused(message)
        if isinstance(message, Finish):
            return self._measure_own(message.version, final=True)
        raise unexpected(self, event)

    def _server_is_back(self, start: Start) -> list[Effect]:
        if self.computing:
            return []
        if start.goes_on and self.asked and self.asking not in (None, ONLY_JOINED):
            return self._ask(self.asked, self.asking)
        return self._join_anew("the server was started anew")

    def _refused(self, refusal: Refuse) -> list[Effect]:
        if refusal.code in ("late", "not-finite"):
            self._forget()
            return []  # the model follows
        if refusal.code == "finished":
            self.asking = None
            return []
        if refusal.code == "not-joined":
            return [] if self.asking is None else self._join()
        reason = f"refused by {refusal.sender} ({refusal.code}): {refusal.reason}"
        return [Journal(Note(text=reason)), EndNode(reason)]

    def _join_anew(self, reason: str) -> list[Effect]:
        """Join again, also the first time, when the worker gives up nothing."""
        if self.asking is None:
            return self._join()
        given_up = Unanswered(incarnation=self.incarnation, joins=self.joins, step=self.asking, reason=reason)
        return [Journal(given_up), *self._join()]

    def _join(self) -> list[Effect]:
        self.joins += 1
        self._forget()
        join = Join(sender=self.plan.node, incarnation=self.incarnation, joins=self.joins)
        return self._ask(Send("server", join), ONLY_JOINED)

    def _forget(self) -> None:
        """Forget what the server, too, has of earlier pushes: it does so now, whatever became of the last one."""
        if self.memory is None:
            return
        of_work, of_compression = (
            None if forgets else each for each, forgets in zip(self.memory, self.forgets, strict=True)
        )
        self.memory = None if of_work is None and of_compression is None else (of_work, of_compression)

    def _ask(self, send: Send, asking: int) -> list[Effect]:
        """Send a request, and wait for the answer; only what a fault waits at is reported on the way."""
        self.asking, self.asked = asking, send
        points: list[tuple[Point, int]] = [("during-pull", self.step)]
        if asking != ONLY_JOINED:
            points = [("during-push", asking), ("after-push", asking), *points]
        self.awaited = {point: step for point, step in points if self.points.due(point, step) is not None}
        return [send, *(Await(point) for point in self.awaited)]

    def _is_answer(self, model: Model) -> bool:
        return self.asking is not None and model.joins == self.joins

    def _model(self, model: Model, frames: Sequence[Buffer]) -> list[Effect]:
        if model.final:
            self.asking = None
            return []
        if model.since is None:
            theta = decode_row(self.vectors, model.tensors, frames)
        elif self.theta is not None and model.since == self.base:
            theta = self._changed(self.theta, model, frames)
        else:
            has = "none" if self.theta is None else f"version {self.base}"
            text = f"sent what changed since version {model.since} of the model, and has {has}: joins anew"
            return [Journal(Note(text=text)), *self._join()]
        self.base, self.rounds = model.version, model.rounds
        if self.plan.pull == "changed-since" or self.downlink or self.ahead:
            self.theta = theta
        self.asking, self.asked, self.computing = None, None, True
        self.told_s = self.now
        work = self._work(theta, self.step, 0, self.batches - self.ahead)
        return [*self._set_alarm(), *self._measure_own(model.version), work]

    def _work(self, theta: NDArray[np.float32], step: int, after: int, count: int) -> Compute:
        """Return so many mini-batches of a step's, after others of it, as a job; the pause is divided like them."""
        first = step * self.batches + after
        batches = tuple(self.order.batch(first + k) for k in range(count))
        job = GradientJob(theta, batches, step, self.memory, self.draw_name, self.base, self.rounds, after)
        pause_s = chance.waiting_time(self.plan.waiting, self.plan.seed, self.draw_name, step)
        return Compute(job, pause_s * count / self.batches)

    def _gone_on(self, result: GradientResult) -> list[Effect]:
        """Remember what steps after a push have led to, and go on with the model that has come meanwhile, if any."""
        self.memory, self.goes_on = result.memory, False
        early, self.early = self.early, None
        return self._diverged(result, self.step) + (self._received(early) if early else [])

    def _measure_own(self, version: int, *, final: bool = False) -> list[Effect]:
        """Measure the worker's own model where that is due, for the version at which the interval ended.

        A later life begins with the first model again, and measures it only if it is its last.
        """
        plan = self.plan.by_client
        if plan is None or not self.due.is_due(version, final=final):
            return []
        if self.theta is None:
            return [Journal(Clients(version=version, clients=(), measured={}, final=final))]
        if self.memory is None and version > 0 and not final:
            return []
        own = self.theta if self.memory is None else self.memory[0]
        at = version if final or plan.every_updates is None else version - version % plan.every_updates
        return [Compute(ClientsJob(own, at, final, clients)) for clients in batched(plan.clients)]

    def _set_alarm(self) -> list[Wake]:
        """Ask to be woken when the server is to be told; before the work itself, which a shell does at once."""
        return [] if self.plan.working_s is None else self.alarm.set(self.told_s + self.plan.working_s)

    def _tell_working(self) -> list[Effect]:
        """Say that the worker works, where it has done so for long; if it waits, the next model sets the alarm."""
        assert self.plan.working_s is not None
        if not self.computing:
            return []
        if self.told_s + self.plan.working_s > self.now:  # this push was begun after the alarm was set
            return list(self._set_alarm())
        self.told_s = self.now
        return [Send("server", Working(sender=self.plan.node)), *self._set_alarm()]

    def _changed(self, theta: NDArray[np.float32], model: Model, frames: Sequence[Buffer]) -> NDArray[np.float32]:
        """Return a copy of `theta` with the entries that `model` brings; RemoteWireError if they are not such."""
        if self.downlink:
            present = self.copy(theta)
            try:
                change, _ = restored(self.downlink, model.tensors, frames)
            except OwnCodeError as error:
                raise error.at(f"step {self.step}") from error
            with np.errstate(all="ignore"):
                add(present, change)
            return present
        parts, present = split_frames(model.tensors, frames), self.copy(theta)
        shape = (theta.size // len(self.vectors),)
        for name, vector in zip(self.vectors, np.split(present, len(self.vectors)), strict=True):
            tensor, its_frames = parts.get(name, (model.tensors[0], frames))
            if (tensor.name, tensor.encoding, tensor.dtype, tensor.shape) != (name, "sparse", "float32", shape):
                raise RemoteWireError(
                    f"{tensor.name}: changes of {tensor.encoding} {tensor.dtype} {tensor.shape} to {shape} floats"
                )
            changes = decode_update(tensor, its_frames)
            vector[changes.indices] = changes.values
        return present

    def _push(self, result: GradientResult) -> list[Effect]:
        self.memory = result.memory
        push = Push(
            sender=self.plan.node,
            incarnation=self.incarnation,
            joins=self.joins,
            step=self.step,
            base=self.base,
            loss=result.loss,
            examples=self.plan.num_examples,
            steps=self.batches,
            tensors=result.tensors,
        )
        self.computing = False
        self.step += 1
        effects = [*self._diverged(result, push.step), *self._ask(Send("server", push, result.frames), push.step)]
        if self.ahead and self.theta is not None:
            self.goes_on = True
            effects.append(self._work(self.theta, push.step, self.batches - self.ahead, self.ahead))
        return effects

    def _diverged(self, result: GradientResult, step: int) -> list[Effect]:
        """Report what was not finite, the first time."""
        if result.not_finite is None or self.has_diverged:
            return []
        self.has_diverged = True
        what, tensor = result.not_finite
        return [Journal(Diverged(incarnation=self.incarnation, step=step, what=what, tensor=tensor))]


class BatchOrder:
    """Order of mini-batches: the node's data in a new seeded order every epoch, cut as algorithms/batches.py says."""

    def __init__(self, plan: WorkerPlan, draw_name: str = "") -> None:
        """`draw_name`: name of the draws (see `chance.draw_name`); empty: the node's in its first incarnation."""
        self.plan = plan
        self.cut = cut_of(plan)
        self.draw_name = draw_name or plan.node
        self.orders: dict[int, NDArray[np.int64]] = {}

    def batch(self, k: int) -> NDArray[np.int64]:
        """(b,) positions in the node's data."""
        pieces = self.cut.pieces(k)
        self.orders = {epoch: self._order(epoch) for epoch, _, _ in pieces}
        # copied by `concatenate`, else each batch of many would keep a whole order
        return np.concatenate([self.orders[epoch][start:end] for epoch, start, end in pieces])

    def _order(self, epoch: int) -> NDArray[np.int64]:
        known = self.orders.get(epoch)
        if known is not None:
            return known
        return chance.generator(self.plan.seed, "order", self.draw_name, epoch).permutation(self.plan.num_examples)
