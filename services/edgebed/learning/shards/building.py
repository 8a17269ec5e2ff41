"""From a plan to the networks of a shard, or of the node that has all gradient modules.

The server says where the layers begin; what lies beside them begins as drawn here, by the plan's seed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.algorithms.registry import configure, rule_of
from edgebed.core import chance
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import ArrayForm, Method, Task, TensorLayout, TrainingNode
from edgebed.learning import torch_device, weights
from edgebed.learning.inputs import given_as, probe
from edgebed.learning.models import registry as models
from edgebed.learning.models.layers import joined, layers_of
from edgebed.learning.objectives.registry import supervised
from edgebed.learning.optimizers import Optimizer, optimizer
from edgebed.learning.shards.gradient_modules import GradientModule, InputModule, LocalHead, of_modules
from edgebed.learning.shards.module_networks import ModuleNetworks
from edgebed.learning.shards.network import ShardNetwork

PROBE = 2  # examples: one alone is refused by batch normalisation


def task_layers(task: Task) -> list[nn.Sequential]:
    """Return the layers of the task's model. ScenarioError where it is no row of layers."""
    return layers_of(task.model, models.build_for(task))


def shapes_of(task: Task, layers: Sequence[nn.Sequential]) -> list[tuple[int, ...]]:
    """Return the shape of one input, and of what each layer makes of it."""
    return [tuple(x.shape[1:]) for x in passed_through(task, layers)]


def passed_through(task: Task, layers: Sequence[nn.Sequential]) -> list[Tensor]:
    """Return some examples as the first layer is given them, and what each layer makes of them."""
    passed = [sole_input(task)]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for layer in layers:
            passed.append(layer.eval()(passed[-1]))
    return passed


def sole_input(task: Task) -> Tensor:
    """Return examples of zeros as the first layer is given them; ScenarioError where there are several arrays."""
    inputs = probe(task, PROBE).inputs
    if isinstance(inputs, dict):
        raise ScenarioError(f"a model in layers takes one array of inputs, and the data has {', '.join(inputs)}")
    return inputs


def check_beside(task: Task, method: Method) -> None:
    """Raise ScenarioError where what the method puts beside layers cannot take the task's inputs or targets."""
    rule, config = rule_of(method), configure("learning", method.parts["learning"])
    labels = [form for form in task.targets if form.shape == () and form.dtype in ("uint8", "int64")]
    problems = []
    if rule.has_module and getattr(config, "labels", False) and not (len(labels) == len(task.targets) == 1):
        problems.append(
            "its gradient modules see the label of each example, one whole number; the targets here are "
            f"{_told(task.targets)}. Say learning: {{ labels: false }}, or take back-propagation or decoupled-greedy"
        )
    if rule.synthetic_inputs and not all(given_as(form).is_floating_point for form in task.inputs):
        problems.append(
            f"its input modules are dense layers, which predict of floats; the inputs here are {_told(task.inputs)}. "
            "Take back-propagation or decoupled-greedy"
        )
    if problems:
        raise ScenarioError(*problems)


def local_head(task: Task, shape: tuple[int, ...]) -> LocalHead:
    """Build the head of a layer with such outputs; ScenarioError where it cannot make what the objective takes."""
    return LocalHead(shape, supervised(task).shape(task.outputs, task.targets) or (task.outputs,))


def optimizer_of(method: Method) -> Optimizer:
    """Return the method's optimizer of layers and heads."""
    return _optimizer(method, "optimizer")


def module_optimizer_of(method: Method) -> Optimizer:
    """Return the method's optimizer of the modules that predict gradients."""
    return _optimizer(method, "module_optimizer", "optimizer")


def input_optimizer_of(method: Method) -> Optimizer:
    """Return the method's optimizer of the modules that predict inputs."""
    return _optimizer(method, "input_optimizer", "module_optimizer", "optimizer")


def _optimizer(method: Method, *kinds: str) -> Optimizer:
    """Return the first of these that the method has."""
    part = next(method.parts[kind] for kind in kinds if kind in method.parts)
    return optimizer(part.name, **part.settings)


