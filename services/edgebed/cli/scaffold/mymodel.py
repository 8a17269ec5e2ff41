"""The model: a function that returns a torch module. See docs/own-models-and-data.md."""

import math

from torch import nn


def net(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a model that maps a batch (B, *input_shape) to a score for each class, (B, outputs)."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), 32), nn.ReLU(), nn.Linear(32, outputs))
