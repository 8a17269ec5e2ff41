"""A torch module with its optimizer, whose parameters are replaced at each step and never written.

So a graph that was built some steps ago still belongs to the parameters that it was built with: gradients may come
late, and those of several steps may be on their way at once. It is the weight stashing of Narayanan et al. 2019,
PipeDream: generalized pipeline parallelism for DNN training, SOSP.

Shapes: n parameters, w weights with buffers, s entries of the whole state.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from edgebed.learning import torch_device
from edgebed.learning.optimizers import Optimizer
from edgebed.learning.weights import Weight, trained


class Trained:
    """One module, one flat vector of parameters, one optimizer."""

    def __init__(self, module: nn.Module, optimizer: Optimizer, device: str = torch_device.CPU) -> None:
        """The module's own parameters are where it begins; it is changed from here on through this object alone.

        Torch computes on `device`.
        """
        self.module = module.to(device).train()
        self.device = device
        self.optimizer = optimizer
        self.steps = 0
        """Steps that the module has made."""
        self._places: list[tuple[list[tuple[nn.Module, str]], slice, tuple[int, ...]]] = []
        """For each parameter: the modules that have it, with its name there; its place in `theta`; its shape."""
        self._pieces: list[slice | Weight] = []
        """Pieces of `weights`: parts of `theta`, and buffers, such as running means."""
        self._nothing = torch.zeros(0, device=device)
        parameters: list[Tensor] = []
        size = 0
        for each in trained(module):
            if each.is_parameter:
                place = slice(size, size + each.tensor.numel())
                self._places.append((each.places, place, tuple(each.tensor.shape)))
                parameters.append(each.tensor.detach().reshape(-1))
                size = place.stop
            self._pieces.append(place if each.is_parameter else each)
        self.theta = torch.cat([self._nothing, *parameters])
        """(n,) parameters of the module."""
        self._moments = optimizer.begin(self.theta)
        self._bind()

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Return what the module makes of its inputs."""
        output = self.module(*inputs)
        assert isinstance(output, Tensor)
        return output

    @property
    def parameters(self) -> list[Tensor]:
        """Return the parameter tensors as they are now; after a step there are others."""
        return [getattr(*places[0]) for places, _, _ in self._places]

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Make one step of the optimizer; `gradients` are in the order of `parameters`."""
        gradient = torch.cat([self._nothing, *(each.reshape(-1) for each in gradients)])
        self.theta, self._moments = self.optimizer.step(self.theta, gradient, self._moments, self.steps)
        self.steps += 1
        self._bind()

    def weights(self) -> NDArray[np.float32]:
        """Return fresh (w,) parameters and buffers, in the order of the module's layers."""
        pieces = [self.theta[each] if isinstance(each, slice) else each.now.detach() for each in self._pieces]
        return torch_device.to_numpy(torch.cat([self._nothing, *(piece.reshape(-1) for piece in pieces)])).copy()

    def begin(self, weights: NDArray[np.float32]) -> None:
        """Begin again with these (w,) weights; ValueError where they are those of something else."""
        sizes = [each.stop - each.start if isinstance(each, slice) else each.tensor.numel() for each in self._pieces]
        if weights.shape != (sum(sizes),):
            raise ValueError(f"weights of shape {weights.shape}, not ({sum(sizes)},)")
        theta = self.theta.clone()
        for each, piece in zip(self._pieces, np.split(weights, np.cumsum(sizes))[:-1], strict=True):
            values = torch_device.own_tensor(piece, self.device)
            if isinstance(each, slice):
                theta[each] = values
            else:
                each.now.detach().copy_(values.view(each.tensor.shape))
        self.theta, self._moments, self.steps = theta, self.optimizer.begin(theta), 0
        self._bind()

    def state(self) -> NDArray[np.float32]:
        """Return fresh (s,) weights and moments: with the number of steps, all there is."""
        return np.concatenate([self.weights(), *(torch_device.to_numpy(moment) for moment in self._moments)])

    def restore(self, state: NDArray[np.float32], steps: int) -> None:
        """Restore (s,) `state` and the number of steps; ValueError where it is the state of something else."""
        moments = len(self._moments) * len(self.theta)
        self.begin(state[: len(state) - moments])
        rest = state[len(state) - moments :].reshape(len(self._moments), len(self.theta))
        self._moments = tuple(torch_device.own_tensor(moment, self.device) for moment in rest)
        self.steps = steps

    def _bind(self) -> None:
        """Give the module fresh parameters, views into `theta`."""
        for places, place, shape in self._places:
            parameter = nn.Parameter(self.theta[place].view(shape))
            for owner, name in places:
                setattr(owner, name, parameter)


def gradients(outputs: Tensor, delta: Tensor, wanted: Sequence[Tensor], *, keep: bool = False) -> tuple[Tensor, ...]:
    """Return the gradients, by what is `wanted`, of whatever has `delta` for its gradient by the `outputs`.

    A gradient is 0 by what the outputs do not follow smoothly, such as token numbers, and by whole numbers. With `keep`
    there may be another for the same graph. The product of outputs and `delta` has just that gradient, to the bit; were
    `delta` given to torch as it is, torch 2.13 would load a system for symbolic mathematics first, which takes about
    half a second of a core and 36 MB.
    """
    smooth = [each for each in wanted if each.requires_grad]
    if not outputs.requires_grad or not smooth:
        return tuple(torch.zeros_like(each, dtype=delta.dtype) for each in wanted)
    product = torch.dot(outputs.reshape(-1), delta.reshape(-1))
    found = iter(torch.autograd.grad(product, smooth, retain_graph=keep, materialize_grads=True))
    return tuple(next(found) if each.requires_grad else torch.zeros_like(each, dtype=delta.dtype) for each in wanted)


def join_states(parts: Sequence[Trained]) -> NDArray[np.float32]:
    """Join the (s,) states of several parts, with how many steps each has made."""
    steps = np.array([part.steps for part in parts], dtype=np.int32).view(np.float32)  # bits, not numbers
    return np.concatenate([steps, *(part.state() for part in parts)])


def split_state(state: NDArray[np.float32], parts: Sequence[Trained]) -> None:
    """Restore each part from its piece of (s,) `state`; ValueError where it is the state of something else."""
    sizes = [len(part.state()) for part in parts]
    if state.shape != (len(sizes) + sum(sizes),):
        raise ValueError(f"a state of shape {state.shape}, not ({len(sizes) + sum(sizes)},)")
    steps = state[: len(sizes)].copy().view(np.int32).tolist()
    pieces = np.split(state[len(sizes) :], np.cumsum(sizes)[:-1])
    for part, piece, made in zip(parts, pieces, steps, strict=True):
        part.restore(piece, made)
