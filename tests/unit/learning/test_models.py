"""The models: their sizes, their initial values, and the user's own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tasks import one_array
from torch import nn

from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Task
from edgebed.learning.models import registry as models

USERS = """
import torch
from torch import nn

def linear(input_shape, outputs):
    size = 1
    for length in input_shape:
        size *= length
    return nn.Sequential(nn.Flatten(), nn.Linear(size, outputs))

def no_arguments():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

class Net(nn.Module):
    def __init__(self, outputs=10):
        super().__init__()
        self.last = nn.Linear(64, outputs)

    def forward(self, x):
        return self.last(x.view(len(x), -1))

def batch_norm():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 10))

def group_norm():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(144, 10))

def double():
    return no_arguments().double()

def lazy():
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(10))

def nothing():
    return nn.Flatten()

def not_a_model():
    return 3

def wrong_input():
    return nn.Linear(5, 10)

def wrong_output():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))

def tuple_output():
    class Two(Net):
        def forward(self, x):
            return super().forward(x), x
    return Two()
"""


@pytest.fixture
def users_folder(tmp_path: Path) -> Iterator[str]:
    """A folder with the user's `usernets.py`."""
    path = list(sys.path)
    (tmp_path / "usernets.py").write_text(USERS)
    yield str(tmp_path)
    sys.path[:] = path
    sys.modules.pop("usernets", None)


def size(name: str, input_shape: tuple[int, ...], outputs: int = 10) -> int:
    """Number of parameters."""
    return sum(parameter.numel() for parameter in models.build(name, input_shape, outputs).parameters())


def task(name: str, input_shape: tuple[int, ...], python_path: tuple[str, ...] = ()) -> Task:
    """A task of ten classes with this model."""
    return Task(
        model=name,
        inputs=one_array(input_shape),
        outputs=10,
        layout=models.layout(name, one_array(input_shape), 10, python_path),
        batch_size=10,
        gradient_time_s=0.01,
        python_path=python_path,
    )


def test_the_cnn_for_28x28_has_the_published_number_of_parameters() -> None:
    """Hardy et al. 2017 give 211,690."""
    assert size("cnn", (1, 28, 28)) == 211_690


def test_the_mlp_for_28x28_has_the_published_number_of_parameters() -> None:
    """784-128-64-10: 109,386."""
    assert size("mlp", (1, 28, 28)) == 109_386


def test_the_small_model_is_a_few_thousand_parameters() -> None:
    """64-64-10 on the digits."""
    assert size("small", (1, 8, 8)) == 64 * 64 + 64 + 64 * 10 + 10


def test_sizes_are_those_of_the_models_that_have_them() -> None:
    """Filters of 3x3 instead of 5x5 in convolutions of one and of four inputs to four outputs; else it is said."""

    def weights(*sizes: tuple[str, int]) -> int:
        return sum(each.size for each in models.layout("eight-layer", one_array((1, 28, 28)), 10, (), sizes))

    assert weights(("width", 4)) - weights(("width", 4), ("kernel", 3)) == (25 - 9) * (4 + 4 * 4 * 4)
    with pytest.raises(ScenarioError, match="'vgg16' has no choice of kernel; leave `kernel` out"):
        models.build("vgg16", (1, 28, 28), 10, (), (("width", 4), ("kernel", 3)))


@pytest.mark.parametrize("name", ["small", "mlp", "cnn"])
@pytest.mark.parametrize("input_shape", [(1, 8, 8), (3, 32, 32), (1, 7, 9), (1, 28, 28)])
def test_built_in_models_take_other_shapes_and_classes(name: str, input_shape: tuple[int, ...]) -> None:
    """Pools round up, so odd sizes work as well."""
    tensors = models.layout(name, one_array(input_shape), 7)
    assert tensors[-1].shape == (7,)


def test_the_layout_lists_the_tensors_in_the_order_of_the_flat_vector() -> None:
    """The published layers, weights before biases."""
    shapes = [tensor.shape for tensor in models.layout("cnn", one_array((1, 28, 28)), 10)]
    published = [(32, 1, 3, 3), (32,), (32, 32, 3, 3), (32,), (128, 1568), (128,), (10, 128), (10,)]
    assert published == shapes


