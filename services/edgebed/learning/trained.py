"""A torch module with its optimizer, whose parameters are replaced at each step and never written.

So a graph that was built some steps ago still belongs to the parameters that it was built with: gradients may come
late, and those of several steps may be on their way at once. It is the weight stashing of Narayanan et al. 2019,
PipeDream: generalized pipeline parallelism for DNN training, SOSP.

Shapes: n parameters, s entries of the whole state.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from edgebed.learning.optimizers import Optimizer


class Trained:
    """One module, one flat vector of parameters, one optimizer."""

    def __init__(self, module: nn.Module, optimizer: Optimizer) -> None:
        """The module's own parameters are where it begins; it is changed from here on through this object alone."""
        self.module = module.train()
        self.optimizer = optimizer
        self.steps = 0
        """How many steps it has made."""
        self._places = [
            (owner, name, tuple(parameter.shape))
            for owner in module.modules()
            for name, parameter in owner.named_parameters(recurse=False)
        ]
        self._buffers = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
        self.theta = torch.cat([torch.zeros(0), *(each.detach().reshape(-1) for each in self.parameters)])
        """(n,) parameters."""
        self._moments = optimizer.begin(self.theta)
        self._bind()

    def __call__(self, *inputs: Tensor) -> Tensor:
        """What the module makes of its inputs."""
        output = self.module(*inputs)
        assert isinstance(output, Tensor)
        return output

    @property
    def parameters(self) -> list[Tensor]:
        """The parameter tensors as they are now; after a step there are others."""
        return [getattr(owner, name) for owner, name, _ in self._places]

    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step of the optimizer; `gradients` are in the order of `parameters`."""
        gradient = torch.cat([torch.zeros(0), *(each.reshape(-1) for each in gradients)])
        self.theta, self._moments = self.optimizer.step(self.theta, gradient, self._moments, self.steps)
        self.steps += 1
        self._bind()

    def weights(self) -> NDArray[np.float32]:
        """Fresh (n + buffers,) parameters and, behind them, what the module keeps besides, such as running means."""
        return torch.cat([self.theta, *(buffer.reshape(-1) for buffer in self._buffers)]).numpy().copy()

    def state(self) -> NDArray[np.float32]:
        """Fresh (s,) weights and moments: with the number of steps, all there is."""
        return np.concatenate([self.weights(), *(moment.numpy() for moment in self._moments)])

    def restore(self, state: NDArray[np.float32], steps: int) -> None:
        """Go on from there; ValueError where it is the state of something else."""
        sizes = [len(self.theta), *(buffer.numel() for buffer in self._buffers), *map(len, self._moments)]
        if state.shape != (sum(sizes),):
            raise ValueError(f"a state of shape {state.shape}, not ({sum(sizes)},)")
        pieces = [torch.from_numpy(piece.copy()) for piece in np.split(state, np.cumsum(sizes)[:-1])]
        self.theta, buffers, moments = pieces[0], pieces[1 : 1 + len(self._buffers)], pieces[1 + len(self._buffers) :]
        for buffer, piece in zip(self._buffers, buffers, strict=True):
            buffer.copy_(piece.view(buffer.shape))
        self._moments, self.steps = tuple(moments), steps
        self._bind()

    def _bind(self) -> None:
        """Give the module fresh parameters, views into `theta`."""
        start = 0
        for owner, name, shape in self._places:
            size = int(np.prod(shape))
            setattr(owner, name, nn.Parameter(self.theta[start : start + size].view(shape)))
            start += size
