"""What of a model is trained and what is constant: found by training, packed for nodes, shared where it is shared."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tasks import examples_of, one_array
from torch import nn

from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Task
from edgebed.learning import weights
from edgebed.learning.models import registry as models
from edgebed.learning.network import Network
from edgebed.learning.optimizers import optimizer
from edgebed.learning.trained import Trained, gradients

USERS = """
import numpy as np
import torch
from torch import nn

class Linear(nn.Linear):
    def __init__(self):
        super().__init__(4, 3)

class Masked(Linear):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.triu(torch.full((4, 4), float("-inf")), diagonal=1))

    def forward(self, x):
        return super().forward(torch.softmax(x[:, None] + self.mask, dim=-1).sum(1))

class Positions(Linear):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(400.0).view(100, 4), persistent=False)
        self.register_buffer("ids", torch.arange(4).expand(2, 4))

    def forward(self, x):
        return super().forward(x + self.table[0] * self.ids[1])

class Cached(Linear):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3), persistent=False)

    def forward(self, x):
        self.last.copy_(super().forward(x).detach()[0])
        return super().forward(x)

class Replaced(Linear):
    '''Puts another tensor in the place of its running mean.'''

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4, dtype=dtype))

    def forward(self, x):
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x.mean(0).to(self.mean)
        return super().forward(x - self.mean.float())

class Follower(Linear):
    '''Keeps a slow copy of its weights.'''

    def __init__(self):
        super().__init__()
        self.register_buffer("slow", self.weight.detach().clone())

    def forward(self, x):
        self.slow += 0.1 * (self.weight.detach() - self.slow)
        return super().forward(x)

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.last = nn.Linear(4, 5, bias=False), nn.Linear(5, 4, bias=False), nn.Linear(4, 3)
        self.down.weight = self.up.weight

    def forward(self, x):
        return self.last(nn.functional.linear(self.up(x), self.down.weight.t()))

def normal():
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))

def double():
    return Replaced(torch.float64)

class Seen(Linear):
    '''Lets pass what training has seen.'''

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4, dtype=torch.int64))

    def forward(self, x):
        self.seen += (x > 0).sum(0)
        return super().forward(x * (self.seen > 0))

def frozen(with_weights=False):
    model = nn.Sequential(nn.Linear(4, 5).half(), Widened(), nn.Linear(5, 3))
    model[0].requires_grad_(False).weight.copy_(torch.full((5, 4), 0.5 * with_weights))
    return model

class Widened(nn.Module):
    def forward(self, x):
        return x.float()

class Halved(nn.Sequential):
    def forward(self, x):
        return super().forward(x.half())

def half(with_weights=False):
    return Halved(*frozen(with_weights))

def all_frozen():
    return Linear().requires_grad_(False)

def fickle(with_weights=False):
    model = normal()
    model[0].requires_grad_(not with_weights)
    return model
"""
X = np.random.default_rng(0).random((8, 4), np.float32)
Y = np.arange(8) % 3
LINEAR = ["weight", "bias"]


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder with the user's `userweights.py`."""
    (tmp_path / "userweights.py").write_text(USERS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield str(tmp_path)
    sys.modules.pop("userweights", None)


def task_of(function: str, folder: str) -> Task:
    """Three classes of four numbers."""
    name = f"userweights:{function}"
    return Task(
        model=name, inputs=one_array((4,)), outputs=3, layout=models.layout(name, one_array((4,)), 3, (folder,)),
        batch_size=4, gradient_time_s=0.01, python_path=(folder,),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("function", "trained", "constant"),
    [
        ("Masked", LINEAR, ["mask"]),
        ("Positions", LINEAR, ["table", "ids"]),
        ("Cached", LINEAR, ["last"]),
        ("Replaced", [*LINEAR, "mean"], []),
        ("Follower", [*LINEAR, "slow"], []),
        ("Tied", ["up.weight", "last.weight", "last.bias"], []),
        ("half", ["2.weight", "2.bias"], ["0.weight", "0.bias"]),
        ("normal", ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "2.weight",
                    "2.bias"], []),
    ],
)  # fmt: skip
def test_what_training_changes_is_trained_and_the_rest_is_constant(
    users: str, function: str, trained: list[str], constant: list[str]
) -> None:
    """By the tensors' names, in order: those that the layout has, and those that a node's model has besides."""
    task = task_of(function, users)
    model = models.build_for(task)

    assert [tensor.name for tensor in task.layout] == trained
    assert [weight.name for weight in weights.trained(model)] == trained
    assert [weight.name for weight in weights.constants(model)] == constant


def test_finding_that_out_draws_nothing_from_torchs_generator(users: str) -> None:
    """What is drawn next is what it would have been."""
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    task_of("normal", users)

    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("all_frozen", "every parameter is frozen"),
        ("double", "training changes the buffer 'mean', which is torch.float64; only float32"),
        ("Seen", "training changes the buffer 'seen', which is torch.int64; only float32"),
    ],
)
def test_a_model_whose_training_cannot_be_exchanged_is_refused(users: str, function: str, says: str) -> None:
    """When it is planned, with the reason."""
    with pytest.raises(ScenarioError, match=says):
        task_of(function, users)


def test_a_model_that_is_another_one_where_its_weights_count_is_refused(users: str) -> None:
    """Nodes could do nothing with what it begins with."""
    task = task_of("fickle", users)

    with pytest.raises(ScenarioError, match="must not depend on `with_weights`"):
        models.initial_model(task, 1)


