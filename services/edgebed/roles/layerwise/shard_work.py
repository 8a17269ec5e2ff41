"""The work that a shard's heart asks for, done with its networks.

Unlike a worker's, it has a state, the parameters that it trains: its result depends on the jobs before. The heart has
one job done at a time, and asks for the state where it is to be stored.

Shapes: B examples of a (micro-)batch; s entries of a state, w of the weights.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.exchange.exchanged import Exchanged
from edgebed.algorithms.layerwise.rule import BatchPart, Rule, Source
from edgebed.roles.finiteness import Layout, NotFinite, all_finite, first_given
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import Buffer, encode_exchanged

Floats = NDArray[np.float32]
Given = NDArray[Any]
"""(B, ...) examples as the model is given them: floats, or whole numbers such as tokens."""
Targets = Mapping[str, NDArray[Any]]
"""(N, ...) targets of examples, by name."""
Exchange = Callable[[Floats], Exchanged]
"""Function that says what is sent of an array."""


def _of(targets: Targets, batch: NDArray[np.int64]) -> Targets:
    return {name: array[batch] for name, array in targets.items()}


def whole(array: Floats) -> Exchanged:
    """Return all of an array, as it is."""
    return Exchanged(array.shape, None, array.reshape(-1))


class ForwardJob(msgspec.Struct, frozen=True, gc=False):
    """Compute the outputs of a (micro-)batch."""

    at: BatchPart
    batch: NDArray[np.int64]
    """(B,) positions in the training data."""
    inputs: Floats | None
    """(B, ...) inputs that came from below; None: the examples themselves, or what is predicted to come."""
    forgets: BatchPart | None = None
    """Outputs that the gradient module need not remember any longer: the job's own take their place."""


class LearnJob(msgspec.Struct, frozen=True, gc=False):
    """Let the layers learn of a (micro-)batch; with the last part of a batch they make a step."""

    at: BatchPart
    source: Source
    share: float
    """Share of the batch."""
    is_last_part: bool
    keeps: bool
    """Whether the true gradient will follow, through the same graph."""
    gradient: Floats | None = None
    """(B, ...) gradient that came from above."""


class TeachJob(msgspec.Struct, frozen=True, gc=False):
    """Teach the gradient module what the gradient was; with `passes` the gradient also goes further down."""

    at: BatchPart
    gradient: Floats
    passes: bool


class TeachInputsJob(msgspec.Struct, frozen=True, gc=False):
    """Teach the input module what the inputs were."""

    at: BatchPart
    batch: NDArray[np.int64]
    """(B,) positions in the training data."""
    inputs: Floats
    """(B, ...) inputs that came."""


class PredictJob(msgspec.Struct, frozen=True, gc=False):
    """Have a gradient module predict the gradient of a shard's outputs."""

    owner: str
    """Shard that the module belongs to."""
    at: BatchPart
    batch: NDArray[np.int64]
    """(B,) positions in the training data."""
    outputs: Floats
    """(B, ...) outputs of the shard."""


class HostTeachJob(msgspec.Struct, frozen=True, gc=False):
    """Teach a shard's gradient module what the gradient was."""

    owner: str
    at: BatchPart
    gradient: Floats
    """(B, ...) gradient that came."""


class StateJob(msgspec.Struct, frozen=True, gc=False):
    """Copy the weights, or all that training depends on."""

    step: int
    whole: bool


class RestoreJob(msgspec.Struct, frozen=True, gc=False):
    """Restore a state, or the initial weights."""

    step: int
    weights: Floats | None
    """(w,) initial weights; None: as in `state`."""
    state: Floats | None


class ForwardResult(msgspec.Struct, frozen=True, gc=False):
    """(B, ...) outputs, ready to be sent."""

    at: BatchPart
    tensor: Tensor
    frames: Sequence[Buffer]
    compute_s: float
    not_finite: NotFinite | None = None
    """What was not finite first; None: all was finite."""


class LearnResult(msgspec.Struct, frozen=True, gc=False):
    """(B, ...) gradient of the inputs, ready to be sent."""

    at: BatchPart
    tensor: Tensor
    frames: Sequence[Buffer]
    loss: float | None
    """Loss of the batch, or this part's share of it; None where the shard saw none."""
    module_loss: float | None
    """Loss of the gradient module, where it was taught; None where it was not."""
    compute_s: float
    not_finite: NotFinite | None = None


class TeachResult(msgspec.Struct, frozen=True, gc=False):
    """Loss of the gradient module, and (B, ...) the true gradient of the inputs where it goes further down."""

    at: BatchPart
    module_loss: float
    passed: tuple[Tensor, Sequence[Buffer]] | None
    compute_s: float


class TeachInputsResult(msgspec.Struct, frozen=True, gc=False):
    """Loss of the input module."""

    at: BatchPart
    module_loss: float
    compute_s: float


