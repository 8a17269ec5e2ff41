"""A model bound to a node's own data: gradients for workers, sums of what is measured for the evaluator.

The model's parameters are views into one flat vector that this object owns. A caller's parameters are copied into it,
so the result does not depend on where they lie in memory: the same parameters, batch and key give the same bits in
every process (on one kind of CPU and one set of versions). Torch works with one thread, for the same reason and because
the processes of a run already fill the cores.

Shapes: n parameters, N examples, b examples in a batch.
"""

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
        examples: Examples,
        constants: NDArray[np.uint8] | None = None,
        device: str = torch_device.CPU,
    ) -> None:
        """N examples, held in their own types; `constants` as packed in weights.py.

        Without constants they are as the model's function makes them; torch computes on `device`. ScenarioError if the
        model cannot be built.
        """
        torch.set_num_threads(1)
        keep_freed_memory()
        self._task = task
        self._objective = objective_of_task(task)
        self._examples = examples
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

    def gradient(
        self, theta: NDArray[np.float32], batch: NDArray[np.int64], key: int = 0
    ) -> tuple[NDArray[np.float32], float]:
        """(n,) parameters, (b,) positions in the data -> fresh (n,) gradient of the batch's mean loss, and that loss.

        In buffers, such as running means, the gradient is by how much the old value was larger. `key` seeds
        what the model itself draws at random, such as dropout.
        """
        self._set(theta)
        if not self._model.training:
            self._model.train()
        torch_device.seed(self._device, key)
        loss = self._objective.loss(self._model, batch_of(self._task, self._examples, batch, self._device))
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
        """(n,) weights -> each measure of the task, over all N examples."""
        return self._objective.measured(added(self.score(theta)))

    def score(self, theta: NDArray[np.float32], share: tuple[int, int] = (0, 1)) -> tuple[Sums, ...]:
        """(n,) weights, (k, of) -> the objective's sums over each chunk of the k-th of so many shares.

        Whatever the shares, the chunks are the same: so are their sums.
        """
        self._set(theta)
        self._model.eval()
        k, of = share
        starts = range(0, len(self._examples), EVALUATION_CHUNK)
        starts = starts[k * len(starts) // of : (k + 1) * len(starts) // of]
        chunks: list[Sums] = []
        with torch.inference_mode():
            for start in starts:
                chunk = slice(start, start + EVALUATION_CHUNK)
                torch_device.seed(self._device, start)  # what an objective draws depends on the examples alone
                sums = self._objective.sums(self._model, batch_of(self._task, self._examples, chunk, self._device))
                chunks.append({name: (_plain(total), float(weight)) for name, (total, weight) in sums.items()})
        return tuple(chunks)

    def _set(self, theta: NDArray[np.float32]) -> None:
        assert theta.shape == self._given_numpy.shape, f"{theta.shape} parameters, not {self._given_numpy.shape}"
        np.copyto(self._given_numpy, theta)
        if self._given is not self._theta:
            self._theta.copy_(self._given)


def _plain(total: Any) -> Any:
    """A sum as a number, or as an array of double precision, without torch."""
    if isinstance(total, torch.Tensor) and total.ndim:
        return total.detach().double().cpu().numpy()
    return float(total)
