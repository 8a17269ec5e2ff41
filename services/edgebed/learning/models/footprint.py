"""What a model's gradient holds in memory: its activations, as counted by torch itself on a small batch."""

import math

import torch
from torch import Tensor, nn

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Task
from edgebed.learning import weights
from edgebed.learning.inputs import probe
from edgebed.learning.models import registry as models
from edgebed.learning.objectives.registry import objective_of_task

BATCH = 2  # one example alone is refused by some layers


def activation_bytes(task: Task) -> int:
    """Return the bytes that the task's model holds for each example of a batch until its gradient is computed.

    Parameters do not count, and what two layers hold together counts once. ScenarioError if the model cannot be
    built, or raises while it trains.
    """
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.random.fork_rng(devices=[]):
        model, objective = models.build_for(task), objective_of_task(task)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            try:
                output = objective.loss(model, probe(task, BATCH))  # holds what was saved: no address comes twice
            except Exception as error:  # whatever the user's code raises is the user's to read
                reason = imports.reason(error)
                raise ScenarioError(f"{task.model}: the model cannot be trained: {reason}") from error
    for parameter in (*model.parameters(), *model.buffers()):
        kept.pop(parameter.untyped_storage().data_ptr(), None)
    del output
    return math.ceil(sum(kept.values()) / BATCH)


def constant_bytes(task: Task) -> int:
    """Bytes of the model's tensors that training does not change. ScenarioError if the model cannot be built."""
    with torch.random.fork_rng(devices=[]):
        return weights.packed(models.build_for(task)).nbytes


def kept_bytes(module: nn.Module, x: Tensor) -> int:
    """Return the bytes that one layer holds of (B, ...) inputs until its gradient is there: inputs and activations."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers())}
    inputs = x.clone().requires_grad_()
    kept = {inputs.untyped_storage().data_ptr(): inputs.untyped_storage().nbytes()}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = module(inputs)  # holds what was saved: no address comes twice
    del output
    return sum(kept.values())