class PredictResult(msgspec.Struct, frozen=True, gc=False):
    """(B, ...) gradient as predicted, ready to be sent."""

    owner: str
    at: BatchPart
    tensor: Tensor
    frames: Sequence[Buffer]
    compute_s: float


class HostTeachResult(msgspec.Struct, frozen=True, gc=False):
    """Loss of the gradient module."""

    owner: str
    at: BatchPart
    module_loss: float
    compute_s: float


class StateResult(msgspec.Struct, frozen=True, gc=False):
    """(w,) weights or (s,) state after a step."""

    step: int
    whole: bool
    state: Floats


class RestoreResult(msgspec.Struct, frozen=True, gc=False):
    """The networks are as they were after that step."""

    step: int


ShardJob = ForwardJob | LearnJob | TeachJob | TeachInputsJob | PredictJob | HostTeachJob | StateJob | RestoreJob
ShardResult = (
    ForwardResult
    | LearnResult
    | TeachResult
    | TeachInputsResult
    | PredictResult
    | HostTeachResult
    | StateResult
    | RestoreResult
)


class Networks(Protocol):
    """Networks of a shard, as this module uses them; see learning/shards/network.py."""

    # ruff: noqa: D102 - each is described there
    @property
    def input_module(self) -> object: ...
    @property
    def layout(self) -> Layout: ...
    def forward(self, at: BatchPart, inputs: Given, targets: Targets) -> Floats: ...
    def synthetic_inputs(self, x: Given) -> Floats: ...
    def teach_inputs(self, x: Given, target: Floats) -> float: ...
    def final_gradient(self, at: BatchPart, share: float = 1.0) -> tuple[Floats, float]: ...
    def synthetic_gradient(self, at: BatchPart) -> Floats: ...
    def head_gradient(self, at: BatchPart) -> tuple[Floats, float]: ...
    def backward(self, at: BatchPart, gradient: Floats, *, keep: bool = False, learn: bool = True) -> Floats: ...
    def teach(self, at: BatchPart, target: Floats) -> float: ...
    def teach_both(self, at: BatchPart, target: Floats) -> tuple[Floats, float]: ...
    def forget(self, at: BatchPart) -> None: ...
    def step(self) -> None: ...
    def weights(self) -> Floats: ...
    def state(self) -> Floats: ...
    def begin(self, weights: Floats) -> None: ...
    def restore(self, state: Floats) -> None: ...


