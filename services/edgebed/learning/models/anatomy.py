"""A model's layers in numbers, counted and not measured: the same on every machine.

Operations are those of going forward, for one example; going back takes twice as many, one product for the gradient of
the inputs and one for that of the weights.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from edgebed.algorithms.registry import rule_of
from edgebed.core import imports
from edgebed.core.errors import ScenarioError, Uncountable
from edgebed.core.plan import Method, Task
from edgebed.learning import weights
from edgebed.learning.inputs import probe
from edgebed.learning.models import registry as models
from edgebed.learning.models.footprint import kept_bytes
from edgebed.learning.objectives.registry import objective_of_task
from edgebed.learning.shards.building import PROBE, local_head, passed_through, task_layers
from edgebed.learning.shards.gradient_modules import GradientModule, InputModule, of_modules


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """Numbers of L layers, in order; each field has L entries."""

    flops: tuple[int, ...]
    outputs: tuple[int, ...]
    """Values that a layer gives for one example."""
    weights: tuple[int, ...]
    """Weights of a layer that training changes: parameters and buffers."""
    constants: tuple[int, ...]
    """Bytes of a layer's constants, which training does not change."""
    kept: tuple[int, ...]
    """Bytes that a layer holds of one example until its gradient is there."""
    modules: tuple[int, ...]
    """Operations of a gradient module for a layer's outputs."""
    heads: tuple[int, ...]
    """Operations of a head of the layer's own; the last one has none."""
    inputs: tuple[int, ...]
    """Operations of a module that predicts a layer's inputs."""
    module_weights: tuple[int, ...]
    """Weights of those three networks, parameters and buffers."""
    head_weights: tuple[int, ...]
    input_weights: tuple[int, ...]


def anatomy_of(task: Task, method: Method) -> Anatomy:
    """Return the anatomy of the task's model, and of the networks that the method would put beside it.

    A network that the method does not have counts as nothing. ScenarioError where the model is no row of layers, where
    one of these does not take what the one before gives, or a network beside them does not.
    """
    rule, settings = rule_of(method), method.parts["learning"].settings
    with torch.random.fork_rng(devices=[]):
        layers = task_layers(task)
        try:
            passed = passed_through(task, layers)
        except Exception as error:
            raise ScenarioError(f"{task.model}: its layers do not fit together: {imports.reason(error)}") from error
        given, label = passed[:-1], torch.zeros(PROBE, dtype=torch.int64)
        shapes = [tuple(x.shape[1:]) for x in passed]
        modules = heads = inputs = [(0, 0)] * len(layers)
        if rule.has_module:
            made = [GradientModule(shape, task.outputs, **of_modules(settings)) for shape in shapes[1:]]
            modules = [_beside(module, h, label) for module, h in zip(made, passed[1:], strict=True)]
        if rule.source == "head":
            heads = [_beside(local_head(task, shape), h) for shape, h in zip(shapes[1:-1], passed[1:-1], strict=True)]
            heads.append((0, 0))  # the last layer has the model's own loss
        if rule.synthetic_inputs:
            hidden = settings.get("input_hidden")
            inputs = [_beside(InputModule(shapes[0], shape, hidden=hidden), passed[0]) for shape in shapes[:-1]]
        return Anatomy(
            flops=tuple(map(operations, layers, given)),
            outputs=tuple(prod(shape) for shape in shapes[1:]),
            weights=tuple(_weights(layer) for layer in layers),
            constants=tuple(weights.packed(layer).nbytes for layer in layers),
            kept=tuple(kept_bytes(layer.train(), x) // PROBE for layer, x in zip(layers, given, strict=True)),
            modules=tuple(count for count, _ in modules),
            heads=tuple(count for count, _ in heads),
            inputs=tuple(count for count, _ in inputs),
            module_weights=tuple(size for _, size in modules),
            head_weights=tuple(size for _, size in heads),
            input_weights=tuple(size for _, size in inputs),
        )


def gradient_operations(task: Task) -> int:
    """Count the operations of one gradient of a mini-batch: forward, and back to what is trained.

    They are those of the task's own model, whatever it is made of. Uncountable where it has no product that torch has a
    formula for, or where its code does not run while it is watched.
    """
    products, objective = _Products(), objective_of_task(task)
    with torch.random.fork_rng(devices=[]), _without_onednn():
        model = models.build_for(task).train()
        trained = [each.tensor for each in weights.trained(model) if each.is_parameter]
        try:
            with products, torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
                loss = objective.loss(model, probe(task, PROBE))
                torch.autograd.grad(loss, trained, materialize_grads=True)
        except Exception as error:
            raise Uncountable(imports.reason(error)) from error
    if not products.flops:
        raise Uncountable("it has no product or convolution that torch has a formula for")
    return products.flops * task.batch_size // PROBE


def _beside(module: nn.Module, *inputs: Tensor) -> tuple[int, int]:
    """Return operations for one example, and weights, of a network beside the layers."""
    return operations(module, *inputs), _weights(module)


def _weights(module: nn.Module) -> int:
    return sum(each.tensor.numel() for each in weights.trained(module))


def operations(module: nn.Module, *inputs: Tensor) -> int:
    """Count operations for each example of (B, ...) inputs; one a value if a module has no products."""
    # Torch has no formula for fused attention: it takes the plain one where gradients are asked for, of this backend.
    with _Products() as products, _without_onednn(), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        outputs = module.eval()(*inputs)
    return int(max(products.flops, outputs.numel()) // len(outputs))


@contextlib.contextmanager
def _without_onednn() -> Iterator[None]:
    """Keep torch from a library that hides the products of recurrent layers, and that not every machine has."""
    was = torch._C._get_mkldnn_enabled()  # noqa: SLF001 - torch.backends.mkldnn.flags warns of a setting besides
    torch._C._set_mkldnn_enabled(False)  # noqa: SLF001
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(was)  # noqa: SLF001


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations of matrix products, convolutions and attention by torch's own formulas.

    Torch's `FlopCounterMode` loads torch's compiler besides, which takes more than a second.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch's compiler from wrapping this mode, either."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if count := flop_registry.get(func.overloadpacket):
            self.flops += count(*args, **(kwargs or {}), out_val=result)
        return result
