"""Whether a model looks its inputs up in an embedding: such whole numbers must not be scaled as pixels are.

8-bit inputs become [0, 1] on their way to the model (learning/inputs.py), so that all tokens but 255 would be the same.
An embedding layer of what does not depend on the inputs, such as positions, is none that counts.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import ArrayForm, shape_of
from edgebed.learning.inputs import probe_inputs
from edgebed.learning.models.registry import build
from edgebed.learning.objectives.objective import called


def refuse_scaled_tokens(
    data: str,
    name: str,
    inputs: tuple[ArrayForm, ...],
    outputs: int,
    python_path: Sequence[str] = (),
    sizes: Sequence[tuple[str, int]] = (),
) -> None:
    """Raise ScenarioError where the model has an embedding layer for its inputs; those of `data` are 8-bit."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(0)
        model = build(name, shape_of(inputs), outputs, python_path, sizes).eval()
        try:
            first, second = (_lookups(model, inputs, value) for value in (0, 1))
        except Exception as error:
            reason = imports.reason(error)
            raise ScenarioError(f"{name}: the model does not take inputs of 0 and of 1: {reason}") from error
    for layer, indices in first.items():
        if len(indices) != len(second[layer]) or not all(map(torch.equal, indices, second[layer])):
            raise ScenarioError(
                f"{data} gives uint8, which is for pixels and scaled to [0, 1], but {name} looks its inputs up in the "
                f"embedding '{layer}', where all below 255 would be 0; give these whole numbers as int64."
            )


def _lookups(model: nn.Module, forms: tuple[ArrayForm, ...], value: int) -> dict[str, list[Tensor]]:
    """Return what each embedding layer is asked for, by its name, while the model computes of inputs of one value."""
    asked: dict[str, list[Tensor]] = {}

    def noting(layer: str) -> Any:
        def note(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            asked[layer].append([*arguments, *named.values()][0])

        return note

    layers = [(key, each) for key, each in model.named_modules() if isinstance(each, nn.Embedding | nn.EmbeddingBag)]
    hooks = []
    for layer, module in layers:
        asked[layer] = []
        hooks.append(module.register_forward_pre_hook(noting(layer), with_kwargs=True))
    zeros = probe_inputs(forms, 2)
    called(
        model,
        {name: x + value if x.dtype != torch.bool else x for name, x in zeros.items()}
        if isinstance(zeros, dict)
        else zeros + value,
    )
    for hook in hooks:
        hook.remove()
    return asked
