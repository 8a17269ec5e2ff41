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

from edgebed.algorithms import registry
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.local_work.base import MODEL
from edgebed.core import chance
from edgebed.core.errors import OwnCodeError
from edgebed.core.measures.task import Sums, added
from edgebed.core.plan import WorkerPlan
from edgebed.roles.finiteness import CheckedGradient, NotFinite, first_sent
from edgebed.roles.layerwise.shard_work import ShardJob, ShardResult
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import Buffer, encode_pieces


class GradientJob(msgspec.Struct, frozen=True, gc=False):
    """One step's work at the model just pulled."""

    theta: NDArray[np.float32]
    """(v n,) weights of the model, and vectors beside it."""
    batches: tuple[NDArray[np.int64], ...]
    """(b,) positions in the node's own data, of each mini-batch."""
    step: int
    memory: Any = None
    """What local work and compression remember from the step before; None: neither does anything."""
    draw_name: str = ""
    """Name of the draws: the node's in this incarnation; empty: in its first."""
    version: int = 0
    """Version of the model."""


class GradientResult(msgspec.Struct, frozen=True, gc=False):
    """A worker's update, ready to be sent."""

    tensors: tuple[Tensor, ...]
    frames: Sequence[Buffer]
    loss: float
    memory: Any
    compute_s: float
    """Time of the gradient; 0 where time is virtual."""
    encode_s: float
    """Time of selection and encoding; 0 where time is virtual."""
    not_finite: NotFinite | None = None
    """What was not finite first; None: all was finite."""


class EvaluationJob(msgspec.Struct, frozen=True, gc=False):
    """Measure a model on all of the node's data."""

    theta: NDArray[np.float32]
    """(n,) weights of the model."""
    version: int
    final: bool


class ClientsJob(msgspec.Struct, frozen=True, gc=False):
    """Measure a model on the own examples of each of some clients."""

    theta: NDArray[np.float32]
    """(n,) weights of the model."""
    version: int
    final: bool
    clients: tuple[int, ...]


class ScoreJob(msgspec.Struct, frozen=True, gc=False):
    """Measure a model on a share of the node's data."""

    theta: NDArray[np.float32]
    """(n,) weights of the model."""
    share: tuple[int, int]
    """(k, n): the k-th of n shares."""


class Scores(NamedTuple):
    """What was measured of a model on some examples."""

    chunks: tuple[tuple[str, Sums], ...]
    """Sums over chunks of the examples, in order, each with the part of the data that it belongs to."""


class EvaluationResult(msgspec.Struct, frozen=True, gc=False):
    """What was measured of a model on all of a node's data."""

    version: int
    final: bool
    sums: dict[str, Sums]
    """By part of the data."""


class ClientsResult(msgspec.Struct, frozen=True, gc=False):
    """What was measured of a model client by client."""

    version: int
    final: bool
    clients: tuple[int, ...]
    sums: tuple[Sums, ...]
    """The sums of each client, in the order of their numbers."""
    tuned: tuple[Sums | None, ...]
    """After its own fine-tuning; None: it has none."""


Job = GradientJob | EvaluationJob | ClientsJob | ScoreJob | ShardJob
Result = GradientResult | EvaluationResult | ClientsResult | Scores | ShardResult
Steps = Generator[None, None, Result]
"""A job that stops after each step; at the end it returns its result."""


def shares(job: EvaluationJob, count: int) -> list[ScoreJob]:
    """Divide an evaluation into `count` parts, for as many processes."""
    return [ScoreJob(job.theta, (k, count)) for k in range(count)]


def evaluated(job: EvaluationJob, parts: Sequence[Scores]) -> EvaluationResult:
    """Put an evaluation together from its parts; however many there are, sums are added in the same order.

    OwnCodeError where a measure has no weight at all.
    """
    chunks: dict[str, list[Sums]] = {}
    for scores in parts:
        for which, sums in scores.chunks:
            chunks.setdefault(which, []).append(sums)
    found = {which: added(each) for which, each in chunks.items()}
    for which, sums in found.items():
        if empty := [name for name, (_, weight) in sums.items() if not weight]:
            raise OwnCodeError(
                f"no example of the {which} part has weight in {', '.join(empty)}, so there is no mean; `sums` of the "
                "objective says for each sum of how many examples it is"
            )
    return EvaluationResult(job.version, job.final, found)


class TrainableModel(Protocol):
    """A network bound to a node's data (learning/network.py)."""

    def gradient(
        self, theta: NDArray[np.float32], batch: NDArray[np.int64], key: int
    ) -> tuple[NDArray[np.float32], float]:
        """(n,) gradient of the mean loss over the batch, and that loss."""
        ...


class ScorableModel(Protocol):
    """A network bound to a node's data that is measured (learning/network.py)."""

    def score(self, theta: NDArray[np.float32], share: tuple[int, int]) -> tuple[tuple[str, Sums], ...]:
        """Sums over chunks of the k-th of n shares of the data, each with its part."""
        ...


