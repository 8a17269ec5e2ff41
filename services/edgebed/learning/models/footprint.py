"""What a model computes with in memory, as counted by torch itself on a small batch: the same on every machine."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Task
from edgebed.learning import weights
from edgebed.learning.inputs import probe
from edgebed.learning.models import registry as models
from edgebed.learning.objectives.registry import objective_of_task

BATCH = 2  # one example alone is refused by some layers


def footprint_of(task: Task) -> tuple[int, int]:
    """Return the bytes that an example's activations hold, and the most that one operation reads and writes of it.

    The model's parameters and buffers do not count, and what two layers hold together counts once. Where the model does
    not run while it is watched, one operation is taken to have all that is held. ScenarioError if the model cannot be
    built, or raises while it trains.
    """
    with torch.random.fork_rng(devices=[]):
        model, objective = models.build_for(task), objective_of_task(task)
        own = {each.untyped_storage().data_ptr() for each in (*model.parameters(), *model.buffers())}
        kept, operations = _Kept(own), _Operations(own)
        with torch.autograd.graph.saved_tensors_hooks(kept.keep, lambda tensor: tensor):
            try:
                output = objective.loss(model, probe(task, BATCH))  # holds what was saved: no address comes twice
            except Exception as error:  # whatever the user's code raises is the user's to read
                reason = imports.reason(error)
                raise ScenarioError(f"{task.model}: the model cannot be trained: {reason}") from error
        del output
        try:
            with operations:
                objective.loss(model, probe(task, BATCH))
        except Exception:  # noqa: BLE001 - it did run unwatched
            operations.widest = kept.bytes
    return math.ceil(kept.bytes / BATCH), math.ceil(operations.widest / BATCH)


class _Kept:
    """Bytes that autograd saves, in storages of their own."""

    def __init__(self, own: set[int]) -> None:
        self.own = own
        self.found: dict[int, int] = {}

    def keep(self, tensor: Tensor) -> Tensor:
        """Note a tensor that is saved."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.own:
            self.found[storage.data_ptr()] = storage.nbytes()
        return tensor

    @property
    def bytes(self) -> int:
        """All that was saved."""
        return sum(self.found.values())


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most bytes that an operation reads and writes, without the model's own tensors."""

    def __init__(self, own: set[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.own = own
        self.widest = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch's compiler from wrapping this mode."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tensors = (each for each in tree_leaves((args, kwargs, result)) if isinstance(each, Tensor))
        sizes = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}
        self.widest = max(self.widest, sum(size for place, size in sizes.items() if place not in self.own))
        return result


def constant_bytes(task: Task) -> int:
    """Bytes of the model's tensors that training does not change. ScenarioError if the model cannot be built."""
    with torch.random.fork_rng(devices=[]):
        return weights.packed(models.build_for(task)).nbytes


def kept_bytes(module: nn.Module, x: Tensor) -> int:
    """Return the bytes that one layer holds of (B, ...) inputs until its gradient is there: inputs and activations."""
    kept = _Kept({tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers())})
    inputs = x.clone().requires_grad_(x.is_floating_point())
    kept.keep(inputs)
    with torch.autograd.graph.saved_tensors_hooks(kept.keep, lambda tensor: tensor):
        output = module(inputs)  # holds what was saved: no address comes twice
    del output
    return kept.bytes
