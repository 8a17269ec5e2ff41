"""Inputs of a model, made from examples.

Shapes: b examples.
"""

import torch
from torch import Tensor

from edgebed.core.plan import Task


def prepared(x: Tensor, task: Task) -> Tensor:
    """(b, *input_shape) float32: 8-bit pixels in [0, 1], floats as they are, then standardised if the task says so."""
    inputs = x / 255 if x.dtype == torch.uint8 else x
    return standardize(inputs) if task.inputs == "standardized" else inputs


def standardize(x: Tensor) -> Tensor:
    """Scale each of (b, ...) inputs to mean 0 and variance 1, by the rule of TensorFlow's `per_image_standardization`.

    The standard deviation is taken to be at least 1 / sqrt(number of values), so that a constant image gives zeros.
    """
    axes = tuple(range(1, x.ndim))
    deviation, mean = torch.std_mean(x, dim=axes, correction=0, keepdim=True)
    return (x - mean) / deviation.clamp_min(x[0].numel() ** -0.5)
