"""The data: a function that returns inputs and labels for training and for testing. See docs/own-models-and-data.md."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

TRAINING, TESTING = 2_000, 500
CENTRES = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])


def clouds(seed: int) -> tuple[NDArray[Any], ...]:
    """Return three clouds of points in the plane: train_x (N, 2) as float32, train_y (N,), test_x, test_y."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(CENTRES), TRAINING + TESTING)
    x = (CENTRES[y] + rng.normal(0.0, 0.9, (len(y), 2))).astype("float32")
    return x[:TRAINING], y[:TRAINING], x[TRAINING:], y[TRAINING:]
