"""What a model and an objective are given, made from examples.

Shapes: b examples.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgebed.core.plan import ArrayForm, Task
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.objectives.objective import Batch

DTYPES = {"uint8": torch.uint8, "int64": torch.int64, "bool": torch.bool, "float32": torch.float32}


def batch_of(task: Task, examples: Examples, which: NDArray[np.int64] | slice, device: str = "cpu") -> Batch:
    """Return some examples of a node as the task's model and objective are given them, on a torch device."""
    inputs = {name: _tensor(array, which, device) for name, array in examples.inputs.items()}
    targets = {name: labels(_tensor(array, which, device)) for name, array in examples.targets.items()}
    size = len(next(iter((inputs or targets).values())))
    return Batch(_alone({name: prepared(x, task) for name, x in inputs.items()}), _alone(targets), size)


def targets_of(arrays: Mapping[str, NDArray[Any]], device: str = "cpu") -> "Tensor | dict[str, Tensor]":
    """Return (b, ...) targets as an objective is given them."""
    return _alone({name: labels(torch.from_numpy(array).to(device)) for name, array in arrays.items()})


def probe(task: Task, size: int) -> Batch:
    """Return so many examples of zeros, as the task's model and objective are given them."""
    targets = {form.name: labels(_zeros(form, size)) for form in task.targets}
    return Batch(probe_inputs(task.inputs, size), _alone(targets), size)


def probe_inputs(forms: Sequence[ArrayForm], size: int) -> "Tensor | dict[str, Tensor]":
    """Return inputs of zeros, (b, ...) as a model is given them."""
    return _alone({form.name: _zeros(form, size).to(given_as(form)) for form in forms})


def drawn_inputs(forms: Sequence[ArrayForm], size: int) -> "Tensor | dict[str, Tensor]":
    """Return (b, ...) inputs drawn by torch from [0, 1), and zeros where whole numbers are asked for."""
    drawn = {
        form.name: torch.rand(size, *form.shape) if given_as(form).is_floating_point else _zeros(form, size)
        for form in forms
    }
    return _alone(drawn)


def given_as(form: ArrayForm) -> torch.dtype:
    """Return the type in which a model is given an array: 8-bit pixels are scaled to floats."""
    return torch.float32 if form.dtype == "uint8" else DTYPES[form.dtype]


def prepared(x: Tensor, task: Task) -> Tensor:
    """(b, ...): 8-bit pixels in [0, 1], all else as it is; floats are then standardised if the task says so."""
    inputs = x / 255 if x.dtype == torch.uint8 else x
    return standardize(inputs) if task.scaling == "standardized" and inputs.is_floating_point() else inputs


def labels(targets: Tensor) -> Tensor:
    """(b, ...): 8-bit whole numbers as 64-bit ones, which losses take; all else as it is."""
    return targets.to(torch.int64) if targets.dtype == torch.uint8 else targets


def standardize(x: Tensor) -> Tensor:
    """Scale each of (b, ...) inputs to mean 0 and variance 1, by the rule of TensorFlow's `per_image_standardization`.

    The standard deviation is taken to be at least 1 / sqrt(number of values), so that a constant image gives zeros.
    """
    axes = tuple(range(1, x.ndim))
    deviation, mean = torch.std_mean(x, dim=axes, correction=0, keepdim=True)
    return (x - mean) / deviation.clamp_min(x[0].numel() ** -0.5)


def _tensor(array: NDArray[Any], which: NDArray[np.int64] | slice, device: str) -> Tensor:
    # a copy even for a slice: the stored array may be read-only, which torch cannot express
    return torch.from_numpy(array[which].copy() if isinstance(which, slice) else array[which]).to(device)


def _zeros(form: ArrayForm, size: int) -> Tensor:
    return torch.zeros(size, *form.shape, dtype=DTYPES[form.dtype])


def _alone(tensors: dict[str, Tensor]) -> "Tensor | dict[str, Tensor]":
    return tensors[""] if list(tensors) == [""] else tensors
