"""Models whose layers may lie on different devices: each is a `torch.nn.Sequential` with one child a layer.

`four-layer`   one convolution with a pool and three dense layers; Chen et al. 2019, Exploring the use of synthetic
               gradients for distributed deep learning across cloud and edge resources, HotEdge, section 4.
`eight-layer`  five convolutions of one width, pools after the first, third and fifth, and three dense layers; the same.
`vgg16`        13 convolutions, a pool after the 2nd, 4th, 7th, 10th and 13th, and three dense layers; Simonyan,
               Zisserman 2015, with batch normalisation. Pools round up, so that images of 28x28 are taken.
`cifar-cnn`    Tong et al. 2016, Layer-wise asynchronous training of neural networks with synthetic gradients, CMU
               report: conv 32, 32, pool, conv 64, 64, pool, dense 512, 10, with dropout; 2,168,362 parameters for
               images of 3x32x32, all convolutions keeping the image's size.
`cifar-cnn-keep`  the same with dropout as the report's words have it, "keep probability 0.25, 0.5, 0.25": it drops
               0.75, 0.5, 0.75. The model that it takes over drops 0.25, 0.25, 0.5, as `cifar-cnn` does.
`sigmoid-200`  784-200-10 with a sigmoid; the same, section 5.3. Weights begin as in the authors' code.

Chen et al. give neither widths nor kernels; those of four and eight layers are the ones of Jaderberg et al. 2017,
Decoupled neural interfaces using synthetic gradients: convolutions of 64 filters of 5x5, dense layers of 256, batch
normalisation before the activation.

Shapes: an input is (channels, height, width).
"""

import math
from collections.abc import Callable

from torch import nn

from edgebed.core.errors import ScenarioError

WIDTH = 64
"""Filters of a convolution of the four- and the eight-layer model, and of VGG16's first ones."""
KERNEL = 5
"""Side of the filters of the four- and the eight-layer model."""
DENSE = 256
VGG16 = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))
"""Widths of the convolutions before each pool, in units of the first one's."""
VGG16_DENSE = 4096
SIGMOID_DEVIATION = 0.35


def four_layer(input_shape: tuple[int, ...], outputs: int, width: int = WIDTH, kernel: int = KERNEL) -> nn.Sequential:
    """Convolution and pool; dense, dense; scores."""
    return nn.Sequential(*_convolutions("four-layer", input_shape, (width,), (True,), kernel), *_dense(_flat(
        input_shape, width, 1), (DENSE, DENSE), outputs))  # fmt: skip


def eight_layer(input_shape: tuple[int, ...], outputs: int, width: int = WIDTH, kernel: int = KERNEL) -> nn.Sequential:
    """Five convolutions, three of them with a pool; dense, dense; scores."""
    pools = (True, False, True, False, True)
    convolutions = _convolutions("eight-layer", input_shape, (width,) * 5, pools, kernel)
    return nn.Sequential(*convolutions, *_dense(_flat(input_shape, width, 3), (DENSE, DENSE), outputs))


def vgg16(input_shape: tuple[int, ...], outputs: int, width: int = WIDTH) -> nn.Sequential:
    """Thirteen convolutions, five of them with a pool; dense, dense; scores. All in proportion to the first width."""
    widths = [width * times for block in VGG16 for times in block]
    pools = [k == len(block) - 1 for block in VGG16 for k in range(len(block))]
    dense = VGG16_DENSE * width // WIDTH
    convolutions = _convolutions("vgg16", input_shape, widths, pools, 3)
    return nn.Sequential(*convolutions, *_dense(_flat(input_shape, widths[-1], 5), (dense, dense), outputs))