def test_the_cnn_equals_the_published_order_of_layers() -> None:
    """Convolution, ReLU, pool as published gives the same scores and gradients as the order and layout used here."""
    torch.manual_seed(0)
    fast = models.build("cnn", (1, 28, 28), 10)
    published = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(fast.parameters()), published.parameters())
    images, labels = torch.rand(10, 1, 28, 28), torch.arange(10)
    scores = [model(images) for model in (fast, published)]
    torch.testing.assert_close(*scores)
    for one, other in zip(
        *(
            torch.autograd.grad(nn.functional.cross_entropy(score, labels), list(model.parameters()))
            for score, model in zip(scores, (fast, published), strict=True)
        ),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_the_cnn_starts_from_the_authors_initial_values() -> None:
    """Weights: normal of deviation 0.1 cut at two of them (so 0.088 is left); biases: 0.1."""
    theta = models.initial_parameters(task("cnn", (1, 28, 28)), 1)
    assert theta.shape == (211_690,)
    first_weights, first_biases, fc_weights = theta[:288], theta[288:320], theta[9568:210_272]
    assert np.all(first_biases == np.float32(0.1))
    assert np.abs(first_weights).max() <= np.float32(0.2)
    assert abs(float(fc_weights.mean())) < 0.002
    assert float(fc_weights.std()) == pytest.approx(0.088, abs=0.001)


@pytest.mark.parametrize("name", ["small", "mlp", "cnn"])
def test_initial_parameters_depend_on_the_seed_alone(name: str) -> None:
    """Equal for a seed whatever was drawn before, different for another; torch's own generator goes on as it was."""
    of = task(name, (1, 8, 8))
    torch.manual_seed(1)
    expected_next = torch.rand(3)
    torch.manual_seed(1)
    first = models.initial_parameters(of, 5)
    assert torch.equal(expected_next, torch.rand(3))
    second = models.initial_parameters(of, 5)
    assert first.dtype == np.float32
    assert np.array_equal(first, second)
    assert not np.array_equal(first, models.initial_parameters(of, 6))


@pytest.mark.parametrize("function", ["linear", "no_arguments", "Net", "group_norm"])
def test_a_users_model_is_built_by_its_import_path(users_folder: str, function: str) -> None:
    """Functions and outputs, with or without the arguments on offer."""
    of = task(f"usernets:{function}", (1, 8, 8), (users_folder,))
    expected = sum(int(np.prod(tensor.shape)) for tensor in of.layout)
    assert (expected,) == models.initial_parameters(of, 0).shape


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("double", "'1.weight' is torch.float64"),
        ("lazy", "has no shape yet"),
        ("nothing", "has no parameters"),
        ("not_a_model", "returned a int, not a torch.nn.Module"),
        ("wrong_input", r"does not take inputs of shape \(1, 8, 8\)"),
        ("missing", "has no 'missing'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules:UserWarning")
def test_a_model_that_cannot_be_trained_is_refused_with_the_reason(users_folder: str, function: str, says: str) -> None:
    """Found when the plan is made, before anything starts."""
    with pytest.raises(ScenarioError, match=says):
        models.layout(f"usernets:{function}", one_array((1, 8, 8)), 10, (users_folder,))


def test_what_modules_keep_beside_parameters_is_part_of_the_layout(users_folder: str) -> None:
    """Running means and variances, and no counter of batches."""
    layout = models.layout("usernets:batch_norm", one_array((1, 8, 8)), 10, (users_folder,))

    assert [tensor.name for tensor in layout if tensor.is_buffer] == ["1.running_mean", "1.running_var"]
    assert [tensor.shape for tensor in layout if tensor.is_buffer] == [(4,), (4,)]


def test_an_unknown_model_is_refused_with_what_is_allowed() -> None:
    """The built-in names, and the form of an import path."""
    allowed = ", ".join(models.MODELS)
    with pytest.raises(ScenarioError, match=rf"'cnnn' is unknown; allowed: {allowed} or package\.module:function"):
        models.build("cnnn", (1, 28, 28), 10)


def test_the_cnn_refuses_inputs_that_are_no_images() -> None:
    """It says what shape it needs."""
    with pytest.raises(ScenarioError, match="channels, height, width"):
        models.build("cnn", (64,), 10)
