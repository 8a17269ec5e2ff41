"""A task tried before anything starts: its model and its objective, with the first and the last batch of each part.

So an input outside the model's vocabulary, a loss that is no scalar, sums that cannot be added and measures without a
value are found where the user's code has them.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import Sums, added
from edgebed.core.plan import Task
from edgebed.learning import weights
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.inputs import batch_of
from edgebed.learning.models import registry as models
from edgebed.learning.models.token_models import TOKEN_MODELS
from edgebed.learning.objectives.objective import Batch, Objective, Supervised, called
from edgebed.learning.objectives.registry import objective_of_task


def try_task(task: Task, data: DataSet) -> None:
    """ScenarioError with the first thing that is wrong, and the user's line where code of the user's failed."""
    objective = objective_of_task(task)
    if task.model in TOKEN_MODELS:
        _check_tokens(task, data)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = models.build_for(task)
        for which, part in data.parts.items():
            size = min(task.batch_size, len(part))
            for told, first in (("first", 0), ("last", len(part) - size)):
                where = f"the {told} batch of the {which}ing examples" if which != "validation" else (
                    f"the {told} validation batch"
                )  # fmt: skip
                _try_batch(task, model, objective, batch_of(task, part, slice(first, first + size)), where)
        _try_sums(task, model, objective, data.test)


def _check_tokens(task: Task, data: DataSet) -> None:
    """Check that a built-in model of tokens knows all of them, also those that no batch that is tried has."""
    named = {"train": "training", "validation": "validation", "test": "test"}
    for which, part in data.parts.items():
        tokens = part.inputs[""]
        lowest, highest = int(tokens.min()), int(tokens.max())
        if lowest < 0 or highest >= task.outputs:
            raise ScenarioError(
                f"{task.model}: the {named[which]} inputs are tokens from {lowest} to {highest}; the model knows "
                f"{task.outputs}, numbered 0 to {task.outputs - 1}: those of the targets, or what a DataSet says by "
                "outputs="
            )


def _try_batch(task: Task, model: torch.nn.Module, objective: Objective, batch: Batch, where: str) -> None:
    name = task.objective.name
    try:
        with torch.no_grad():
            outputs = called(model.eval(), batch.inputs)
    except Exception as error:
        raise ScenarioError(f"{task.model}: it does not take {where}: {imports.reason(error)}") from error
    if isinstance(objective, Supervised):
        _check_shape(task, objective, outputs, batch.size)
    try:
        loss: Any = objective.loss(model.train(), batch)
    except Exception as error:
        raise ScenarioError(f"{task.model} with {name}: its loss of {where} fails: {imports.reason(error)}") from error
    if not isinstance(loss, torch.Tensor) or loss.ndim or not loss.is_floating_point():
        got = f"{loss.dtype} {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else f"a {type(loss).__name__}"
        raise ScenarioError(f"{name}: its loss is {got}; return a scalar, such as the mean over the batch")
    if not loss.requires_grad:
        raise ScenarioError(f"{name}: its loss does not depend on the model's parameters, so there is nothing to learn")
    parameters = [each.tensor for each in weights.trained(model) if each.is_parameter]
    try:
        torch.autograd.grad(loss, parameters, materialize_grads=True)
    except Exception as error:
        raise ScenarioError(f"{name}: its loss has no gradient: {imports.reason(error)}") from error


def _check_shape(task: Task, objective: Supervised, outputs: Any, size: int) -> None:
    expected = objective.shape(task.outputs, task.targets)
    if expected is None:
        return
    found = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else None
    if found == (size, *expected) or (expected == (1,) and found == (size,)):
        return
    got = f"a {type(outputs).__name__}" if found is None else f"shape {found}"
    raise ScenarioError(
        f"{task.model}: for {size} examples the model gives {got}, where {task.objective.name} needs "
        f"{(size, *expected)}"
    )


def _try_sums(task: Task, model: torch.nn.Module, objective: Objective, examples: Examples) -> None:
    """Check that sums can be added, and that the measures have values of them."""
    name, half = task.objective.name, min(len(examples), 2 * task.batch_size) // 2
    cuts = [slice(0, half), slice(half, 2 * half)] if half else [slice(0, 1)]
    with torch.inference_mode():
        model.eval()
        parts = [_sums_of(name, model, objective, batch_of(task, examples, cut)) for cut in cuts]
        whole = _sums_of(name, model, objective, batch_of(task, examples, slice(0, cuts[-1].stop)))
    total = added(parts)
    if total.keys() != whole.keys():
        others = ", ".join(total.keys() ^ whole.keys())
        raise ScenarioError(f"{name}: its sums have other names for other batches: {others}")
    _check_values(name, objective, whole)
    for key, (value, weight) in whole.items():
        of_parts, of_weights = total[key]
        if not (_close(of_parts, value) and _close(of_weights, weight)):
            raise ScenarioError(
                f"{name}: its sum '{key}' does not add up: two batches give {of_parts} with weight {of_weights:g}, and "
                f"one of all their examples {value} with weight {weight:g}; return the sum over the examples, not "
                "their mean, and as weight their number"
            )


def _check_values(name: str, objective: Objective, sums: Sums) -> None:
    """Check the values of the measures; those that are not finite are a matter of a model that has learnt nothing."""
    try:
        values: dict[str, Any] = objective.values(sums)
    except ScenarioError as error:
        raise ScenarioError(*(f"{name}: {problem}" for problem in error.problems)) from error
    except Exception as error:
        raise ScenarioError(f"{name}: its values cannot be made of its sums: {imports.reason(error)}") from error
    declared = [each.name for each in objective.measures]
    if sorted(values) != sorted(declared):
        raise ScenarioError(f"{name}: it gives values of {', '.join(values)}, and declares {', '.join(declared)}")
    for each in objective.measures:
        value = values[each.name]
        if not isinstance(value, float | int):
            raise ScenarioError(f"{name}: its {each.name} is a {type(value).__name__}, not a number")
        if each.is_share and not (0.0 <= value <= 1.0 or math.isnan(value)):
            raise ScenarioError(f"{name}: {each.name} is {value:g}, and is said to be a share, from 0 to 1")


def _sums_of(name: str, model: torch.nn.Module, objective: Objective, batch: Batch) -> Sums:
    try:
        sums = objective.sums(model, batch)
        return {key: (_plain(total), float(weight)) for key, (total, weight) in sums.items()}
    except Exception as error:
        raise ScenarioError(f"{name}: its sums cannot be computed: {imports.reason(error)}") from error


def _plain(total: Any) -> Any:
    return np.asarray(total.detach().double().cpu() if isinstance(total, torch.Tensor) else total, np.float64)


def _close(one: NDArray[np.float64] | float, other: NDArray[np.float64] | float) -> bool:
    """Whether two sums are the same but for rounding in single precision."""
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, rtol=1e-3, atol=1e-3, equal_nan=True))
