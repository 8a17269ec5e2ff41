"""The node that has all gradient modules, where they do not lie beside their layers.

    shard k ----- Activation ---> predict ---- Gradient ---> shard k        what it learns from, at once
    shard k + 1 -- Gradient ----> teach ------ Taken ------> shard k        there is room for another step

Tong et al. 2016, Layer-wise asynchronous training of neural networks with synthetic gradients, sections 5.2 and 6.6.
The server counts it among the shards: it is backed up and begins where all begin, without a part of the model.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.layerwise.rule import At
from edgebed.roles.events import Compute, Computed, Connected, Effect, Event, Journal, Received, Send, Stop, unexpected
from edgebed.roles.layer_shard import batch_of
from edgebed.roles.records import Dropped, Note
from edgebed.roles.shard_work import (
    HostTeachJob,
    HostTeachResult,
    PredictJob,
    PredictResult,
    Restored,
    RestoreJob,
    ShardJob,
    StateJob,
    StateResult,
)
from edgebed.roles.work import Result
from edgebed.scenario.plan import NodePlan
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Activation, Backup, Gradient, Join, Refuse, Resume, Start, Taken
from edgebed.wire.tensors import Buffer, decode_dense, encode_dense


class ModuleHost:
    """The heart of that node."""

    def __init__(self, plan: NodePlan, owners: Sequence[str], incarnation: int = 1) -> None:
        """`owners`: the shards whose modules are here, from the bottom; each is taught by the one above it."""
        assert plan.shard is not None
        self.plan = plan
        self.shard = plan.shard
        self.owners = tuple(owners)
        self.incarnation = incarnation
        self.joins = -1
        self.history: int | None = None
        """That of the last `Resume`; None: none has come."""
        self.early: list[Received] = []
        """What belongs to a history of which the server has yet to tell."""
        self.jobs: list[ShardJob] = []
        """In order of arrival; the first of them is being done."""
        self.seen: set[tuple[str, At]] = set()
        """Outputs whose gradient has yet to come, by their shard."""
        self.unseen: dict[tuple[str, At], NDArray[np.float32]] = {}
        """Gradients that have come before the outputs."""
        self.taught = dict.fromkeys(self.owners, 0)
        """Steps that each module has been taught."""
        self.kept = 0
        """The step of the last backup."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Jobs are done one after the other."""
        idle = not self.jobs
        try:
            effects = self._happen(event)
        except RemoteWireError as error:
            return [Journal(Dropped(socket="data", reason=str(error)))]
        begins = self.jobs and (idle or isinstance(event, Computed))
        return [*effects, Compute(self.jobs[0])] if begins else effects

    def _happen(self, event: Event) -> list[Effect]:
        if isinstance(event, Received):
            return self._received(event)
        if isinstance(event, Computed):
            return self._computed(event.result)
        if isinstance(event, Connected):
            return self._join()
        raise unexpected(self, event)

    def _received(self, event: Received) -> list[Effect]:
        message = event.message
        if isinstance(message, Start):
            return self._join()
        if isinstance(message, Resume):
            return self._resume(message, event.frames)
        if isinstance(message, Refuse):
            reason = f"refused by {message.sender} ({message.code}): {message.reason}"
            return [Journal(Note(text=reason)), Stop(reason)]
        if not isinstance(message, Activation | Gradient):
            raise unexpected(self, event)
        if self.history is None or message.history > self.history:
            self.early.append(event)
        elif message.history == self.history:
            self._put_aside(message, event.frames)
        return []

    def _put_aside(self, message: Activation | Gradient, frames: Sequence[Buffer]) -> None:
        at, array = At(message.step, message.micro), decode_dense(message.tensors[0], frames)
        if isinstance(message, Activation):
            owner = message.sender
            self.jobs.append(PredictJob(owner, at, batch_of(self.plan, at.step), array))
            self.seen.add((owner, at))
        else:
            owner = self._taught_by(message.sender)
            self.unseen[owner, at] = array
        if (owner, at) in self.seen and (owner, at) in self.unseen:
            self.seen.remove((owner, at))
            self.jobs.append(HostTeachJob(owner, at, self.unseen.pop((owner, at))))

    def _taught_by(self, sender: str) -> str:
        """Whose module learns from what that shard sends: the one's below."""
        for owner, above in zip(self.owners, (*self.owners[1:], self.shard.above), strict=True):
            if above == sender:
                return owner
        raise RemoteWireError(f"{sender!r} teaches no module here")

    def _join(self) -> list[Effect]:
        self.joins += 1
        return [Send("server", Join(sender=self.plan.node, incarnation=self.incarnation, joins=self.joins))]

    def _resume(self, resume: Resume, frames: Sequence[Buffer]) -> list[Effect]:
        self.history, self.kept = resume.history, resume.step
        self.taught = dict.fromkeys(self.owners, resume.step)
        self.seen.clear()
        self.unseen.clear()
        tensor = resume.tensors[0]
        given = decode_dense(tensor, frames)
        is_state = tensor.name == "state"
        self.jobs = [
            *self.jobs[:1],
            RestoreJob(resume.step, None if is_state else given, given if is_state else None),
        ]
        early, self.early = self.early, []
        return [effect for event in early for effect in self._received(event)]

    def _computed(self, result: Result) -> list[Effect]:
        self.jobs.pop(0)
        if any(isinstance(job, RestoreJob) for job in self.jobs) or isinstance(result, Restored):
            return []
        assert self.history is not None
        if isinstance(result, StateResult):
            tensor, frames = encode_dense("state", result.state)
            backup = Backup(sender=self.plan.node, history=self.history, step=result.step, tensors=(tensor,))
            return [Send("server", backup, frames)]
        assert isinstance(result, PredictResult | HostTeachResult)
        about = {"history": self.history, "step": result.at.step, "micro": result.at.micro}
        if isinstance(result, PredictResult):
            predicted = Gradient(sender=self.plan.node, tensors=(result.tensor,), **about)
            return [Send(result.owner, predicted, result.frames)]
        self.taught[result.owner] += 1
        self._back_up()
        return [Send(result.owner, Taken(sender=self.plan.node, **about))]

    def _back_up(self) -> None:
        """When all modules have been taught as many steps: shards wait for that where they are backed up."""
        (step, *others), shard = sorted(set(self.taught.values())), self.shard
        is_due = step == shard.steps or (shard.backup_every is not None and step % shard.backup_every == 0)
        if not others and is_due and step > self.kept:
            self.kept = step
            self.jobs.append(StateJob(step, whole=True))
