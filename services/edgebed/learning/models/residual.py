"""Residual networks: each is a `torch.nn.Sequential` of a stem, blocks, and a head, so that it can be cut as well.

`resnet18`, `resnet50`           He, Zhang, Ren, Sun 2016, Deep residual learning for image recognition, CVPR, table 1,
                                 with a stem for small images: one convolution of 3x3, no pool.
`resnet18-imagenet`, `resnet50-imagenet`
                                 with the paper's stem: 7x7 in steps of two, then a pool in steps of two.
`resnet8`, `resnet20`            the paper's section 4.2, for CIFAR-10: three stages of n blocks of 16, 32 and 64
                                 filters, 6 n + 2 layers. Its shortcuts have no parameters: they drop every second pixel
                                 and add zeros for the new channels.

A bottleneck's stride is in its 3x3 convolution, as in the authors' later code and in torchvision. Shapes: an input is
(channels, height, width).
"""

from collections.abc import Iterator

import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by
from torch import Tensor, nn

from edgebed.learning.models.layered import channels_of

WIDTH = 64
SMALL_WIDTH = 16
STAGES = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
EXPANSION = 4
"""Filters that a bottleneck gives, for each that it has inside."""


class Block(nn.Module):
    """What a block computes, added to what it is given."""

    def __init__(self, inner: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H', W')."""
        return F.relu(self.inner(x) + self.shortcut(x))


class Thinned(nn.Module):
    """A shortcut without parameters: every `stride`-th pixel, and zeros for the channels that are new."""

    def __init__(self, more: int, stride: int) -> None:
        super().__init__()
        self.more, self.stride = more, stride

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C + more, H / stride, W / stride)."""
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))


def resnet18(input_shape: tuple[int, ...], outputs: int, width: int = WIDTH) -> nn.Sequential:
    """ResNet-18 of basic blocks, for small images."""
    return _resnet("resnet18", input_shape, outputs, width, small=True)


def resnet18_imagenet(input_shape: tuple[int, ...], outputs: int, width: int = WIDTH) -> nn.Sequential:
    """ResNet-18 of basic blocks, with the stem for large images."""
    return _resnet("resnet18", input_shape, outputs, width, small=False)


def resnet50(input_shape: tuple[int, ...], outputs: int, width: int = WIDTH) -> nn.Sequential:
    """ResNet-50 of bottlenecks, for small images."""
    return _resnet("resnet50", input_shape, outputs, width, small=True)


def resnet50_imagenet(input_shape: tuple[int, ...], outputs: int, width: int = WIDTH) -> nn.Sequential:
    """ResNet-50 of bottlenecks, with the stem for large images."""
    return _resnet("resnet50", input_shape, outputs, width, small=False)


def resnet8(input_shape: tuple[int, ...], outputs: int, width: int = SMALL_WIDTH) -> nn.Sequential:
    """Residual network of three stages of one block."""
    return _small("resnet8", input_shape, outputs, width, 1)


def resnet20(input_shape: tuple[int, ...], outputs: int, width: int = SMALL_WIDTH) -> nn.Sequential:
    """Residual network of three stages of three blocks."""
    return _small("resnet20", input_shape, outputs, width, 3)


def _resnet(name: str, input_shape: tuple[int, ...], outputs: int, width: int, *, small: bool) -> nn.Sequential:
    channels = channels_of(name, input_shape)
    stem = (
        nn.Sequential(*_normalised(channels, width, 3), nn.ReLU())
        if small
        else nn.Sequential(*_normalised(channels, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1))
    )
    blocks: list[nn.Module] = []
    before = width
    for stage, count in enumerate(STAGES[name]):
        inside = width * 2**stage
        after = inside * (EXPANSION if name == "resnet50" else 1)
        for k in range(count):
            stride = 2 if stage and k == 0 else 1
            inner = _bottleneck(before, inside, stride) if name == "resnet50" else _basic(before, inside, stride)
            plain = before == after and stride == 1
            blocks.append(
                Block(inner, nn.Identity() if plain else nn.Sequential(*_normalised(before, after, 1, stride)))
            )
            before = after
    return nn.Sequential(stem, *blocks, _head(before, outputs))


def _small(name: str, input_shape: tuple[int, ...], outputs: int, width: int, count: int) -> nn.Sequential:
    stem = nn.Sequential(*_normalised(channels_of(name, input_shape), width, 3), nn.ReLU())
    blocks: list[nn.Module] = []
    before = width
    for stage in range(3):
        after = width * 2**stage
        for k in range(count):
            stride = 2 if stage and k == 0 else 1
            blocks.append(Block(_basic(before, after, stride), Thinned(after - before, stride)))
            before = after
    return nn.Sequential(stem, *blocks, _head(before, outputs))


def _basic(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(*_normalised(before, after, 3, stride), nn.ReLU(), *_normalised(after, after, 3))


def _bottleneck(before: int, inside: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        *_normalised(before, inside, 1), nn.ReLU(),
        *_normalised(inside, inside, 3, stride), nn.ReLU(),
        *_normalised(inside, EXPANSION * inside, 1),
    )  # fmt: skip


def _normalised(before: int, after: int, kernel: int, stride: int = 1) -> Iterator[nn.Module]:
    """Yield a convolution without bias, and batch normalisation."""
    convolution = nn.Conv2d(before, after, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    yield convolution
    yield nn.BatchNorm2d(after)


def _head(before: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, outputs))


RESIDUAL_MODELS = {
    "resnet8": resnet8,
    "resnet20": resnet20,
    "resnet18": resnet18,
    "resnet18-imagenet": resnet18_imagenet,
    "resnet50": resnet50,
    "resnet50-imagenet": resnet50_imagenet,
}
