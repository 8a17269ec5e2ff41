"""Gradients and evaluations: right, repeatable to the last bit, and without side effects."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tasks import examples_of, one_array
from torch import nn

from edgebed.core.plan import Part, Task
from edgebed.learning.data_sets.registry import DataSet, load_data
from edgebed.learning.inputs import standardize
from edgebed.learning.models import registry as models
from edgebed.learning.network import EVALUATION_CHUNK, Network, plain_sum

RNG = np.random.default_rng(7)
IMAGES = RNG.integers(0, 256, (60, 1, 28, 28), dtype=np.uint8)
LABELS = RNG.integers(0, 10, 60).astype(np.uint8)
BATCH = np.array([3, 1, 59, 20, 20, 7, 41, 12, 13, 0])

USERS = """
import torch
from torch import nn

def dropout(input_shape, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.Dropout(0.5), nn.Linear(32, outputs))

def frozen():
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    model[1].bias.requires_grad_(False)
    return model

class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(784, 10), nn.Linear(3, 3)

    def forward(self, x):
        return self.used(x.view(len(x), -1))
"""


def task_of(model: str, input_shape: tuple[int, ...] = (1, 28, 28), python_path: tuple[str, ...] = ()) -> Task:
    """A task of ten classes with this model."""
    return Task(
        model=model,
        inputs=one_array(input_shape),
        outputs=10,
        layout=models.layout(model, one_array(input_shape), 10, python_path),
        batch_size=10,
        gradient_time_s=0.01,
        python_path=python_path,
    )


def users_network(folder: Path, monkeypatch: pytest.MonkeyPatch, function: str) -> tuple[Network, NDArray[np.float32]]:
    """A network of the user's model, and its initial parameters."""
    (folder / "userlayers.py").write_text(USERS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "userlayers", raising=False)
    task = task_of(f"userlayers:{function}", python_path=(str(folder),))
    return Network(task, examples_of(IMAGES, LABELS)), models.initial_parameters(task, 1)


def test_the_squared_loss_is_minimised_and_measured() -> None:
    """Its gradient is that of a hand-written formula; its mean over examples is what an evaluation gives."""
    task = msgspec.structs.replace(
        task_of("small"), objective=Part(name="classification", settings={"loss": "squared-softmax"})
    )
    theta = models.initial_parameters(task, 1)
    network = Network(task, examples_of(IMAGES, LABELS))
    gradient, loss = network.gradient(theta, BATCH)
    model = models.build("small", task.inputs[0].shape, 10)
    nn.utils.vector_to_parameters(torch.from_numpy(theta.copy()), model.parameters())
    softmax = torch.softmax(model(torch.from_numpy(IMAGES) / 255), dim=1)
    distances = (softmax - torch.eye(10)[torch.from_numpy(LABELS.astype(np.int64))]).square().sum(dim=1)
    expected = torch.autograd.grad(distances[BATCH].mean(), list(model.parameters()))

    assert loss == pytest.approx(distances[BATCH].mean().item(), rel=1e-5)
    np.testing.assert_allclose(gradient, torch.cat([each.reshape(-1) for each in expected]), rtol=1e-3, atol=1e-7)
    assert network.evaluate(theta)["loss"] == pytest.approx(distances.mean().item(), rel=1e-5)


@pytest.mark.parametrize("name", ["small", "mlp", "cnn"])
def test_the_gradient_is_torchs_own(name: str) -> None:
    """Flat vector, batch selection and scaling change nothing: equal to autograd on an ordinary copy of the model."""
    task = task_of(name)
    theta = models.initial_parameters(task, 1)
    gradient, loss = Network(task, examples_of(IMAGES, LABELS)).gradient(theta, BATCH)

    model = models.build(name, task.inputs[0].shape, 10)
    nn.utils.vector_to_parameters(torch.from_numpy(theta.copy()), model.parameters())
    inputs = torch.from_numpy(IMAGES[BATCH]).float() / 255
    expected_loss = nn.functional.cross_entropy(model(inputs), torch.from_numpy(LABELS[BATCH].astype(np.int64)))
    gradients = torch.autograd.grad(expected_loss, list(model.parameters()))
    expected = np.concatenate([tensor.numpy().ravel() for tensor in gradients])

    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-7)
    assert loss == pytest.approx(expected_loss.item(), rel=1e-6)


