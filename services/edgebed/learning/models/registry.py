"""The models that can be trained: built-in ones, and the user's own by import path.

`cnn`    the 211,690-parameter network of Hardy, Le Merrer, Sericola 2017, Distributed deep learning on edge-devices:
         feasibility via adaptive compression, IEEE NCA, for images of 28x28; the pools round up, as TensorFlow's do.
`mlp`    784-128-64-10, the family of Shokri, Shmatikov 2015, Privacy-preserving deep learning, ACM CCS; 109,386.
`small`  64-64-10, for the 8x8 digits; 4,810 parameters.
`logistic`  one dense layer: logistic regression, and with numbers as targets linear regression.

Those whose layers may lie on different devices are in layered.py and residual.py, those of tokens in token_models.py.

All take other input shapes and numbers of outputs. A model is known to the rest of edgebed by its flat vector and the
`TensorLayout` that cuts it: the parameters that are trained and the buffers that training changes, such as running
means (weights.py). Frozen parameters and constant buffers are not in it: every node is given them once.
"""

import inspect
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from edgebed.core import chance, imports
from edgebed.core.errors import ScenarioError
from edgebed.core.plan import ArrayForm, InputShape, Task, TensorLayout, shape_of
from edgebed.learning import weights
from edgebed.learning.inputs import drawn_inputs, probe_inputs
from edgebed.learning.models.layered import LAYERED_MODELS
from edgebed.learning.models.residual import RESIDUAL_MODELS
from edgebed.learning.models.token_models import TOKEN_MODELS, check_tokens
from edgebed.learning.objectives.objective import called

Held = tuple[nn.Module, list[tuple[nn.Module, str]]]
"""A model, and the places of the buffers that were made constant in it."""


def build(
    name: str,
    input_shape: InputShape,
    outputs: int,
    python_path: Sequence[str] = (),
    sizes: Sequence[tuple[str, int]] = (),
    *,
    with_weights: bool = False,
) -> nn.Module:
    """The model called `name`, with parameters as its author initialises them, drawn from torch's generator.

    A user's function is called with `input_shape`, `outputs`, the `sizes`, such as `width`, and `with_weights`, where
    it has parameters of these names. The latter says whether the values of its tensors count; else it may leave out
    what only gives them values, such as reading them from a file.
    ScenarioError if there is no such model, or if it cannot be trained here.
    """
    if name in MODELS:
        for size, _ in sizes:
            if size not in inspect.signature(MODELS[name]).parameters:
                raise ScenarioError(f"model: '{name}' has no choice of {size}; leave `{size}` out.")
        if isinstance(input_shape, dict):
            raise ScenarioError(
                f"model: '{name}' takes one array of inputs, and the data has {', '.join(input_shape)}."
            )
        return MODELS[name](input_shape, outputs, **dict(sizes))
    if not imports.is_import_path(name):
        raise ScenarioError(f"model: '{name}' is unknown; allowed: {', '.join(MODELS)} or package.module:function.")
    function = imports.resolve(name, python_path)
    offers = {"input_shape": input_shape, "outputs": outputs, "with_weights": with_weights}
    try:
        model = imports.call(name, function, **offers, **dict(sizes))
    except ScenarioError as error:
        if with_weights and isinstance(error.__cause__, FileNotFoundError):
            raise ScenarioError(f"{error}; put the file there first: weights are read where edgebed is run") from error
        raise
    _check(name, model)
    assert isinstance(model, nn.Module)
    return model


def layout(
    name: str,
    inputs: tuple[ArrayForm, ...],
    outputs: int,
    python_path: Sequence[str] = (),
    sizes: Sequence[tuple[str, int]] = (),
) -> tuple[TensorLayout, ...]:
    """Name and shape of each tensor of the model that training changes, in the order of the flat vector.

    Tries the model on inputs, so that a model that does not fit the data, or cannot be trained, is found before
    anything starts: ScenarioError then. What torch draws meanwhile is always the same.
    """
    if name in TOKEN_MODELS:
        check_tokens(name, inputs)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = build(name, shape_of(inputs), outputs, python_path, sizes)
        _try(name, model, inputs)
        found = weights.trained(model)
        try:
            changing = weights.changed_by_training(model, drawn_inputs(inputs, 2))
        except Exception as error:
            raise ScenarioError(f"{name}: the model cannot be trained: {imports.reason(error)}") from error
    for each in changing.values():
        if each.tensor.dtype != torch.float32:
            raise ScenarioError(
                f"{name}: training changes the buffer '{each.name}', which is {each.tensor.dtype}; "
                "only float32 is exchanged."
            )
    return tuple(
        TensorLayout(each.name, tuple(each.tensor.shape), not each.is_parameter)
        for each in found
        if each.is_parameter or each.name in changing
    )


