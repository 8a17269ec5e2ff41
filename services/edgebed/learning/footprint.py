"""What a model's gradient keeps in memory: its activations, as counted by torch itself on a small batch."""

import math

import torch
from torch import Tensor

from edgebed.learning import models
from edgebed.scenario.plan import Task

BATCH = 2  # one example alone is refused by some layers


def activation_bytes(task: Task) -> int:
    """Bytes that the task's model keeps for each example of a batch until its gradient is computed.

    Parameters do not count, and what two layers keep together counts once. ScenarioError if the model cannot be built.
    """
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.random.fork_rng(devices=[]):
        model = models.build(task.model, task.input_shape, task.classes, task.python_path)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = model(torch.zeros(BATCH, *task.input_shape))  # it holds what was kept, so no address comes twice
    for parameter in (*model.parameters(), *model.buffers()):
        kept.pop(parameter.untyped_storage().data_ptr(), None)
    del output
    return math.ceil(sum(kept.values()) / BATCH)