class ShardWork:
    """A shard's work: does its jobs."""

    def __init__(
        self,
        networks: Networks,
        rule: Rule,
        x: NDArray[Any] | None,
        targets: Targets,
        clock: Callable[[], float] = lambda: 0.0,
        exchange: Exchange = whole,
        prepare: Callable[[NDArray[Any]], Given] = lambda x: x.astype(np.float32),
    ) -> None:
        """`x` are the training inputs, for the first shard and where inputs are predicted; `targets` are for all.

        `exchange` says what is sent of an array, and `prepare` what the model is given of examples.
        """
        self.exchange = exchange
        self.networks = networks
        self.rule = rule
        self.x = x
        self.prepare = prepare
        self.targets = targets
        self.clock = clock

    def run(self, job: ShardJob) -> ShardResult:
        """Return the result of `job`, which depends on the jobs before."""
        started_s = self.clock()
        if isinstance(job, ForwardJob):
            return self._forward(job, started_s)
        if isinstance(job, LearnJob):
            return self._learn(job, started_s)
        if isinstance(job, TeachJob):
            return self._teach(job, started_s)
        if isinstance(job, TeachInputsJob):
            loss = self.networks.teach_inputs(self._examples(job.batch), job.inputs)
            return TeachInputsResult(job.at, loss, self.clock() - started_s)
        if isinstance(job, StateJob):
            state = self.networks.state() if job.whole else self.networks.weights()
            return StateResult(job.step, job.whole, state)
        assert isinstance(job, RestoreJob)
        if job.state is not None:
            self.networks.restore(job.state)
        elif job.weights is not None:
            self.networks.begin(job.weights)
        return RestoreResult(job.step)

    def _forward(self, job: ForwardJob, started_s: float) -> ForwardResult:
        inputs = self._inputs(job.batch) if job.inputs is None else job.inputs
        if job.forgets is not None:
            self.networks.forget(job.forgets)
        outputs = self.networks.forward(job.at, inputs, _of(self.targets, job.batch))
        tensor, frames = encode_exchanged("h", self.exchange(outputs))
        not_finite = None if all_finite(outputs) else self._first_not_finite(inputs)
        return ForwardResult(job.at, tensor, frames, self.clock() - started_s, not_finite)

    def _first_not_finite(self, inputs: Given) -> NotFinite:
        """Return what made (B, ...) outputs that are not finite."""
        of_weights = first_given(self.networks.layout, self.networks.weights())
        return of_weights or NotFinite("outputs" if all_finite(inputs) else "inputs")

    def _inputs(self, batch: NDArray[np.int64]) -> Given:
        """Return the examples themselves; or, where a module does that, the inputs predicted to come from below."""
        examples = self._examples(batch)
        return self.networks.synthetic_inputs(examples) if self.networks.input_module else examples

    def _examples(self, batch: NDArray[np.int64]) -> Given:
        """(B,) positions -> (B, ...) as the model is given them."""
        assert self.x is not None, "this shard has no examples"
        return self.prepare(self.x[batch])

    def _learn(self, job: LearnJob, started_s: float) -> LearnResult:
        gradient, loss, module_loss = self._gradient(job)
        passed = self.networks.backward(job.at, gradient, keep=job.keeps)
        not_finite = None if loss is None or np.isfinite(loss) else NotFinite("loss")
        if not (all_finite(gradient) and all_finite(passed)):
            not_finite = not_finite or NotFinite("gradient")
        if job.is_last_part:
            self.networks.step()
        if not self.rule.sends(job.at.step):
            self.networks.forget(job.at)
        tensor, frames = encode_exchanged("gradient", self.exchange(passed))
        return LearnResult(job.at, tensor, frames, loss, module_loss, self.clock() - started_s, not_finite)

    def _gradient(self, job: LearnJob) -> tuple[Floats, float | None, float | None]:
        """Return the gradient of the outputs; a loss where there is one; the gradient module's where it is taught."""
        if job.source == "loss":
            return *self.networks.final_gradient(job.at, job.share), None
        if job.source == "head":
            return *self.networks.head_gradient(job.at), None
        if job.source == "module":
            return self.networks.synthetic_gradient(job.at), None, None
        assert job.gradient is not None
        if job.source == "gradient":
            return job.gradient, None, None
        if job.source == "direct":
            return self._direct(job.at, job.gradient)
        predicted = self.networks.synthetic_gradient(job.at)
        module_loss = self.networks.teach(job.at, job.gradient)
        blend = np.float32(self.rule.blend)
        return blend * job.gradient + (1 - blend) * predicted, None, module_loss

    def _direct(self, at: BatchPart, gradient: Floats) -> tuple[Floats, None, float]:
        """Add the gradient of the module's loss; a weight of 0 leaves every bit as it is."""
        if not self.rule.weight:
            return gradient, None, self.networks.teach(at, gradient)
        of_loss, module_loss = self.networks.teach_both(at, gradient)
        return gradient + np.float32(self.rule.weight) * of_loss.reshape(gradient.shape), None, module_loss

    def _teach(self, job: TeachJob, started_s: float) -> TeachResult:
        loss = self.networks.teach(job.at, job.gradient)
        passed = None
        if job.passes:
            down = self.networks.backward(job.at, job.gradient, learn=False)
            passed = encode_exchanged("gradient", self.exchange(down))
        return TeachResult(job.at, loss, passed, self.clock() - started_s)


class Modules(Protocol):
    """Modules of all shards, as this module uses them; see learning/shards/module_networks.py."""

    def predict(self, owner: str, at: BatchPart, outputs: Floats, targets: Targets) -> Floats: ...
    def teach(self, owner: str, at: BatchPart, target: Floats) -> float: ...
    def state(self) -> Floats: ...
    def begin(self, weights: Floats) -> None: ...
    def restore(self, state: Floats) -> None: ...


class ModuleWork:
    """Work of the node that has all gradient modules: does its jobs."""

    def __init__(
        self,
        networks: Modules,
        targets: Targets,
        clock: Callable[[], float] = lambda: 0.0,
        exchange: Exchange = whole,
    ) -> None:
        """`targets` are those of the training data; `exchange` says what is sent of an array."""
        self.exchange = exchange
        self.networks = networks
        self.targets = targets
        self.clock = clock

    def run(self, job: ShardJob) -> ShardResult:
        """Return the result of `job`, which depends on the jobs before."""
        started_s = self.clock()
        if isinstance(job, PredictJob):
            predicted = self.networks.predict(job.owner, job.at, job.outputs, _of(self.targets, job.batch))
            tensor, frames = encode_exchanged("gradient", self.exchange(predicted))
            return PredictResult(job.owner, job.at, tensor, frames, self.clock() - started_s)
        if isinstance(job, HostTeachJob):
            loss = self.networks.teach(job.owner, job.at, job.gradient)
            return HostTeachResult(job.owner, job.at, loss, self.clock() - started_s)
        if isinstance(job, StateJob):
            return StateResult(job.step, True, self.networks.state())
        assert isinstance(job, RestoreJob)
        if job.state is not None:
            self.networks.restore(job.state)
        elif job.weights is not None:
            self.networks.begin(job.weights)
        return RestoreResult(job.step)
