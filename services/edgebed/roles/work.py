"""The work that hearts ask for and shells carry out: pure functions of immutable inputs.

A worker's gradient, its selection and its encoding are one job, so that a pool of processes can do all of it ahead of
virtual time. Where the job is done makes no difference to its result. It is done in steps, so that several jobs can go
through each step one after another: the code of a step, cold, takes twice as long.

Shapes: n parameters, b examples of a mini-batch.
"""

import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed import chance
from edgebed.algorithms import registry
from edgebed.algorithms.compressor import Moment
from edgebed.roles.finiteness import NotFinite, Watched, first_sent
from edgebed.roles.shard_work import ShardJob, ShardResult
from edgebed.scenario.plan import NodePlan
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import Buffer, encode_pieces


class GradientJob(msgspec.Struct, frozen=True, gc=False):
    """One step's work at the model just pulled."""

    theta: NDArray[np.float32]
    """(n,)"""
    batches: tuple[NDArray[np.int64], ...]
    """(b,) positions in the node's own data, of each mini-batch."""
    step: int
    memory: Any = None
    """What the compression remembers from the step before."""
    life: str = ""
    """Whose the draws are: the node's name in this life; empty: in its first."""
    version: int = 0
    """Of the model."""


class GradientResult(msgspec.Struct, frozen=True, gc=False):
    """A worker's update, ready to be sent."""

    tensors: tuple[Tensor, ...]
    frames: Sequence[Buffer]
    loss: float
    memory: Any
    compute_s: float
    """The gradient's time; 0 where time is virtual."""
    encode_s: float
    """Selection's and encoding's time; 0 where time is virtual."""
    not_finite: NotFinite | None = None
    """What was so first; None: all was finite."""


class EvaluationJob(msgspec.Struct, frozen=True, gc=False):
    """Measure a model on all of the node's data."""

    theta: NDArray[np.float32]
    """(n,)"""
    version: int
    final: bool


class ScoreJob(msgspec.Struct, frozen=True, gc=False):
    """Measure a model on a share of the node's data."""

    theta: NDArray[np.float32]
    """(n,)"""
    share: tuple[int, int]
    """(k, n): the k-th of n."""


class Scores(NamedTuple):
    """What a model got on some examples."""

    examples: int
    correct: int
    losses: tuple[float, ...]
    """The summed losses of chunks of the examples, in order."""


class EvaluationResult(msgspec.Struct, frozen=True, gc=False):
    """Share of correct answers, and mean loss."""

    version: int
    final: bool
    accuracy: float
    loss: float


Job = GradientJob | EvaluationJob | ScoreJob | ShardJob
Result = GradientResult | EvaluationResult | Scores | ShardResult
Steps = Generator[None, None, Result]
"""A job that stops after each step; at the end it returns its result."""


def shares(job: EvaluationJob, count: int) -> list[ScoreJob]:
    """An evaluation in so many parts, for as many processes."""
    return [ScoreJob(job.theta, (k, count)) for k in range(count)]


def evaluated(job: EvaluationJob, parts: Sequence[Scores]) -> EvaluationResult:
    """An evaluation put together from its parts; however many there are, losses are added in the same order."""
    examples, correct, loss = 0, 0, 0.0
    for part in parts:
        examples += part.examples
        correct += part.correct
        for chunk in part.losses:
            loss += chunk
    return EvaluationResult(job.version, job.final, correct / examples, loss / examples)


class Model(Protocol):
    """A network bound to a node's data (learning/network.py)."""

    def gradient(
        self, theta: NDArray[np.float32], batch: NDArray[np.int64], key: int
    ) -> tuple[NDArray[np.float32], float]:
        """(n,) gradient of the mean loss over the batch, and that loss."""
        ...


class Measured(Protocol):
    """Likewise, of a network that is measured."""

    def score(self, theta: NDArray[np.float32], share: tuple[int, int]) -> tuple[int, int, tuple[float, ...]]:
        """The `Scores` of the k-th of n shares of the data."""
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
        if isinstance(job, ScoreJob):
            return Scores(*self.model.score(job.theta, job.share))
        assert isinstance(job, EvaluationJob)
        return evaluated(job, [Scores(*self.model.score(part.theta, part.share)) for part in shares(job, 1)])


class Work:
    """Does a worker's jobs with its parts of the method."""

    def __init__(self, plan: NodePlan, model: Model, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.plan = plan
        self.model = model
        self.clock = clock
        self.compression = registry.compression_of(plan.method, plan.task)
        self.local_work = registry.local_work_of(plan.method, plan.task)

    def run(self, job: Job) -> Result:
        """The result of `job`; the same whenever and wherever it is run."""
        return run_through(self.steps(job))

    def steps(self, job: Job) -> Steps:
        """The same, step by step."""
        assert isinstance(job, GradientJob)
        life = job.life or self.plan.node
        key = chance.key(self.plan.seed, "work", life, job.step)
        later = (chance.key(self.plan.seed, "mini-batch", f"{life}/{job.step}", k) for k in itertools.count(1))
        keys = itertools.chain([key], later)
        started = self.clock()
        layout = self.plan.task.layout
        gradient = Watched(lambda theta, batch: self.model.gradient(theta, batch, next(keys)), layout)
        with np.errstate(all="ignore"):  # training that diverges is a result, and said with the update
            vector, loss = self.local_work.run(gradient, job.theta, job.batches)
        not_finite = gradient.found or first_sent(layout, vector)
        computed = self.clock()
        yield
        seen = job.version * len(job.batches) * self.plan.task.batch_size
        epoch = seen / (self.plan.num_workers * self.plan.num_examples)
        at = Moment(key, job.step, epoch, loss, self.plan.num_workers)
        with np.errstate(all="ignore"):
            pieces, memory = self.compression.compress(vector, job.memory, at)
        yield
        tensors, frames = encode_pieces(pieces)
        return GradientResult(tensors, frames, loss, memory, computed - started, self.clock() - computed, not_finite)


def in_step(jobs: Sequence[Steps]) -> list[Result | Exception]:
    """What comes of each job, or what it raised; all make their first step, then all their second."""
    results: dict[int, Result | Exception] = {}
    while len(results) < len(jobs):
        for k, steps in enumerate(jobs):
            try:
                if k not in results:
                    next(steps)
            except StopIteration as end:
                results[k] = end.value
            except Exception as error:  # noqa: BLE001 - it is raised again where the result is asked for
                results[k] = error
    return [results[k] for k in range(len(jobs))]


def run_through(steps: Steps) -> Result:
    """What comes of a job; raises what it raises."""
    (result,) = in_step([steps])
    if isinstance(result, Exception):
        raise result
    return result
