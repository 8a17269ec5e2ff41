"""What the benchmarks are made on: the 211,690-parameter CNN, mini-batches of 10, gradients of real or drawn images."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.registry import PRESETS
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import ArrayForm, Method, Part, ServerPlan, Task, TrainingNode, WorkerPlan
from edgebed.learning.data_sets import registry as data
from edgebed.learning.data_sets.data_set import DataSet, from_arrays
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network

PARAMETERS = 211_690
BATCH_SIZE = 10


@cache
def images() -> DataSet:
    """MNIST where its files are at hand, else noise of the same shape (whose gradients cluster less)."""
    try:
        return data.load_data("mnist", seed=1, data_dir=Path(os.environ["EDGEBED_DATA_DIR"]))
    except (KeyError, ScenarioError):
        rng = np.random.default_rng(1)
        x = rng.integers(0, 256, (11_000, 1, 28, 28), np.uint8)
        y = rng.integers(0, 10, 11_000).astype(np.uint8)
        return from_arrays("noise", x[1_000:], y[1_000:], x[:1_000], y[:1_000], outputs=10)


@cache
def task() -> Task:
    """The CNN on 28x28 images."""
    inputs = (ArrayForm("", (1, 28, 28), "uint8"),)
    return Task(
        model="cnn",
        inputs=inputs,
        outputs=10,
        layout=models.layout("cnn", inputs, 10),
        batch_size=BATCH_SIZE,
        gradient_time_s=0.005,
    )


def method(name: str) -> Method:
    """A preset as the plan has it."""
    parts = {
        kind: Part(name=part["name"], settings={key: value for key, value in part.items() if key != "name"})
        for kind, part in PRESETS[name].items()
    }
    return Method(name=name, parts=parts)


def node_plan(role: str, name: str = "adacomp") -> TrainingNode:
    """A server or a worker of the benchmark."""
    common: dict[str, Any] = {"device_class": "edge", "seed": 1, "task": task(), "method": method(name)}
    if role == "server":
        return ServerPlan(node=role, **common)
    return WorkerPlan(node="edge-0", num_examples=300, **common)


@cache
def theta() -> NDArray[np.float32]:
    """(n,) the initial model."""
    return models.initial_parameters(task(), 1)


@cache
def network() -> Network:
    """The CNN bound to the training images."""
    return Network(task(), images().train)


@cache
def real_gradient() -> NDArray[np.float32]:
    """(n,) a gradient of the CNN after some steps, when it has begun to learn."""
    parameters = theta().copy()
    gradient = parameters
    for step in range(100):
        gradient, _ = network().gradient(parameters, np.arange(step * 10, step * 10 + 10), 0)
        parameters -= 0.05 * gradient
    return gradient
