"""The work that hearts ask for and shells carry out: pure functions of immutable inputs.

A worker's gradient, its selection and its encoding are one job, so that a pool of processes can do all of it ahead of
virtual time. Where the job is done makes no difference to its result.

Shapes: n parameters, b examples of a mini-batch.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed import chance
from edgebed.algorithms import registry
from edgebed.roles.shard_work import ShardJob, ShardResult
from edgebed.scenario.plan import NodePlan
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import Buffer, encode_update


class GradientJob(msgspec.Struct, frozen=True, gc=False):
    """One step's work at the model just pulled."""

    theta: NDArray[np.float32]
    """(n,)"""
    batch: NDArray[np.int64]
    """(b,) positions in the node's own data."""
    step: int
    memory: Any = None
    """What the compression remembers from the step before."""
    life: str = ""
    """Whose the draws are: the node's name in this life; empty: in its first."""


class GradientResult(msgspec.Struct, frozen=True, gc=False):
    """A worker's update, ready to be sent."""

    tensor: Tensor
    frames: Sequence[Buffer]
    loss: float
    memory: Any
    compute_s: float
    """The gradient's time; 0 where time is virtual."""
    encode_s: float
    """Selection's and encoding's time; 0 where time is virtual."""


class EvaluationJob(msgspec.Struct, frozen=True, gc=False):
    """Measure a model on all of the node's data."""

    theta: NDArray[np.float32]
    """(n,)"""
    version: int
    final: bool


class EvaluationResult(msgspec.Struct, frozen=True, gc=False):
    """Share of correct answers, and mean loss."""

    version: int
    final: bool
    accuracy: float
    loss: float


Job = GradientJob | EvaluationJob | ShardJob
Result = GradientResult | EvaluationResult | ShardResult


class Model(Protocol):
    """A network bound to a node's data (learning/network.py)."""

    def gradient(
        self, theta: NDArray[np.float32], batch: NDArray[np.int64], key: int
    ) -> tuple[NDArray[np.float32], float]:
        """(n,) gradient of the mean loss over the batch, and that loss."""
        ...


class Measured(Protocol):
    """Likewise, of a network that is measured."""

    def evaluate(self, theta: NDArray[np.float32]) -> tuple[float, float]:
        """Accuracy and mean loss over all the data."""
        ...


class Worked(Protocol):
    """Whoever does a node's jobs."""

    def run(self, job: Any) -> Result:
        """The result of one."""
        ...


class EvaluatorWork:
    """Measures models."""

    def __init__(self, model: Measured) -> None:
        self.model = model

    def run(self, job: Job) -> Result:
        """The result of `job`; the same whenever and wherever it is run."""
        assert isinstance(job, EvaluationJob)
        accuracy, loss = self.model.evaluate(job.theta)
        return EvaluationResult(job.version, job.final, accuracy, loss)


class Work:
    """Does a worker's jobs with its parts of the method."""

    def __init__(self, plan: NodePlan, model: Model, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.plan = plan
        self.model = model
        self.clock = clock
        sizes = [tensor.size for tensor in plan.task.layout]
        compression, local_work = plan.method.parts["compression"], plan.method.parts["local_work"]
        self.compression = registry.COMPRESSIONS[compression.name].Compression(
            registry.configure("compression", compression), sizes
        )
        self.local_work = registry.LOCAL_WORKS[local_work.name].LocalWork(registry.configure("local_work", local_work))

    def run(self, job: Job) -> Result:
        """The result of `job`; the same whenever and wherever it is run."""
        assert isinstance(job, GradientJob)
        key = chance.key(self.plan.seed, "work", job.life or self.plan.node, job.step)
        started = self.clock()
        gradient, loss = self.local_work.run(
            lambda theta, batch: self.model.gradient(theta, batch, key), job.theta, job.batch
        )
        computed = self.clock()
        update, memory = self.compression.compress(gradient, job.memory, key)
        tensor, frames = encode_update("update", update)
        return GradientResult(tensor, frames, loss, memory, computed - started, self.clock() - computed)
