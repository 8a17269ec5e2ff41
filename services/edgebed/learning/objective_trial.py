"""An objective of one's own, tried before anything starts: with the task's own model, on a mini-batch of its data."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from edgebed.core.errors import OwnCodeError, ScenarioError
from edgebed.core.imports import reason
from edgebed.core.plan import Task
from edgebed.learning import weights
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network


def try_objective(task: Task, x: NDArray[Any], y: NDArray[np.integer]) -> None:
    """ScenarioError where no gradient of the loss can be computed, or nothing be measured.

    (N, *input_shape) inputs and (N,) labels, of which a mini-batch is taken.
    """
    x, y = x[: task.batch_size], y[: task.batch_size]
    try:
        with torch.random.fork_rng(devices=[]):
            theta = weights.flat(models.build_for(task))
            network = Network(task, x, y)
            network.gradient(theta, np.arange(len(x)))
            network.score(theta)
    except OwnCodeError as error:
        raise ScenarioError(str(error)) from error
    except Exception as error:  # whatever torch raises of what the user's code made
        raise ScenarioError(f"{task.loss}: no gradient can be computed with {task.model}: {reason(error)}") from error
