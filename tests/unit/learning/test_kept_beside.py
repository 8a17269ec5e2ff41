"""What modules keep beside parameters, such as running means: its changes are averaged, and never compressed."""

import numpy as np
import pytest
import torch
from local_runs import ran
from tasks import examples_of, one_array
from torch import nn

from edgebed.algorithms.aggregation import asynchronous, buffered, stale_synchronous, synchronous
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.local_work import local_steps
from edgebed.algorithms.registry import buffer_mask, compression_of
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.plan import Method, Part, Task
from edgebed.learning import weights
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network

SHAPE = (3, 8, 8)
X = np.random.default_rng(0).random((12, *SHAPE), np.float32)
Y = np.arange(12) % 3


@pytest.fixture(scope="module")
def task():
    """A small residual network."""
    sizes = (("width", 4),)
    layout = models.layout("resnet8", one_array(SHAPE), 3, (), sizes)
    return Task(
        model="resnet8",
        inputs=one_array(SHAPE),
        outputs=3,
        layout=layout,
        batch_size=4,
        gradient_time_s=0.01,
        sizes=sizes,
    )


def test_a_gradient_says_how_far_running_means_have_moved(task):
    """Old minus new, as torch itself has them after the same forward pass; the rest is torch's gradient."""
    theta, network = models.initial_parameters(task, 1), Network(task, examples_of(X, Y))
    found, _ = network.gradient(theta, np.arange(4))
    model = models.build_for(task)
    for each, part in zip(weights.trained(model), _split(task, theta), strict=True):
        each.tensor.data.copy_(torch.from_numpy(part.copy()).view(each.tensor.shape))
    loss = nn.functional.cross_entropy(model(torch.from_numpy(X[:4])), torch.from_numpy(Y[:4]))
    loss.backward()
    for (name, tensor, _), part, before in zip(
        weights.trained(model), _split(task, found), _split(task, theta), strict=True
    ):
        expected = tensor.grad if tensor.requires_grad else torch.from_numpy(before).view(tensor.shape) - tensor
        np.testing.assert_allclose(part, expected.detach().reshape(-1), atol=1e-5, err_msg=name)
    assert np.abs(found[buffer_mask(task)]).max() > 0.01


def _split(task, theta):
    ends = np.cumsum([tensor.size for tensor in task.layout])
    return [theta[end - tensor.size : end] for end, tensor in zip(ends, task.layout, strict=True)]


IS_BUFFER = np.array([False, True, False, True])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: asynchronous.Aggregation(asynchronous.Config(learning_rate=0.1), np.zeros(4, "f4")),
        lambda: asynchronous.Aggregation(
            asynchronous.Config(learning_rate=0.1, staleness="per-parameter"), np.zeros(4, "f4")
        ),
        lambda: stale_synchronous.Aggregation(stale_synchronous.Config(learning_rate=0.1), np.zeros(4, "f4")),
        lambda: buffered.Aggregation(buffered.Config(learning_rate=0.1, count=1), np.zeros(4, "f4")),
        lambda: synchronous.Aggregation(synchronous.Config(learning_rate=0.1), np.zeros(4, "f4")),
        lambda: synchronous.Aggregation(synchronous.Config(learning_rate=0.1, momentum=0.9), np.zeros(4, "f4")),
    ],
)
def test_no_learning_rate_and_no_momentum_is_for_them(make, sparse):
    """They move by all of their change, each time."""
    server = make()
    server.is_buffer = IS_BUFFER
    server.joined("a")
    server.pulled("a")
    update = ModelUpdate(4, np.arange(4) if sparse else None, np.array([1.0, 2.0, 3.0, 4.0], "f4"))
    server.push("a", update, server.version)

    np.testing.assert_allclose(server.theta, [-0.1, -2.0, -0.3, -4.0], rtol=1e-6)
    server.pulled("a")
    server.push(
        "a", ModelUpdate(4, np.array([1]) if sparse else None, np.zeros(1 if sparse else 4, "f4")), server.version
    )
    np.testing.assert_allclose(server.theta[IS_BUFFER], [-2.0, -4.0], rtol=1e-6)


def test_local_steps_move_them_as_the_worker_did():
    """Whatever the learning rate, momentum, and what holds parameters back."""
    config = local_steps.Config(learning_rate=0.5, momentum=0.9, proximal=0.1)

    def slope(theta, batch):
        return np.array([1.0, 0.25, 1.0, -0.5], "f4"), 1.0

    gone, _ = ran(local_steps.LocalWork(config, IS_BUFFER), slope, np.zeros(4, "f4"), [np.arange(1)] * 3)

    np.testing.assert_allclose(gone[IS_BUFFER], [0.75, -1.5], rtol=1e-6)


@pytest.mark.parametrize("name", ["none", "top-k", "int8", "sign", "powersgd-local", "dgc"])
def test_they_are_sent_whole(task, name):
    """Exactly, beside whatever is sent of the parameters."""
    is_buffer = buffer_mask(task)
    compression = compression_of(Method(name="", parts={"compression": Part(name=name, settings={})}), task)
    vector = np.random.default_rng(1).normal(size=len(is_buffer)).astype("f4")
    pieces, _ = compression.compress(vector, None, StepContext(0))
    update = compression.restore(pieces)
    whole = np.zeros(update.size, "f4")
    whole[slice(None) if update.indices is None else update.indices] = update.values

    np.testing.assert_array_equal(whole[is_buffer], vector[is_buffer])
    assert update.size == len(is_buffer)
    if update.indices is not None:
        assert (np.diff(update.indices) > 0).all()
        assert len(update.indices) < len(is_buffer)