def _try(name: str, model: nn.Module, inputs: tuple[ArrayForm, ...]) -> None:
    """Raise ScenarioError unless the model takes such inputs."""
    try:
        with torch.no_grad():
            called(model.eval(), probe_inputs(inputs, 2))
    except Exception as error:
        pixels = " (uint8 are pixels, given as floats from 0 to 1; give tokens another type, such as int64)"
        scaled = pixels if any(form.dtype == "uint8" for form in inputs) else ""
        raise ScenarioError(
            f"{name}: the model does not take inputs of shape {shape_of(inputs)}{scaled}: "
            f"{imports.reason(error, model.forward)}"
        ) from error


def initial_parameters(task: Task, seed: int) -> NDArray[np.float32]:
    """(n,) parameters and buffers that training changes, as it begins with them."""
    return weights.flat(initial_model(task, seed))


def initial_model(task: Task, seed: int) -> nn.Module:
    """Return the model that training begins with, determined by the task and `seed`; torch's generator is left as is.

    The built-in `cnn` is initialised as its authors did, the others as torch does.
    """
    return _initial(task, seed)[0]


def trained_model(task: Task, seed: int, theta: NDArray[np.float32]) -> nn.Module:
    """Return the model with (n,) what was trained, in evaluation mode; ValueError where that is another model's.

    Its buffers are persistent where its author's are, so that its `state_dict` is what the author's model loads.
    """
    model, held = _initial(task, seed)
    weights.fill(model, theta)
    for owner, key in held:
        owner.register_buffer(key, getattr(owner, key))
    return model.eval()


def build_for(task: Task, *, with_weights: bool = False) -> nn.Module:
    """Build the task's model, whose buffers are constant where the task's layout has them not.

    ScenarioError where its tensors are others than when the layout was made.
    """
    return _build_for(task, with_weights=with_weights)[0]


def _initial(task: Task, seed: int) -> Held:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(chance.key(seed, "init") >> 65)
        return _build_for(task, with_weights=True)


def _build_for(task: Task, *, with_weights: bool) -> Held:
    shape = shape_of(task.inputs)
    model = build(task.model, shape, task.outputs, task.python_path, task.sizes, with_weights=with_weights)
    held = weights.hold_constant(model, {tensor.name for tensor in task.layout if tensor.is_buffer})
    found = [(each.name, tuple(each.tensor.shape)) for each in weights.trained(model)]
    if found != [(tensor.name, tensor.shape) for tensor in task.layout]:
        raise ScenarioError(
            f"{task.model}: it gives a model with other tensors to train than when the trial was planned; what is "
            "trained and what is frozen must not depend on `with_weights`, on chance or on where it runs."
        )
    return model, held


class ChannelsLast(nn.Module):
    """Lays images (B, C, H, W) out with the channels innermost: the same numbers, and convolutions take 2/3 the time.

    A copy with its own strides, because `contiguous` takes an image of one channel to be in that layout already and
    the convolution that follows does not.
    """

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) -> the same values."""
        return images.clone(memory_format=torch.channels_last)


def _cnn(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
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
        nn.Linear(128, outputs),
    )
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=0.1, a=-0.2, b=0.2)  # TensorFlow cuts at two standard deviations
        else:
            nn.init.constant_(parameter, 0.1)
    return model


def _mlp(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), 128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, outputs),
    )


def _small(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), 64),
        nn.ReLU(),
        nn.Linear(64, outputs),
    )


def _logistic(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), outputs))


def _check(name: str, model: object) -> None:
    if not isinstance(model, nn.Module):
        raise ScenarioError(f"{name}: it returned a {type(model).__name__}, not a torch.nn.Module.")
    parameters = dict(model.named_parameters())
    if not parameters:
        raise ScenarioError(f"{name}: the model has no parameters, so there is nothing to train.")
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise ScenarioError(f"{name}: every parameter is frozen (requires_grad=False), so there is nothing to train.")
    if lazy := [key for key, parameter in parameters.items() if isinstance(parameter, UninitializedParameter)]:
        raise ScenarioError(
            f"{name}: parameter '{lazy[0]}' has no shape yet; use layers with given sizes, not lazy ones."
        )
    trained = (key for key, parameter in parameters.items() if parameter.requires_grad)
    if other := [key for key in trained if parameters[key].dtype != torch.float32]:
        raise ScenarioError(
            f"{name}: parameter '{other[0]}' is {parameters[other[0]].dtype}; only float32 is exchanged."
        )


MODELS: dict[str, Callable[..., nn.Module]] = {
    "small": _small,
    "mlp": _mlp,
    "cnn": _cnn,
    "logistic": _logistic,
    **LAYERED_MODELS,
    **RESIDUAL_MODELS,
    **TOKEN_MODELS,
}