def shard_network(
    plan: TrainingNode, constants: NDArray[np.uint8] | None = None, device: str = torch_device.CPU
) -> ShardNetwork:
    """Build the networks of the shard that the plan describes; torch computes on `device`.

    Without its `constants`, as packed in weights.py, they are as the model's function makes them here.
    """
    shard, task, method = plan.shard, plan.task, plan.method
    assert shard is not None
    rule = rule_of(method)
    layers, shapes = _layers(plan)
    has_module = rule.has_module and bool(shard.above) and not shard.modules
    head = input_module = None
    if rule.source == "head" and shard.above:
        with _drawn(plan, "head", shard.end):
            head = local_head(task, shapes[shard.end])
    if rule.synthetic_inputs and shard.below:
        with _drawn(plan, "input-module", shard.first):
            hidden = getattr(configure("learning", method.parts["learning"]), "input_hidden", None)
            input_module = InputModule(shapes[0], shapes[shard.first], hidden=hidden)
    every = rule.stride(is_first=not shard.below)
    own = joined(layers[shard.first : shard.end])
    if constants is not None:
        weights.unpack(own, constants)
    return ShardNetwork(
        own,
        replace(optimizer_of(method), every=every, is_frozen=shard.frozen),
        objective=supervised(task),
        gradient_module=gradient_module(plan, shard.end, shapes[shard.end]) if has_module else None,
        head=head,
        input_module=input_module,
        module_optimizer=replace(module_optimizer_of(method), every=rule.send_every),
        input_optimizer=replace(input_optimizer_of(method), every=rule.send_every),
        key=lambda at: _dropout_key(plan, at),
        layout=_layout(plan, layers),
        device=device,
    )


def module_networks(plan: TrainingNode, device: str = torch_device.CPU) -> ModuleNetworks:
    """Build the gradient modules of the shards that the plan names; torch computes on `device`."""
    assert plan.shard is not None
    _, shapes = _layers(plan)
    modules = {owner: gradient_module(plan, end, shapes[end]) for owner, end in plan.shard.owners}
    return ModuleNetworks(modules, module_optimizer_of(plan.method), device)


def gradient_module(plan: TrainingNode, end: int, shape: tuple[int, ...]) -> GradientModule:
    """Build what predicts the gradient of these outputs, of the layers before the one of number `end`."""
    config = configure("learning", plan.method.parts["learning"])
    with _drawn(plan, "gradient-module", end):
        return GradientModule(
            shape,
            plan.task.outputs,
            **of_modules(vars(config)),
        )


def _told(forms: Sequence[ArrayForm]) -> str:
    """Arrays in words, e.g. `int64 of shape (64,)`."""
    return " and ".join(f"{form.dtype} of shape {form.shape}" for form in forms) or "none"


def _layout(plan: TrainingNode, layers: Sequence[nn.Sequential]) -> tuple[TensorLayout, ...]:
    """Return the part of the model's layout that a shard of these layers has."""
    assert plan.shard is not None
    first, end = (sum(len(weights.trained(layer)) for layer in layers[:k]) for k in (plan.shard.first, plan.shard.end))
    return plan.task.layout[first:end]


def _layers(plan: TrainingNode) -> tuple[list[nn.Sequential], list[tuple[int, ...]]]:
    """Return the layers of the whole model, and the shapes between them."""
    with _drawn(plan, "init", 0):
        layers = task_layers(plan.task)
    return layers, shapes_of(plan.task, layers)


@contextmanager
def _drawn(plan: TrainingNode, what: str, k: int) -> Iterator[None]:
    """Context in which torch's draws depend on the seed, `what` and `k` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(chance.key(plan.seed, what, "shards", k) >> 65)
        yield


def _dropout_key(plan: TrainingNode, at: BatchPart) -> int:
    assert plan.shard is not None
    return chance.key(plan.seed, f"dropout {plan.shard.first} {at.micro}", "shards", at.step)
