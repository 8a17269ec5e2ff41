"""The node that has all gradient modules, where they do not lie beside their layers.

    shard k ----- Activation ---> predict ---- Gradient ---> shard k        what it learns from, at once
    shard k + 1 -- Gradient ----> teach ------ Taken ------> shard k        there is room for another step

Tong et al. 2016, Layer-wise asynchronous training of neural networks with synthetic gradients, sections 5.2 and 6.6.
The server counts it among the shards: it is backed up and begins where all begin, without a part of the model.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.core.plan import ModulesPlan
from edgebed.core.records import Taught
from edgebed.roles.events import Compute, Effect, Journal, Send
from edgebed.roles.layerwise.follower import Follower, Passing
from edgebed.roles.layerwise.layer_shard import batch_of
from edgebed.roles.layerwise.phases import Phase
from edgebed.roles.layerwise.shard_work import HostTeachJob, HostTeachResult, PredictJob, PredictResult, StateJob
from edgebed.roles.work import Result
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Activation, Gradient, Taken
from edgebed.wire.tensors import Buffer, decode_exchanged


class ModuleHost(Follower):
    """The heart of the node that has all gradient modules."""

    takes = (Activation, Gradient)

    def __init__(self, plan: ModulesPlan, incarnation: int = 1) -> None:
        """The shards whose modules are here are the plan's `owners`; each is taught by the one above it."""
        assert plan.shard is not None
        self.owners = tuple(owner for owner, _ in plan.shard.owners)
        super().__init__(plan, incarnation)

    def begin_at(self, step: int) -> None:
        """Begin with no module having seen anything that it has not been taught."""
        self.waiting: deque[PredictJob | HostTeachJob] = deque()
        """Jobs in order of arrival."""
        self.seen: set[tuple[str, BatchPart]] = set()
        """Outputs whose gradient has yet to come, by their shard."""
        self.unseen: dict[tuple[str, BatchPart], NDArray[np.float32]] = {}
        """Gradients that have come before the outputs."""
        self.taught = dict.fromkeys(self.owners, step)
        """Steps that each module has been taught."""
        self.backup_step = step
        """Step of the last backup."""

    def put_aside(self, message: Passing, frames: Sequence[Buffer]) -> list[Effect]:
        """Put a message aside as a job; a gradient waits for its outputs."""
        assert not isinstance(message, Taken)
        at, array = BatchPart(message.step, message.micro), decode_exchanged(message.tensors[0], frames)
        if isinstance(message, Activation):
            owner = message.sender
            self.waiting.append(PredictJob(owner, at, batch_of(self.plan, at.step), array))
            self.seen.add((owner, at))
        else:
            owner = self._taught_by(message.sender)
            self.unseen[owner, at] = array
        if (owner, at) in self.seen and (owner, at) in self.unseen:
            self.seen.remove((owner, at))
            self.waiting.append(HostTeachJob(owner, at, self.unseen.pop((owner, at))))
        return []

    def queues(self) -> dict[str, int]:
        """Return how many predictions and lessons wait for those before them."""
        return {"jobs": len(self.waiting)}

    def _taught_by(self, sender: str) -> str:
        """Return the shard whose module learns from what `sender` sends: the one below."""
        for owner, above in zip(self.owners, (*self.owners[1:], self.shard.above), strict=True):
            if above == sender:
                return owner
        raise RemoteWireError(f"{sender!r} teaches no module here")

    def go_on(self) -> list[Effect]:
        """Begin the job that came first."""
        if not self.waiting:
            return []
        self.jobs.append(self.waiting.popleft())
        return [Compute(self.jobs[0])]

    def waits_for(self) -> Phase | None:
        """Return what the idle node waits for, until each module has been taught all steps."""
        return None if all(step == self.shard.steps for step in self.taught.values()) else "inputs"

    def done(self, result: Result) -> list[Effect]:
        """Send the answer of a job to its shard."""
        assert isinstance(result, PredictResult | HostTeachResult)
        about = {"step": result.at.step, "micro": result.at.micro} | self.era
        if isinstance(result, PredictResult):
            predicted = Gradient(sender=self.plan.node, tensors=(result.tensor,), **about)
            return [Send(result.owner, predicted, result.frames)]
        self.taught[result.owner] += 1
        self._back_up()
        taught = Taught(shard=result.owner, step=result.at.step, loss=result.module_loss, history=self.era["history"])
        return [Journal(taught), Send(result.owner, Taken(sender=self.plan.node, **about))]

    def _back_up(self) -> None:
        """Back up when all modules have been taught as many steps: shards wait for that where they are backed up."""
        (step, *others), shard = sorted(set(self.taught.values())), self.shard
        is_due = step == shard.steps or (shard.backup_every is not None and step % shard.backup_every == 0)
        if not others and is_due and step > self.backup_step:
            self.backup_step = step
            self.jobs.append(StateJob(step, whole=True))