class ClientModel(Protocol):
    """A network bound to the own examples of clients (learning/client_network.py)."""

    def measure(self, theta: NDArray[np.float32], client: int) -> Sums:
        """Sums over the client's examples."""
        ...

    def tuned(self, theta: NDArray[np.float32], client: int) -> NDArray[np.float32] | None:
        """(n,) weights after the client's own steps; None where it makes none."""
        ...


def by_client(job: ClientsJob, model: ClientModel) -> ClientsResult:
    """Measure a model client by client, of each before and after its own fine-tuning."""
    sums, tuned = list[Sums](), list[Sums | None]()
    for client in job.clients:
        sums.append(model.measure(job.theta, client))
        own = model.tuned(job.theta, client)
        tuned.append(None if own is None else model.measure(own, client))
    return ClientsResult(job.version, job.final, job.clients, tuple(sums), tuple(tuned))


class JobRunner(Protocol):
    """Work of a node: does its jobs."""

    def run(self, job: Any) -> Result:
        """Return the result of one job."""
        ...


class EvaluatorWork:
    """An evaluator's work: measures models."""

    def __init__(self, model: ScorableModel, clients: ClientModel | None = None) -> None:
        """`clients`: where models are measured client by client as well."""
        self.model = model
        self.clients = clients

    def run(self, job: Job) -> Result:
        """Return the result of `job`; the same whenever and wherever it is run."""
        if isinstance(job, ScoreJob):
            return Scores(self.model.score(job.theta, job.share))
        if isinstance(job, ClientsJob):
            assert self.clients is not None
            return by_client(job, self.clients)
        assert isinstance(job, EvaluationJob)
        return evaluated(job, [Scores(self.model.score(part.theta, part.share)) for part in shares(job, 1)])


class Work:
    """A worker's work: does its jobs with its parts of the method."""

    def __init__(
        self,
        plan: WorkerPlan,
        model: TrainableModel,
        clock: Callable[[], float] = lambda: 0.0,
        clients: ClientModel | None = None,
    ) -> None:
        """`clients`: where the worker measures a model of its own."""
        self.clients = clients
        self.plan = plan
        self.model = model
        self.clock = clock
        self.compression = registry.compression_of(plan.method, plan.task)
        self.local_work = registry.local_work_of(plan.method, plan.task)
        self.cut = registry.cut_of(plan)
        self.vectors = registry.vectors_of(plan.method)

    def run(self, job: Job) -> Result:
        """Return the result of `job`; the same whenever and wherever it is run."""
        return run_through(self.steps(job))

    def steps(self, job: Job) -> Steps:
        """Run `job` step by step."""
        if isinstance(job, ClientsJob):
            assert self.clients is not None
            return by_client(job, self.clients)
        assert isinstance(job, GradientJob)
        try:
            return (yield from self._steps(job))
        except OwnCodeError as error:
            raise error.at(f"step {job.step}") from error

    def _steps(self, job: GradientJob) -> Steps:
        draw_name = job.draw_name or self.plan.node
        key = chance.key(self.plan.seed, "work", draw_name, job.step)
        later = (chance.key(self.plan.seed, "mini-batch", f"{draw_name}/{job.step}", k) for k in itertools.count(1))
        keys = itertools.chain([key], later)
        started = self.clock()
        layout = self.plan.task.layout
        gradient = CheckedGradient(lambda theta, batch: self.model.gradient(theta, batch, next(keys)), layout)
        seen = job.version * len(job.batches) * self.cut.mean_size
        epoch = seen / (self.plan.num_workers * self.plan.num_examples)
        epochs = sum(map(len, job.batches)) / self.plan.num_examples
        at = StepContext(key, job.step, epoch, workers=self.plan.num_workers, epochs=epochs)
        own_key = chance.key(self.plan.seed, "local-work", draw_name, job.step)
        of_work, of_compression = job.memory or (None, None)
        with np.errstate(all="ignore"):  # training that diverges is a result, and said with the update
            given = dict(zip(self.vectors, np.split(job.theta, len(self.vectors)), strict=True))
            done = self.local_work.run(gradient, given, job.batches, of_work, at._replace(key=own_key))
        sent = [done.vectors[name] for name in self.vectors]
        vector, loss = sent[0] if len(sent) == 1 else np.concatenate(sent), done.measures["loss"]
        not_finite = gradient.found or first_sent(layout, done.vectors[MODEL])
        computed = self.clock()
        yield
        with np.errstate(all="ignore"):
            pieces, remembered = self.compression.compress(vector, of_compression, at._replace(loss=loss))
        memory = None if done.memory is None and remembered is None else (done.memory, remembered)
        yield
        tensors, frames = encode_pieces(pieces)
        return GradientResult(tensors, frames, loss, memory, computed - started, self.clock() - computed, not_finite)


def in_step(jobs: Sequence[Steps]) -> list[Result | Exception]:
    """Return the result of each job, or what it raised; all make their first step, then all their second."""
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
    """Run a job to its end; return its result, or raise what it raises."""
    (result,) = in_step([steps])
    if isinstance(result, Exception):
        raise result
    return result
