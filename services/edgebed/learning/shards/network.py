"""One shard of a model: consecutive layers, and the networks beside them, as the pieces that every method is made of.

    forward    inputs of a step ---> outputs, and the graph between them is stored
    losses     what the outputs' gradient is: of the loss at the model's end, of a head of its own, or as predicted
    backward   gradient of the outputs ---> gradient of the inputs, and the parameters' is added up
    step       the parameters follow what was added up
    teach      the gradient module learns what the gradient was

Steps may overlap: a graph belongs to the parameters that it was built with, whatever has been learnt since. A step may
be cut into micro-batches, each with a graph of its own; their gradients add up.

Shapes: B examples of a (micro-)batch; the inputs and outputs of a shard are (B, ...).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.core.plan import TensorLayout
from edgebed.learning import torch_device
from edgebed.learning.inputs import targets_of
from edgebed.learning.objectives.classification import Classification
from edgebed.learning.objectives.objective import Supervised
from edgebed.learning.optimizers import Optimizer
from edgebed.learning.shards.gradient_modules import GradientModule, InputModule, LocalHead
from edgebed.learning.shards.predictor import Predictor
from edgebed.learning.trained import Trained, gradients, join_states, split_state

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ForwardPass:
    """A forward pass whose gradient has yet to come."""

    inputs: Tensor
    """(B, ...) inputs, a leaf of the graph; whole numbers, such as tokens, have no gradient."""
    outputs: Tensor
    targets: Tensor | dict[str, Tensor]
    parameters: tuple[Tensor, ...]
    """Parameters that the pass was made with."""


class ShardNetwork:
    """The networks of one shard. Everything is deterministic: the order of the calls decides every bit."""

    def __init__(
        self,
        layers: nn.Sequential,
        optimizer: Optimizer,
        *,
        objective: Supervised = Classification(),  # noqa: B008 # it has no state
        gradient_module: GradientModule | None = None,
        head: LocalHead | None = None,
        input_module: InputModule | None = None,
        module_optimizer: Optimizer | None = None,
        input_optimizer: Optimizer | None = None,
        key: Callable[[BatchPart], int] = lambda at: at.step,
        layout: Sequence[TensorLayout] = (),
        device: str = torch_device.CPU,
    ) -> None:
        """`module_optimizer` is for the networks beside the layers, else `optimizer`; `key` seeds dropout.

        `input_optimizer` is for the input module alone, else it is as the others.

        `layout` has the names that the model gives the tensors of these layers. Torch computes on `device`.
        """
        torch.set_num_threads(1)
        beside = module_optimizer or optimizer
        self.layers = Trained(layers, optimizer, device)
        self.predictor = Predictor(gradient_module, beside, device) if gradient_module else None
        self.head = Trained(head, optimizer, device) if head else None
        self.input_module = Trained(input_module, input_optimizer or beside, device) if input_module else None
        self._beginning = [part.weights() for part in self.trained[1:]]
        """Initial weights of the networks beside the layers."""
        self.objective = objective
        self.device = device
        self.key = key
        self.layout = layout
        self.passes: dict[BatchPart, ForwardPass] = {}
        self._sums: list[Tensor] | None = None
        """Sums of the parameters' gradients since the last step."""

    @property
    def trained(self) -> tuple[Trained, ...]:
        """Return everything that learns, in a fixed order."""
        parts = (self.layers, self.predictor.trained if self.predictor else None, self.head, self.input_module)
        return tuple(part for part in parts if part is not None)

    def forward(self, at: BatchPart, inputs: NDArray[Any], targets: Mapping[str, NDArray[Any]]) -> Floats:
        """(B, ...) inputs and targets -> (B, ...) outputs; what `backward` needs is remembered."""
        x = torch_device.own_tensor(inputs, self.device)
        x.requires_grad_(x.is_floating_point())
        torch_device.seed(self.device, self.key(at))
        outputs = self.layers(x)
        given = targets_of(targets, self.device)
        self.passes[at] = ForwardPass(x, outputs, given, tuple(self.layers.parameters))
        if self.predictor:
            self.predictor.see(at, outputs.detach(), given)
        return torch_device.to_numpy(outputs)

    def final_gradient(self, at: BatchPart, share: float = 1.0) -> tuple[Floats, float]:
        """Return the gradient of the batch's loss by the (B, K) scores at the model's end, and the loss.

        The loss is the mean over the batch; `share` is the micro-batch's share of it.
        """
        passed = self.passes[at]
        scores = passed.outputs.detach().requires_grad_()
        loss = share * self.objective.loss_of(scores, passed.targets)
        (gradient,) = torch.autograd.grad(loss, scores)
        return torch_device.to_numpy(gradient), loss.item()

    def synthetic_gradient(self, at: BatchPart) -> Floats:
        """Return what the gradient module predicts for these outputs."""
        assert self.predictor is not None
        return self.predictor.predict(at)

    def teach(self, at: BatchPart, target: Floats) -> float:
        """Teach the gradient module what the (B, ...) gradient was; return its loss before."""
        assert self.predictor is not None
        return self.predictor.teach(at, target)

    def teach_both(self, at: BatchPart, target: Floats) -> tuple[Floats, float]:
        """Teach the gradient module as `teach` does; return also the (B, ...) gradient of that loss by the outputs."""
        assert self.predictor is not None
        return self.predictor.teach_both(at, target)

    def forget(self, at: BatchPart) -> None:
        """Forget outputs of which nobody will say what their gradient was."""
        if self.predictor:
            self.predictor.untaught.pop(at, None)

    def head_gradient(self, at: BatchPart) -> tuple[Floats, float]:
        """Return the gradient of the head's own loss by the outputs, and that loss.

        The head makes a step (Belilovsky et al.).
        """
        assert self.head is not None
        passed = self.passes[at]
        outputs = passed.outputs.detach().requires_grad_()
        loss = self.objective.loss_of(self.head(outputs), passed.targets)
        gradient, *gradients = torch.autograd.grad(loss, [outputs, *self.head.parameters])
        self.head.step(gradients)
        return torch_device.to_numpy(gradient), loss.item()

    def backward(self, at: BatchPart, gradient: Floats, *, keep: bool = False, learn: bool = True) -> Floats:
        """(B, ...) gradient of the outputs -> gradient of the inputs; with `learn` the parameters' is added up.

        That of whole numbers is 0. With `keep` there may be another gradient for the same graph; else it is let go of.
        """
        passed = self.passes[at]
        wanted = [passed.inputs, *(passed.parameters if learn else ())]
        delta = torch_device.own_tensor(gradient, self.device).view(passed.outputs.shape)
        found = gradients(passed.outputs, delta, wanted, keep=keep)
        if learn:
            sums = found[1:]
            if self._sums is not None:
                sums = tuple(before + now for before, now in zip(self._sums, sums, strict=True))
            self._sums = list(sums)
        if not keep:
            del self.passes[at]
        return torch_device.to_numpy(found[0])

    def step(self) -> None:
        """One step of the layers' parameters along what has been added up."""
        assert self._sums is not None
        self.layers.step(self._sums)
        self._sums = None

    def synthetic_inputs(self, x: Floats) -> Floats:
        """(B, ...) inputs of the model -> (B, ...) inputs of these layers, as predicted."""
        assert self.input_module is not None
        with torch.no_grad():
            return torch_device.to_numpy(self.input_module(torch.from_numpy(x).to(self.device)))

    def teach_inputs(self, x: Floats, target: Floats) -> float:
        """Make one step of the input module towards the (B, ...) inputs that came; return its loss before."""
        assert self.input_module is not None
        predicted = self.input_module(torch.from_numpy(x).to(self.device))
        wanted = torch.from_numpy(target).to(self.device).view(predicted.shape)
        loss = (predicted - wanted).square().sum() / len(x)
        self.input_module.step(torch.autograd.grad(loss, self.input_module.parameters))
        return loss.item()

    def weights(self) -> Floats:
        """Return fresh (w,) parameters and buffers of the layers, such as running means."""
        return self.layers.weights()

    def begin(self, weights: Floats) -> None:
        """Reset the layers to these (w,) weights, and the networks beside them to their beginning."""
        for part, beginning in zip(self.trained, [weights, *self._beginning], strict=True):
            part.begin(beginning)
        self.let_go()

    def state(self) -> Floats:
        """Return the fresh (s,) state of everything that learns, with how many steps each part has made."""
        return join_states(self.trained)

    def restore(self, state: Floats) -> None:
        """Restore (s,) `state`, with nothing on its way; ValueError where it is the state of another shard."""
        split_state(state, self.trained)
        self.let_go()

    def let_go(self) -> None:
        """Forget every step that is on its way."""
        self.passes.clear()
        if self.predictor:
            self.predictor.untaught.clear()
        self._sums = None
