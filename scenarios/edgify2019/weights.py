"""The effect on training if the weights are rounded to 8-bit integers, and not their gradients.

Every step of gradient descent is rounded, tensor by tensor, with 1/127 of the largest weight as the unit: a change
below half a unit is lost for good. No method that a scenario can name does so, since what is sent there is the
model's change; hence a short training by hand, of one worker.
"""

import functools

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compression import int8
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.registry import buffer_mask
from edgebed.core.plan import Task
from edgebed.learning.data_sets.registry import load_data
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network

MODEL = "resnet8"
SEEDS = (1, 2, 3, 4, 5, 6)
"""Seeds of the trainings: without any effect all of six agree once in 64 times, which is rare enough; of three, once in
eight."""
STEPS, BATCH, LEARNING_RATE = 200, 64, 0.1
LAST = 50
"""Steps that the loss is averaged over: at a constant learning rate, an accuracy changes by points in five steps."""


def loss(*, rounded: bool) -> float:
    """The training loss in the last steps, in the mean of the seeds; weights as floats, or rounded after each step."""
    return float(np.mean([loss_of(seed, rounded=rounded) for seed in SEEDS]))


def least_lost() -> float:
    """The least increase of the loss by rounded weights, over all seeds."""
    return min(loss_of(seed, rounded=True) - loss_of(seed, rounded=False) for seed in SEEDS)


@functools.cache
def loss_of(seed: int, *, rounded: bool) -> float:
    """The training loss with one seed, which decides first weights and images, the same for both kinds of weights."""
    data = load_data("cifar10", seed=seed)
    inputs, classes = data.train.input_forms, data.outputs or 0
    layout = models.layout(MODEL, inputs, classes)
    task = Task(
        model=MODEL, inputs=inputs, outputs=classes, layout=layout, batch_size=BATCH, scaling="standardized",
        gradient_time_s=0.0,
    )  # fmt: skip
    worker = Network(task, data.train)
    is_buffer = buffer_mask(task)
    assert is_buffer is not None  # batch normalisation keeps running means
    shapes = [tensor.shape for tensor in layout if not tensor.is_buffer]
    theta = models.initial_parameters(task, seed)
    batches = np.random.default_rng(seed).permutation(len(data.train))[: STEPS * BATCH].reshape(STEPS, BATCH)
    losses = []
    for batch in batches:
        gradient, before = worker.gradient(theta, batch)
        losses.append(before)
        theta -= np.where(is_buffer, gradient, np.float32(LEARNING_RATE) * gradient)
        if rounded:
            theta[~is_buffer] = as_int8(theta[~is_buffer], shapes)
    return float(np.mean(losses[-LAST:]))


def as_int8(parameters: NDArray[np.float32], shapes: list[tuple[int, ...]]) -> NDArray[np.float32]:
    """The (n,) parameters, rounded to what 8-bit integers and a scale for each tensor can represent."""
    compressor = int8.Compression(int8.Config(), shapes)
    pieces, _ = compressor.compress(parameters, None, StepContext(key=0))  # to the nearest: nothing is drawn
    values: NDArray[np.float32] = compressor.restore(pieces).values
    return values
