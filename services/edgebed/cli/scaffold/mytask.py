"""The task: data, a model, what is trained and what is measured of it. See docs/own-task.md."""

from typing import Any

import numpy as np
from torch import Tensor, nn

from edgebed import Supervised, TaskMeasure


def data(seed: int) -> tuple[Any, ...]:
    """Return points of the plane, (N, 2), and the height of a saddle there, (N,): for training, then for testing."""
    x = np.random.default_rng(seed).uniform(-2.0, 2.0, (2_500, 2))
    y = np.tanh(x).prod(axis=1)
    return x[:2_000], y[:2_000], x[2_000:], y[2_000:]


def net(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a model that maps a batch (B, *input_shape) to (B, outputs) numbers, here one."""
    return nn.Sequential(nn.Linear(input_shape[0], 32), nn.Tanh(), nn.Linear(32, outputs))


class Heights(Supervised):
    """Heights are predicted; one that is off by less than 0.1 is a hit."""

    measures = (TaskMeasure("hits", meaning="Share that is off by less than 0.1.", unit="share", better="more"),)

    def loss_of(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return what training minimises, a mean over the batch: of (B, 1) outputs and (B,) targets."""
        return (outputs[:, 0] - targets).square().mean()

    def sums_of(self, outputs: Tensor, targets: Tensor) -> dict[str, Any]:
        """Return a sum over the batch for each measure, and of how many examples."""
        hits = (outputs[:, 0] - targets).abs() < 0.1
        return {"hits": (hits.sum(), len(targets))}