def cifar_cnn(input_shape: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Four convolutions, two of them with a pool; dense; scores."""
    return _cifar_cnn("cifar-cnn", input_shape, outputs, (0.25, 0.25, 0.5))


def cifar_cnn_keep(input_shape: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Four convolutions as in `cifar_cnn`, with dropout as the report's words have it."""
    return _cifar_cnn("cifar-cnn-keep", input_shape, outputs, (0.75, 0.5, 0.75))


def sigmoid_200(input_shape: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Dense with a sigmoid; scores. Weights and biases are of a normal distribution, cut at twice its deviation."""
    dense = [nn.Linear(math.prod(input_shape), 200), nn.Linear(200, outputs)]
    for parameter in (parameter for layer in dense for parameter in layer.parameters()):
        nn.init.trunc_normal_(parameter, std=SIGMOID_DEVIATION, a=-2 * SIGMOID_DEVIATION, b=2 * SIGMOID_DEVIATION)
    return nn.Sequential(nn.Sequential(nn.Flatten(), dense[0], nn.Sigmoid()), dense[1])


def _cifar_cnn(
    name: str, input_shape: tuple[int, ...], outputs: int, drop: tuple[float, float, float]
) -> nn.Sequential:
    """Make a `cifar_cnn`; `drop` is the share dropped after each pool and after the dense layer."""
    channels = channels_of(name, input_shape)
    flat = _flat(input_shape, 64, 2)
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(channels, 32, 3, padding="same"), nn.ReLU()),
        nn.Sequential(nn.Conv2d(32, 32, 3, padding="same"), nn.ReLU(), _pool(), nn.Dropout(drop[0])),
        nn.Sequential(nn.Conv2d(32, 64, 3, padding="same"), nn.ReLU()),
        nn.Sequential(nn.Conv2d(64, 64, 3, padding="same"), nn.ReLU(), _pool(), nn.Dropout(drop[1])),
        nn.Sequential(nn.Flatten(), nn.Linear(flat, 512), nn.ReLU(), nn.Dropout(drop[2])),
        nn.Linear(512, outputs),
    )


def _convolutions(
    model: str, input_shape: tuple[int, ...], widths: tuple[int, ...] | list[int], pools: object, kernel: int
) -> list[nn.Module]:
    layers: list[nn.Module] = []
    before = channels_of(model, input_shape)
    for width, pooled in zip(widths, pools, strict=True):  # type: ignore[call-overload]
        parts = [nn.Conv2d(before, width, kernel, padding="same"), nn.BatchNorm2d(width), nn.ReLU()]
        layers.append(nn.Sequential(*parts, *([_pool()] if pooled else [])))
        before = width
    return layers


def _dense(flat: int, widths: tuple[int, ...], outputs: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for k, width in enumerate(widths):
        first = [nn.Flatten()] if k == 0 else []
        layers.append(nn.Sequential(*first, nn.Linear(flat, width), nn.BatchNorm1d(width), nn.ReLU()))
        flat = width
    return [*layers, nn.Linear(flat, outputs)]


def _pool() -> nn.Module:
    return nn.MaxPool2d(2, ceil_mode=True)


def _flat(input_shape: tuple[int, ...], width: int, pools: int) -> int:
    """Return the values of an image after `pools` pools."""
    _, height, breadth = input_shape
    for _ in range(pools):
        height, breadth = math.ceil(height / 2), math.ceil(breadth / 2)
    return width * height * breadth


def channels_of(model: str, input_shape: tuple[int, ...]) -> int:
    """Return the channels of an image; ScenarioError where inputs are no images."""
    if len(input_shape) != 3:
        raise ScenarioError(
            f"model: '{model}' needs images of shape (channels, height, width), not {tuple(input_shape)}."
        )
    return input_shape[0]


LAYERED_MODELS: dict[str, Callable[..., nn.Sequential]] = {
    "four-layer": four_layer,
    "eight-layer": eight_layer,
    "vgg16": vgg16,
    "cifar-cnn": cifar_cnn,
    "cifar-cnn-keep": cifar_cnn_keep,
    "sigmoid-200": sigmoid_200,
}