def test_the_gradient_is_the_slope_of_the_evaluated_loss() -> None:
    """A small step along a direction changes the mean loss by the gradient's component in it."""
    task = task_of("mlp")
    network = Network(task, examples_of(IMAGES, LABELS))
    theta = models.initial_parameters(task, 2)
    gradient, loss = network.gradient(theta, np.arange(60))
    assert loss == pytest.approx(network.evaluate(theta)["loss"], rel=1e-5)
    direction = gradient / np.linalg.norm(gradient)
    step = np.float32(1e-3) * direction  # short, because ReLU bends
    ahead, behind = network.evaluate(theta + step)["loss"], network.evaluate(theta - step)["loss"]
    assert (ahead - behind) / 2e-3 == pytest.approx(float(gradient @ direction), rel=0.01)


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_the_same_parameters_and_batch_give_the_same_bits(name: str) -> None:
    """Whatever was computed in between, wherever the parameters lie, and in another network of the same data."""
    task = task_of(name)
    network = Network(task, examples_of(IMAGES, LABELS))
    theta = models.initial_parameters(task, 1)
    first, loss = network.gradient(theta, BATCH)
    network.evaluate(theta * 0.5)
    network.gradient(theta + 1, BATCH[::-1])
    misplaced = np.empty(len(theta) + 3, np.float32)[3:]  # off every alignment
    misplaced[:] = theta
    again, loss_again = network.gradient(misplaced, BATCH)
    other, _ = Network(task, examples_of(IMAGES, LABELS)).gradient(theta, BATCH)
    assert first.tobytes() == again.tobytes() == other.tobytes()
    assert loss == loss_again


def test_the_callers_arrays_are_left_alone() -> None:
    """Neither parameters nor batch nor data are written, and each gradient is a new array."""
    task = task_of("cnn")
    images, labels = IMAGES.copy(), LABELS.copy()
    network = Network(task, examples_of(images, labels))
    theta = models.initial_parameters(task, 1)
    before = theta.copy()
    for array in (theta, images, labels):
        array.flags.writeable = False
    first, _ = network.gradient(theta, BATCH)
    kept = first.copy()
    network.gradient(theta * 2, BATCH)
    network.evaluate(theta)
    assert np.array_equal(kept, first)
    assert np.array_equal(before, theta)
    assert np.array_equal(IMAGES, images)


def fingerprint() -> str:
    """A hash of ten steps of the CNN."""
    task = task_of("cnn")
    network = Network(task, examples_of(IMAGES, LABELS))
    theta = models.initial_parameters(task, 3)
    for k in range(10):
        gradient, _ = network.gradient(theta, (BATCH + k) % 60, key=k)
        theta -= np.float32(0.1) * gradient
    return hashlib.blake2b(theta.tobytes()).hexdigest()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_computes_the_same_bits() -> None:
    """Ten steps here and in a child, which began with this process's torch already at work."""
    expected = fingerprint()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writable, fingerprint().encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        assert expected == pipe.read()
    os.waitpid(child, 0)


def test_torch_is_loaded_with_one_thread() -> None:
    """It does not suffice to tell it afterwards: libraries below it keep what they were loaded with."""
    code = "import edgebed, torch; print(torch.get_num_threads())"
    plain = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    result = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True)
    assert result.stdout == "1\n"


