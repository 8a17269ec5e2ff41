"""What becomes of training if it is the weights that are rounded to 8-bit integers, and not their gradients.

Every step of gradient descent is rounded, tensor by tensor, with 1/127 of the largest weight as the unit: a change
below half a unit is lost for good. No method that a scenario can name keeps its model so, since what is sent there is
how a model changes; hence a short training by hand, of one worker.
"""

import functools

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compression import int8
from edgebed.algorithms.compressor import Moment
from edgebed.algorithms.registry import kept_of
from edgebed.learning import models
from edgebed.learning.data import load_data
from edgebed.learning.network import Network
from edgebed.scenario.plan import Task

MODEL = "resnet8"
SEED = 1
STEPS, BATCH, LEARNING_RATE = 400, 64, 0.1
TESTED = 2000
"""Images that the accuracy is measured on."""


@functools.cache
def accuracy(*, rounded: bool) -> float:
    """On test images after `STEPS`, in per cent; with the weights as floats, or rounded after each step."""
    data = load_data("cifar10", seed=SEED)
    layout = models.layout(MODEL, data.input_shape, data.classes)
    task = Task(
        model=MODEL, input_shape=data.input_shape, classes=data.classes, layout=layout, batch_size=BATCH,
        inputs="standardized", gradient_time_s=0.0,
    )  # fmt: skip
    worker = Network(task, data.train_x[: STEPS * BATCH], data.train_y[: STEPS * BATCH])
    kept = kept_of(task)
    assert kept is not None  # batch normalisation keeps running means
    shapes = [tensor.shape for tensor in layout if not tensor.kept]
    theta = models.initial_parameters(task, SEED)
    for step in range(STEPS):
        gradient, _ = worker.gradient(theta, np.arange(BATCH * step, BATCH * (step + 1)))
        theta -= np.where(kept, gradient, np.float32(LEARNING_RATE) * gradient)
        if rounded:
            theta[~kept] = as_int8(theta[~kept], shapes)
    return 100 * Network(task, data.test_x[:TESTED], data.test_y[:TESTED]).evaluate(theta)[0]


def as_int8(parameters: NDArray[np.float32], shapes: list[tuple[int, ...]]) -> NDArray[np.float32]:
    """(n,) parameters -> the nearest that 8-bit integers and a scale for each tensor stand for."""
    compressor = int8.Compression(int8.Config(), shapes)
    pieces, _ = compressor.compress(parameters, None, Moment(key=SEED))
    values: NDArray[np.float32] = compressor.restore(pieces).values
    return values