@pytest.mark.parametrize("function", ["Masked", "Cached", "normal", "half"])
def test_what_was_trained_is_saved_under_the_names_of_the_authors_model(users: str, function: str) -> None:
    """Buffers that training leaves alone are in its `state_dict` where the author's are, so the author's loads it."""
    task = task_of(function, users)
    theta = models.initial_parameters(task, 1) + np.float32(0.5)
    own = models.build(task.model, (4,), 3, (users,))

    own.load_state_dict(models.trained_model(task, 1, theta).state_dict())

    weights.hold_constant(own, {tensor.name for tensor in task.layout})
    np.testing.assert_array_equal(weights.flat(own), theta)


def test_a_models_constants_reach_another_bit_for_bit(users: str) -> None:
    """Half-precision weights that only the first one was given."""
    task = task_of("half", users)
    known, other = models.initial_model(task, 1), models.build_for(task)
    assert not np.array_equal(weights.packed(known), weights.packed(other))

    weights.unpack(other, weights.packed(known))

    assert np.array_equal(weights.packed(known), weights.packed(other))
    assert torch.equal(other.get_parameter("0.weight"), torch.full((5, 4), 0.5, dtype=torch.float16))
    with pytest.raises(ValueError, match="constants of 3 bytes for a model with 50"):
        weights.unpack(other, np.zeros(3, np.uint8))


def test_infinities_truths_and_repeated_rows_are_packed_like_any_number() -> None:
    """A row that torch keeps once takes as many bytes as the rows that it stands for."""
    module, other = nn.Module(), nn.Module()
    for each in (module, other):
        each.register_buffer("mask", torch.tensor([float("-inf"), float("nan"), 1.0]), persistent=False)
        each.register_buffer("which", torch.tensor([True, False]))
        each.register_buffer("ids", torch.arange(3).expand(2, 3))
    other.which.logical_not_()
    weights.unpack(other, weights.packed(module))

    assert weights.packed(module).size == 12 + 2 + 48
    assert other.which.tolist() == [True, False]
    assert other.ids.tolist() == [[0, 1, 2]] * 2


def test_a_network_computes_with_the_constants_that_it_is_given(users: str) -> None:
    """Without the frozen weights all hidden values are equal, and the gradient is another one."""
    task = task_of("half", users)
    beginning = models.initial_model(task, 1)
    theta = weights.flat(beginning)
    found, _ = Network(task, examples_of(X, Y), weights.packed(beginning)).gradient(theta, np.arange(4))
    without, _ = Network(task, examples_of(X, Y)).gradient(theta, np.arange(4))
    loss = nn.functional.cross_entropy(beginning(torch.from_numpy(X[:4])), torch.from_numpy(Y[:4]))
    expected = torch.autograd.grad(loss, [weight.tensor for weight in weights.trained(beginning)])

    np.testing.assert_allclose(found, torch.cat([each.reshape(-1) for each in expected]), rtol=1e-4, atol=1e-7)
    assert not np.allclose(found, without)


def test_a_running_mean_that_is_replaced_moves_like_one_that_is_written(users: str) -> None:
    """By half of the way to the batch's mean, each time from where the model has it."""
    task = task_of("Replaced", users)
    network, theta = Network(task, examples_of(X, Y)), models.initial_parameters(task, 1)
    for _ in range(2):
        gradient, _ = network.gradient(theta, np.arange(4))
        np.testing.assert_allclose(gradient[-4:], -0.5 * X[:4].mean(0), rtol=1e-6)
    shard = Trained(models.build_for(task), optimizer())
    shard.begin(theta)
    shard(torch.from_numpy(X[:4]))

    np.testing.assert_allclose(shard.weights()[-4:], 0.5 * X[:4].mean(0), rtol=1e-6)
    shard.begin(theta)
    np.testing.assert_array_equal(shard.weights(), theta)


def test_tied_weights_are_one_tensor_and_stay_tied(users: str) -> None:
    """In a worker's network, in a shard's, and in a model that is given what was trained."""
    task = task_of("Tied", users)
    theta = models.initial_parameters(task, 1)
    moved = theta + np.float32(0.5)
    network, shard, model = (
        Network(task, examples_of(X, Y)),
        Trained(models.build_for(task), optimizer()),
        models.build_for(task),
    )
    by_network, _ = network.gradient(moved, np.arange(4))
    shard.begin(moved)
    weights.fill(model, moved)
    for each in (shard.module, model):
        loss = nn.functional.cross_entropy(each(torch.from_numpy(X[:4])), torch.from_numpy(Y[:4]))
        found = torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, list(each.parameters()))])
        np.testing.assert_allclose(by_network, found, rtol=1e-5, atol=1e-7)
        assert each.get_parameter("up.weight") is each.get_parameter("down.weight")

    assert theta.size == 20 + 12 + 3
    with pytest.raises(ValueError, match="weights of shape"):
        weights.fill(model, theta[1:])


def test_outputs_that_do_not_follow_their_inputs_have_a_gradient_of_zero() -> None:
    """Through token numbers to an embedding, and through a frozen one."""
    numbers = torch.tensor([[1.0, 2.0]]).requires_grad_()
    embedding = nn.Embedding(3, 2)
    outputs = embedding(numbers.long())
    by_inputs, by_weight = gradients(outputs, torch.ones(1, 2, 2), [numbers, embedding.weight])
    frozen = embedding.requires_grad_(False)(numbers.long())

    assert by_inputs.tolist() == [[0.0, 0.0]]
    assert by_weight.tolist() == [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
    assert [each.tolist() for each in gradients(frozen, torch.ones(1, 2, 2), [numbers])] == [[[0.0, 0.0]]]
