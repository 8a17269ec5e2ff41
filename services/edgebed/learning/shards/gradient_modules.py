"""Networks beside the model: what predicts a gradient, what predicts an input, and a head with a loss of its own.

Jaderberg et al. 2017, Decoupled neural interfaces using synthetic gradients, ICML: a module that sees the output of a
layer, and the labels, and predicts the gradient of the loss there. Its last layer begins with zeros, so that training
begins without a gradient instead of a random one. Chen et al. 2019 use one hidden layer, and the labels.

Shapes: B examples, T places, F features, C channels, K classes.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by
from torch import Tensor, nn

from edgebed.core.errors import ScenarioError

SETTINGS = ("hidden", "hidden_layers", "labels", "predicts")
"""Settings of a method's learning that its gradient modules take."""
HIDDEN_DENSE = 1024
"""Width of hidden dense layers in Jaderberg et al.; for images there are as many channels as the layer has."""


def of_modules(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a method's settings of learning that its gradient modules take."""
    return {key: settings[key] for key in SETTINGS if key in settings}


class GradientModule(nn.Module):
    """(B, F) or (B, C, H, W) output of a layer, (B,) labels -> the gradient there, as the module `predicts` it.

    That of each example's own loss is B times that of the mini-batch's mean loss.
    For images it is made of convolutions and sees the labels as planes of ones and zeros.
    """

    def __init__(
        self, shape: tuple[int, ...], classes: int, *, hidden: int | None = None, hidden_layers: int = 1,
        labels: bool = True, predicts: Literal["example", "mini-batch"] = "example",
    ) -> None:  # fmt: skip
        """`shape` is the shape of one output, (F,) or (C, H, W); `hidden` is the width of the hidden layers."""
        super().__init__()
        self.classes = classes if labels else 0
        self.predicts = predicts
        self.is_image = len(shape) == 3
        width = hidden or (shape[0] if self.is_image else HIDDEN_DENSE)
        before = shape[0] + self.classes if self.is_image else math.prod(shape) + self.classes
        parts: list[nn.Module] = []
        for _ in range(hidden_layers):
            parts += [_linear(before, width, self.is_image), _normal(width, self.is_image), nn.ReLU()]
            before = width
        last = _linear(before, shape[0] if self.is_image else math.prod(shape), self.is_image)
        nn.init.zeros_(last.weight)
        assert last.bias is not None
        nn.init.zeros_(last.bias)
        self.net = nn.Sequential(*parts, last)
        self.shape = shape

    def forward(self, h: Tensor, labels: Tensor) -> Tensor:
        """(B, ...) outputs, (B,) labels -> (B, ...) gradient, as predicted."""
        x = h if self.is_image else h.reshape(len(h), -1)
        if self.classes:
            x = torch.cat([x, _conditions(labels, self.classes, x)], dim=1)
        output: Tensor = self.net(x)
        return output.view(h.shape)


class InputModule(nn.Module):
    """(B, ...) inputs of the model -> what a layer further on will be given; Jaderberg et al. 2017, section 2.3.

    Tong et al. 2016 use a dense layer with a sigmoid, which could predict nothing beyond 1; here it has none.
    """

    def __init__(self, input_shape: tuple[int, ...], shape: tuple[int, ...], *, hidden: int | None = None) -> None:
        """`shape` is the shape of one input of the layer; without `hidden` it is one dense layer."""
        super().__init__()
        sizes = [math.prod(input_shape), *([hidden] if hidden else []), math.prod(shape)]
        parts: list[nn.Module] = [nn.Flatten()]
        for k, (before, after) in enumerate(itertools.pairwise(sizes)):
            parts += [nn.Linear(before, after), *([nn.ReLU()] if k < len(sizes) - 2 else [])]
        self.net = nn.Sequential(*parts)
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) inputs of the model -> (B, ...) inputs of the layer, as predicted."""
        output: Tensor = self.net(x)
        return output.view(len(x), *self.shape)


class LocalHead(nn.Module):
    """(B, ...) output of a layer -> (B, K) scores of its own, or (B, T, K) where a layer gives (B, T, F).

    Belilovsky, Eickenberg, Oyallon 2020, Decoupled greedy learning of CNNs, ICML: images are pooled to 2x2 for a dense
    layer.
    """

    POOLED = 2

    def __init__(self, shape: tuple[int, ...], scores: tuple[int, ...]) -> None:
        """`shape` is that of one output of the layer, `scores` that of the head. ScenarioError where they don't fit."""
        super().__init__()
        before, parts = math.prod(shape), list[nn.Module]([nn.Flatten()])
        if len(scores) > 1:
            if shape[:-1] != scores[:-1]:
                raise ScenarioError(
                    f"a head of its own makes the scores of an example, {scores}, of ({scores[0]}, features); a layer "
                    f"before the last gives {shape}"
                )
            before, parts = shape[-1], []
        elif len(shape) == 3:
            before, parts = shape[0] * self.POOLED**2, [nn.AdaptiveAvgPool2d(self.POOLED), nn.Flatten()]
        self.net = nn.Sequential(*parts, nn.Linear(before, scores[-1]))

    def forward(self, h: Tensor) -> Tensor:
        """(B, ...) outputs of the layer -> scores."""
        output: Tensor = self.net(h)
        return output


def _linear(before: int, after: int, is_image: bool) -> nn.Conv2d | nn.Linear:
    return nn.Conv2d(before, after, 3, padding="same") if is_image else nn.Linear(before, after)


def _normal(width: int, is_image: bool) -> nn.Module:
    return nn.BatchNorm2d(width) if is_image else nn.BatchNorm1d(width)


def _conditions(labels: Tensor, classes: int, x: Tensor) -> Tensor:
    """Return (B,) labels as (B, K) zeros and ones, or as (B, K, H, W) planes of them."""
    one_hot = F.one_hot(labels, classes).to(x.dtype)
    return one_hot[:, :, None, None].expand(-1, -1, *x.shape[2:]) if x.ndim == 4 else one_hot
