"""A model bound to a node's own data: gradients for workers, sums of what is measured for the evaluator.

The model's parameters are views into one flat vector that this object owns. A caller's parameters are copied into it,
so the result does not depend on where they lie in memory: the same parameters, batch and key give the same bits in
every process (on one kind of CPU and one set of versions). Torch works with one thread, for the same reason and because
the processes of a run already fill the cores.

Shapes: n parameters, N examples, b examples in a batch.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from edgebed.core.measures.task import Sums, added
from edgebed.core.plan import Task
from edgebed.learning import torch_device, weights
from edgebed.learning.allocator import EVALUATION_CHUNK, keep_freed_memory
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.inputs import batch_of
from edgebed.learning.models import registry as models
from edgebed.learning.objectives.registry import objective_of_task


class Network:
    """The task's model and the examples of one node."""

    def __init__(
        self,
        task: Task,
        examples: Examples | Mapping[str, Examples],
        constants: NDArray[np.uint8] | None = None,
        device: str = torch_device.CPU,
    ) -> None:
        """N examples, held in their own types, or several parts by name; `constants` as packed in weights.py.

        Without constants they are as the model's function makes them; torch computes on `device`. ScenarioError if the
        model cannot be built.
        """
        torch.set_num_threads(1)
        keep_freed_memory()
        self._task = task
        self._objective = objective_of_task(task)
        self._parts = {"": examples} if isinstance(examples, Examples) else dict(examples)
        """What is measured; gradients are those of the first."""
        self._examples = next(iter(self._parts.values()))
        with torch.random.fork_rng(devices=[]):
            self._model = models.build_for(task)
        if constants is not None:
            weights.unpack(self._model, constants)
        self._device = device
        self._weights = weights.trained(self._model.to(device))
        self._theta = torch.empty(sum(each.tensor.numel() for each in self._weights), device=device)
        start = 0
        for each in self._weights:
            end = start + each.tensor.numel()
            each.tensor.data = self._theta[start:end].view(each.tensor.shape)
            start = end
        self._given = self._theta.cpu()
        """(n,) parameters that a caller gave, where torch takes them from; on the CPU they are those of the model."""
        self._given_numpy = self._given.numpy()

    @property
    def batch_size(self) -> int:
        """Examples in a mini-batch of the task."""
        return self._task.batch_size

    @cached_property
    def is_buffer(self) -> NDArray[np.bool_]:
        """(n,) where the vector holds buffers, which are no parameters."""
        sizes = [each.tensor.numel() for each in self._weights]
        return np.repeat([not each.is_parameter for each in self._weights], sizes)

    def gradient(
        self, theta: NDArray[np.float32], batch: NDArray[np.int64], key: int = 0, examples: Examples | None = None
    ) -> tuple[NDArray[np.float32], float]:
        """(n,) parameters, (b,) positions in the data -> fresh (n,) gradient of the batch's mean loss, and that loss.

        In buffers, such as running means, the gradient is by how much the old value was larger. `key` seeds
        what the model itself draws at random, such as dropout. The data is the node's own, or other `examples`.
        """
        self._set(theta)
        if not self._model.training:
            self._model.train()
        torch_device.seed(self._device, key)
        given = self._examples if examples is None else examples
        loss = self._objective.loss(self._model, batch_of(self._task, given, batch, self._device))
        parameters = [each.tensor for each in self._weights if each.is_parameter]
        gradients = iter(torch.autograd.grad(loss, parameters, materialize_grads=True))
        pieces, start = [], 0
        for each in self._weights:
            end = start + each.tensor.numel()
            if each.is_parameter:
                pieces.append(next(gradients).reshape(-1))
            else:
                each.put_back()
                change = theta[start:end] - torch_device.to_numpy(self._theta[start:end])
                pieces.append(torch.from_numpy(change).to(self._device))
            start = end
        return torch_device.to_numpy(torch.cat(pieces)), loss.item()

    def evaluate(self, theta: NDArray[np.float32]) -> dict[str, float]:
        """(n,) weights -> each measure of the task, over all examples."""
        return self._objective.measured(added([sums for _, sums in self.score(theta)]))

    def score(self, theta: NDArray[np.float32], share: tuple[int, int] = (0, 1)) -> tuple[tuple[str, Sums], ...]:
        """(n,) weights, (k, of) -> the objective's sums over each chunk of the k-th of so many shares, with its part.

        Whatever the shares, the chunks are the same: so are their sums.
        """
        k, of = share
        starts = [
            (name, start) for name, part in self._parts.items() for start in range(0, len(part), EVALUATION_CHUNK)
        ]
        self._set(theta)
        return tuple(
            (name, self._sums(self._parts[name], slice(start, start + EVALUATION_CHUNK), start))
            for name, start in starts[k * len(starts) // of : (k + 1) * len(starts) // of]
        )

    def sums(self, theta: NDArray[np.float32], examples: Examples, which: NDArray[np.int64]) -> Sums:
        """(n,) weights -> the objective's sums over some of these examples."""
        self._set(theta)
        return self._sums(examples, which, int(which[0]))

    def _sums(self, examples: Examples, which: NDArray[np.int64] | slice, key: int) -> Sums:
        if self._model.training:
            self._model.eval()
        with torch.inference_mode():
            torch_device.seed(self._device, key)  # what an objective draws depends on the examples alone
            sums = self._objective.sums(self._model, batch_of(self._task, examples, which, self._device))
            return {name: (plain_sum(total), float(weight)) for name, (total, weight) in sums.items()}

    def _set(self, theta: NDArray[np.float32]) -> None:
        assert theta.shape == self._given_numpy.shape, f"{theta.shape} parameters, not {self._given_numpy.shape}"
        np.copyto(self._given_numpy, theta)
        if self._given is not self._theta:
            self._theta.copy_(self._given)


def plain_sum(total: Any) -> Any:
    """Return a sum without torch: a number, or an array in double precision; TypeError or ValueError if it is none."""
    if isinstance(total, torch.Tensor):
        total = total.detach().double().cpu().numpy()
    return np.asarray(total, np.float64) if np.ndim(total) else float(total)
