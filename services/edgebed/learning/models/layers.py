"""A model as a row of layers, which can be cut anywhere between two of them.

A layer is what has parameters, with what follows it and has none: of `Sequential(Conv2d, ReLU, Linear)` the first two
are one layer and the third is another. What comes before the first parameters belongs to the first layer.
"""

import itertools
from collections.abc import Sequence

from torch import nn

from edgebed.core.errors import ScenarioError
from edgebed.learning.models.token_models import UNTIED


def layers_of(name: str, model: nn.Module) -> list[nn.Sequential]:
    """Return the layers, in order; together they are the model. ScenarioError where it is no row of layers."""
    if not isinstance(model, nn.Sequential):
        raise ScenarioError(
            f"{name}: it is a {type(model).__name__}; a model that is cut into shards is a torch.nn.Sequential."
        )
    groups: list[list[nn.Module]] = []
    for child in model:
        has_parameters = any(True for _ in child.parameters())
        if not groups or (has_parameters and any(True for each in groups[-1] for _ in each.parameters())):
            groups.append([])
        groups[-1].append(child)
    _check_shared(name, groups)
    return [nn.Sequential(*group) for group in groups]


def shards_of(layers: Sequence[nn.Sequential], cuts: Sequence[int]) -> list[nn.Sequential]:
    """Cut the model before the layers of these numbers, which increase and lie between 0 and the number of layers."""
    ends = [0, *cuts, len(layers)]
    if any(start >= end for start, end in itertools.pairwise(ends)):
        raise ValueError(f"{len(layers)} layers cannot be cut before {', '.join(map(str, cuts))}")
    return [joined(layers[start:end]) for start, end in itertools.pairwise(ends)]


def joined(layers: Sequence[nn.Sequential]) -> nn.Sequential:
    """Join consecutive layers as one."""
    return nn.Sequential(*(part for layer in layers for part in layer))


def _check_shared(name: str, groups: Sequence[Sequence[nn.Module]]) -> None:
    """Raise ScenarioError where two layers share parameters, which could not be trained on two devices."""
    owners: dict[int, int] = {}
    for number, group in enumerate(groups):
        for child in group:
            for key, parameter in child.named_parameters():
                if owners.setdefault(id(parameter), number) != number:
                    raise ScenarioError(
                        f"{name}: layers {owners[id(parameter)]} and {number} share the parameter '{key}'; "
                        f"a model that is cut into shards has its own in each layer{_untied(name)}."
                    )


def _untied(name: str) -> str:
    """What to take in the place of a built-in model whose layers share parameters."""
    return f", as {UNTIED[name]} has" if name in UNTIED else ""
