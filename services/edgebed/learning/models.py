"""The models that can be trained: three built-in ones, and the user's own by import path.

`cnn`    the 211,690-parameter network of Hardy, Le Merrer, Sericola 2017, Distributed deep learning on edge-devices:
         feasibility via adaptive compression, IEEE NCA, for images of 28x28; the pools round up, as TensorFlow's do.
`mlp`    784-128-64-10, the family of Shokri, Shmatikov 2015, Privacy-preserving deep learning, ACM CCS; 109,386.
`small`  64-64-10, for the 8x8 digits; 4,810 parameters.

Those whose layers may lie on different devices are in layered_models.py.

All take other input shapes and numbers of classes. A model is known to the rest of edgebed by its flat vector and the
`TensorLayout` that cuts it: the parameters and what it keeps besides, such as running means. The latter would not be
exchanged where workers push gradients, so there such models are refused.
"""

import inspect
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from edgebed import chance
from edgebed.errors import ScenarioError
from edgebed.learning import imports
from edgebed.learning.layered_models import LAYERED_MODELS
from edgebed.learning.residual_models import RESIDUAL_MODELS
from edgebed.scenario.plan import Task, TensorLayout


def build(
    name: str,
    input_shape: tuple[int, ...],
    classes: int,
    python_path: Sequence[str] = (),
    sizes: Sequence[tuple[str, int]] = (),
) -> nn.Module:
    """The model called `name`, with parameters as its author initialises them, drawn from torch's generator.

    A user's function is called with `input_shape`, `classes` and the `sizes`, such as `width`, where it has parameters
    of these names.
    ScenarioError if there is no such model, or if it cannot be trained here.
    """
    if name in MODELS:
        for size, _ in sizes:
            if size not in inspect.signature(MODELS[name]).parameters:
                raise ScenarioError(f"model: '{name}' has one {size} alone; leave `{size}` out.")
        return MODELS[name](input_shape, classes, **dict(sizes))
    if not imports.is_import_path(name):
        raise ScenarioError(f"model: '{name}' is unknown; allowed: {', '.join(MODELS)} or package.module:function.")
    function = imports.resolve(name, python_path)
    model = imports.call(name, function, input_shape=tuple(input_shape), classes=classes, **dict(sizes))
    _check(name, model)
    assert isinstance(model, nn.Module)
    return model


def tensors(model: nn.Module) -> list[tuple[str, Tensor]]:
    """What the model's flat vector is made of, by name: parameters, and what modules keep besides, module by module."""
    found: dict[int, tuple[str, Tensor]] = {}  # of what two modules share, the first
    for prefix, owner in model.named_modules():
        own = [*owner.named_parameters(recurse=False), *owner.named_buffers(recurse=False)]
        for name, tensor in own:
            if tensor.is_floating_point():
                found.setdefault(id(tensor), (f"{prefix}.{name}" if prefix else name, tensor))
    return list(found.values())


def layout(
    name: str,
    input_shape: tuple[int, ...],
    classes: int,
    python_path: Sequence[str] = (),
    sizes: Sequence[tuple[str, int]] = (),
) -> tuple[TensorLayout, ...]:
    """Name and shape of each tensor of the model, in the order of the flat vector.

    Tries the model on an input too, so that a model that does not fit the data is found before anything starts:
    ScenarioError then.
    """
    with torch.random.fork_rng(devices=[]):
        model = build(name, input_shape, classes, python_path, sizes).eval()
    try:
        with torch.inference_mode():
            output = model(torch.zeros(2, *input_shape))
    except Exception as error:
        raise ScenarioError(
            f"{name}: the model does not take inputs of shape {tuple(input_shape)}: {imports.reason(error)}"
        ) from error
    expected = (2, classes)
    if not isinstance(output, Tensor) or tuple(output.shape) != expected:
        got = f"shape {tuple(output.shape)}" if isinstance(output, Tensor) else f"a {type(output).__name__}"
        raise ScenarioError(
            f"{name}: for two inputs of shape {tuple(input_shape)} the model gives {got}, not one score "
            f"for each of the {classes} classes, shape {expected}."
        )
    trained = {id(parameter) for parameter in model.parameters()}
    return tuple(TensorLayout(key, tuple(each.shape), id(each) not in trained) for key, each in tensors(model))


def initial_parameters(task: Task, seed: int) -> NDArray[np.float32]:
    """(n,) parameters every node begins with, determined by the model and `seed`; torch's own generator is left as is.

    The built-in `cnn` is initialised as its authors did, the others as torch does.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(chance.key(seed, "init") >> 65)
        model = build_for(task)
    return torch.cat([tensor.detach().reshape(-1) for _, tensor in tensors(model)]).numpy()


def build_for(task: Task) -> nn.Module:
    """The task's model."""
    return build(task.model, task.input_shape, task.classes, task.python_path, task.sizes)


class ChannelsLast(nn.Module):
    """Lays images (B, C, H, W) out with the channels innermost: the same numbers, and convolutions take 2/3 the time.

    A copy with its own strides, because `contiguous` takes an image of one channel to be in that layout already and
    the convolution that follows does not.
    """

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) -> the same values."""
        return images.clone(memory_format=torch.channels_last)


def _cnn(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    if len(input_shape) != 3:
        raise ScenarioError(f"model: 'cnn' needs images of shape (channels, height, width), not {tuple(input_shape)}.")
    channels, height, width = input_shape
    flat = 32 * math.ceil(height / 4) * math.ceil(width / 4)
    model = nn.Sequential(
        ChannelsLast(),
        nn.Conv2d(channels, 32, 3, padding="same"),
        # ReLU after the pool gives the same function and gradient as before it, on a quarter of the values
        nn.MaxPool2d(2, ceil_mode=True),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding="same"),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(flat, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=0.1, a=-0.2, b=0.2)  # TensorFlow cuts at two standard deviations
        else:
            nn.init.constant_(parameter, 0.1)
    return model


def _mlp(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), 128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


def _small(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


def _check(name: str, model: object) -> None:
    if not isinstance(model, nn.Module):
        raise ScenarioError(f"{name}: it returned a {type(model).__name__}, not a torch.nn.Module.")
    parameters = dict(model.named_parameters())
    if not parameters:
        raise ScenarioError(f"{name}: the model has no parameters, so there is nothing to train.")
    if lazy := [key for key, parameter in parameters.items() if isinstance(parameter, UninitializedParameter)]:
        raise ScenarioError(
            f"{name}: parameter '{lazy[0]}' has no shape yet; use layers with given sizes, not lazy ones."
        )
    if other := [key for key, parameter in parameters.items() if parameter.dtype != torch.float32]:
        raise ScenarioError(
            f"{name}: parameter '{other[0]}' is {parameters[other[0]].dtype}; only float32 is exchanged."
        )


MODELS: dict[str, Callable[..., nn.Module]] = {
    "small": _small,
    "mlp": _mlp,
    "cnn": _cnn,
    **LAYERED_MODELS,
    **RESIDUAL_MODELS,
}