@pytest.mark.slow
def test_a_fresh_process_computes_the_same_bits_without_loading_torchs_compiler() -> None:
    """A new interpreter agrees, and neither importing nor training loads what costs 64 MB a process."""
    code = (
        "import runpy, sys; print(runpy.run_path(sys.argv[1])['fingerprint']()); print('torch._dynamo' in sys.modules)"
    )
    paths = os.pathsep.join((str(Path(__file__).parents[2] / "shared"), os.environ.get("PYTHONPATH", "")))
    result = subprocess.run(
        [sys.executable, "-c", code, __file__],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [fingerprint(), "False"] == result.stdout.split()


class ByHand:
    """Four inputs of two values and a linear model of two classes whose scores are the inputs themselves."""

    x = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 4.0]], np.float32)
    y = np.array([0, 1, 1, 1])  # the third is classified wrongly
    theta = np.array([1, 0, 0, 1, 0, 0], np.float32)


def by_hand_network(folder: Path, monkeypatch: pytest.MonkeyPatch, repeat: int) -> Network:
    """The data of `ByHand`, repeated."""
    (folder / "byhand.py").write_text("from torch import nn\n\ndef linear():\n    return nn.Linear(2, 2)\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "byhand", raising=False)
    path = (str(folder),)
    task = Task(
        model="byhand:linear",
        inputs=one_array((2,)),
        outputs=2,
        layout=models.layout("byhand:linear", one_array((2,)), 2, path),
        batch_size=2,
        gradient_time_s=0.01,
        python_path=path,
    )
    return Network(task, examples_of(np.tile(ByHand.x, (repeat, 1)), np.tile(ByHand.y, repeat)))


@pytest.mark.parametrize("repeat", [1, EVALUATION_CHUNK])
def test_an_evaluation_agrees_with_a_calculation_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int
) -> None:
    """Accuracy 3/4 and the mean of -log softmax, in one chunk and in several."""
    measured = by_hand_network(tmp_path, monkeypatch, repeat).evaluate(ByHand.theta)
    margins = np.array([2.0, 1.0, -3.0, 4.0])  # score of the right class minus that of the other
    assert measured["accuracy"] == 0.75
    assert measured["loss"] == pytest.approx(np.mean(np.log1p(np.exp(-margins))), rel=1e-6)


def test_an_evaluation_of_a_part_chunk_counts_every_example_once() -> None:
    """Sixty examples do not fill a chunk; thrice as many fill one and a bit: the result is the same."""
    task = task_of("mlp")
    theta = models.initial_parameters(task, 1)
    once = Network(task, examples_of(IMAGES, LABELS)).evaluate(theta)
    thrice = Network(task, examples_of(np.tile(IMAGES, (3, 1, 1, 1)), np.tile(LABELS, 3))).evaluate(theta)
    assert once["accuracy"] == thrice["accuracy"]
    assert once["loss"] == pytest.approx(thrice["loss"], rel=1e-6)


def test_pixels_and_the_floats_they_scale_to_are_the_same_input() -> None:
    """8-bit pixels are divided by 255, floats are taken as they are."""
    task = task_of("mlp")
    theta = models.initial_parameters(task, 1)
    pixels, _ = Network(task, examples_of(IMAGES, LABELS)).gradient(theta, BATCH)
    floats, _ = Network(task, examples_of(IMAGES.astype(np.float32) / np.float32(255), LABELS)).gradient(theta, BATCH)
    assert pixels.tobytes() == floats.tobytes()


def test_standardized_inputs_do_not_depend_on_brightness_and_contrast() -> None:
    """With `inputs: standardized` an image and a paler copy of it give the same gradient; as they are, they do not."""
    plain = task_of("mlp")
    standardized = msgspec.structs.replace(plain, scaling="standardized")
    theta = models.initial_parameters(plain, 1)
    bright = IMAGES.astype(np.float32) / np.float32(255)
    pale = bright * np.float32(0.5) + np.float32(0.25)
    results = [
        Network(task, examples_of(x, LABELS)).gradient(theta, BATCH)[0]
        for task in (standardized, plain)
        for x in (bright, pale)
    ]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-2, atol=1e-5)
    assert np.abs(results[2] - results[3]).max() > 1e-3


@given(st.integers(1, 4), st.integers(2, 6), st.floats(0.1, 100.0), st.integers(0, 2**31))
def test_standardizing_gives_mean_zero_and_variance_one(num: int, side: int, spread: float, seed: int) -> None:
    """For each image apart, whatever its scale."""
    x = torch.from_numpy(np.random.default_rng(seed).normal(1.0, spread, (num, 1, side, side)).astype(np.float32))
    result = standardize(x).flatten(1)
    floor = side**-1.0
    for image, before in zip(result, x.flatten(1), strict=True):
        assert float(image.mean()) == pytest.approx(0.0, abs=1e-3)
        if float(before.std(correction=0)) > floor:
            assert float(image.var(correction=0)) == pytest.approx(1.0, rel=1e-2)


def test_a_constant_image_standardizes_to_zeros() -> None:
    """The deviation counts as at least 1 / sqrt(number of pixels)."""
    assert torch.equal(torch.zeros(2, 1, 4, 4), standardize(torch.full((2, 1, 4, 4), 0.7)).round(decimals=5))
    almost = torch.zeros(1, 1, 2, 2)
    almost[0, 0, 0, 0] = 0.04
    torch.testing.assert_close(standardize(almost)[0, 0], torch.tensor([[0.06, -0.02], [-0.02, -0.02]]))


def test_dropout_is_drawn_from_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same key gives the same bits, another key others; an evaluation drops nothing."""
    network, theta = users_network(tmp_path, monkeypatch, "dropout")
    first, again, other = (network.gradient(theta, BATCH, key=key)[0] for key in (2**127 + 1, 2**127 + 1, 2**127 + 2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()
    assert network.evaluate(theta) == network.evaluate(theta)


@pytest.mark.parametrize(("function", "idle"), [("frozen", slice(7840, 7850)), ("Unused", slice(7850, 7862))])
def test_what_is_frozen_or_unused_has_gradient_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, idle: slice
) -> None:
    """It keeps its place in the flat vector."""
    network, theta = users_network(tmp_path, monkeypatch, function)
    gradient, _ = network.gradient(theta, BATCH)
    assert theta.shape == gradient.shape
    assert np.all(gradient[idle] == 0)
    assert np.any(gradient[:7840] != 0)


def test_the_small_model_learns_the_digits() -> None:
    """Plain SGD reaches 95 % in two thousand steps."""
    assert train("small", load_data("digits", seed=1), 2000) >= 0.95


@pytest.mark.slow
def test_the_small_model_learns_the_synthetic_task_but_not_at_once() -> None:
    """Over 90 % after four thousand steps, under 80 % after two hundred."""
    data = load_data("synthetic", seed=1)
    assert train("small", data, 4000) > 0.9
    assert train("small", data, 200) < 0.8


def train(model: str, data: DataSet, num_steps: int) -> float:
    """Accuracy on the test set after plain SGD with batches of ten and learning rate 0.1."""
    task = task_of(model, data.train.inputs[""].shape[1:])
    network = Network(task, data.train)
    theta = models.initial_parameters(task, 1)
    batches = np.random.default_rng(1).integers(len(data.train.targets[""]), size=(num_steps, 10))
    for batch in batches:
        theta -= np.float32(0.1) * network.gradient(theta, batch)[0]
    return Network(task, data.test).evaluate(theta)["accuracy"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(3, 3.0), (np.float32(0.5), 0.5), (torch.tensor(2), 2.0), (torch.ones(2), [1.0, 1.0]), (np.ones(2), [1.0, 1.0])],
    ids=["number", "numpy's", "torch's", "array of torch", "array of numpy"],
)
def test_sums_of_any_form_are_plain(given: object, expected: object) -> None:
    """What is tried beforehand and what is measured take the same forms."""
    np.testing.assert_array_equal(plain_sum(given), expected)
    assert not isinstance(plain_sum(given), torch.Tensor)
