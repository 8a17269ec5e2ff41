"""The pieces of layer-wise training: what a shard computes, and that shards together compute what the model does."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.core.errors import ScenarioError
from edgebed.learning.models.layered import LAYERED_MODELS
from edgebed.learning.models.layers import layers_of, shards_of
from edgebed.learning.models.token_models import TOKEN_MODELS
from edgebed.learning.objectives.classification import Classification, Config
from edgebed.learning.objectives.next_token import NextToken
from edgebed.learning.optimizers import Optimizer, optimizer
from edgebed.learning.shards.building import shard_network
from edgebed.learning.shards.gradient_modules import GradientModule, InputModule, LocalHead
from edgebed.learning.shards.network import ShardNetwork
from edgebed.learning.trained import Trained
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario

SHAPE, CLASSES, BATCH = (1, 12, 12), 10, 10
ADAM = optimizer(name="adam", learning_rate=1e-2)
OPTIMIZERS = [ADAM, optimizer(name="sgd", learning_rate=0.1), optimizer(name="momentum", learning_rate=0.05)]


TOKEN_SHAPE, VOCABULARY = (9,), 7
TOKEN_SIZES = {"transformer-untied": {"width": 8, "layers": 2, "heads": 2}, "gru": {"width": 8, "layers": 2}}


def data(step: int, size: int = BATCH) -> tuple[np.ndarray, np.ndarray]:
    """A mini-batch; every step has its own."""
    draw = np.random.default_rng(step)
    return draw.random((size, *SHAPE), dtype=np.float32), draw.integers(0, CLASSES, size)


def given(step: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The same, as a shard is given it."""
    x, labels = data(step)
    return x, {"": labels}


def tokens(step: int) -> tuple[np.ndarray, np.ndarray]:
    """A mini-batch of tokens, and those that follow."""
    text = np.random.default_rng(step).integers(0, VOCABULARY, (BATCH, TOKEN_SHAPE[0] + 1))
    return text[:, :-1].copy(), text[:, 1:].copy()


def model_of(name: str) -> nn.Sequential:
    """A small one, always the same."""
    torch.manual_seed(5)
    if name in TOKEN_SIZES:
        return TOKEN_MODELS[name](TOKEN_SHAPE, VOCABULARY, **TOKEN_SIZES[name])
    build = LAYERED_MODELS[name]
    return build(SHAPE, CLASSES, 8) if name in ("four-layer", "eight-layer") else build(SHAPE, CLASSES)


def shards_with(name: str, cuts: tuple[int, ...], optimizer: Optimizer) -> list[ShardNetwork]:
    """The model of that name in pieces."""
    return [ShardNetwork(layers, optimizer) for layers in shards_of(layers_of(name, model_of(name)), cuts)]


def through(shards: list[ShardNetwork], at: BatchPart, x: np.ndarray, labels: np.ndarray, share: float = 1.0) -> float:
    """Forward and back through all shards; the loss."""
    for shard in shards:
        x = shard.forward(at, x, {"": labels})
    gradient, loss = shards[-1].final_gradient(at, share)
    for shard in reversed(shards):
        gradient = shard.backward(at, gradient)
    return loss


def whole(name: str, optimizer: Optimizer, steps: int) -> np.ndarray:
    """The weights that plain training in one piece leaves."""
    model = Trained(model_of(name), optimizer)
    for step in range(steps):
        x, labels = data(step)
        torch.manual_seed(step)
        loss = F.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(labels))
        model.step(torch.autograd.grad(loss, model.parameters))
    return np.concatenate([weights for layer in layers_of(name, model.module) for weights in
                           [Trained(layer, optimizer).weights()]])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "cuts"),
    [("four-layer", (1, 2, 3)), ("four-layer", (2,)), ("eight-layer", (1, 4, 6)), ("sigmoid-200", (1,))],
)
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda each: each.descent.config.name)
def test_shards_learn_what_the_whole_model_learns(name, cuts, optimizer) -> None:
    """Bit for bit, batch normalisation's running means included."""
    shards = shards_with(name, cuts, optimizer)
    for step in range(20):
        x, labels = data(step)
        through(shards, BatchPart(step), x, labels)
        for shard in shards:
            shard.step()

    weights = [
        Trained(layer, optimizer).weights() for shard in shards for layer in layers_of(name, shard.layers.module)
    ]
    np.testing.assert_array_equal(np.concatenate(weights), whole(name, optimizer, 20))
    assert all(not shard.passes for shard in shards)


@pytest.mark.parametrize(
    ("name", "cuts"),
    [("transformer-untied", (1, 2, 3)), ("transformer-untied", (2,)), ("gru", (1, 2, 3)), ("gru", (3,))],
)
def test_shards_of_tokens_learn_what_the_whole_model_learns(name, cuts) -> None:
    """Bit for bit, with a loss for each token; tokens themselves are given a gradient of 0."""
    layers = layers_of(name, model_of(name))
    shards = [ShardNetwork(part, ADAM, objective=NextToken()) for part in shards_of(layers, cuts)]
    whole_model = Trained(model_of(name), ADAM)
    for step in range(10):
        x, targets = tokens(step)
        loss = F.cross_entropy(whole_model(torch.from_numpy(x)).flatten(0, 1), torch.from_numpy(targets).flatten())
        whole_model.step(torch.autograd.grad(loss, whole_model.parameters))
        h = x
        for shard in shards:
            h = shard.forward(BatchPart(step), h, {"": targets})
        gradient, found = shards[-1].final_gradient(BatchPart(step))
        for shard in reversed(shards):
            gradient = shard.backward(BatchPart(step), gradient)
            shard.step()
        assert found == pytest.approx(loss.item(), rel=1e-6)
        assert gradient.shape == x.shape
        assert not gradient.any()

    np.testing.assert_array_equal(np.concatenate([shard.weights() for shard in shards]), whole_model.weights())


@pytest.mark.parametrize("name", TOKEN_SIZES)
def test_a_head_of_tokens_teaches_its_layers_alone(name) -> None:
    """Scores at each place, of the outputs there."""
    first = shards_of(layers_of(name, model_of(name)), (2,))[0]
    head = LocalHead((*TOKEN_SHAPE, 8), (*TOKEN_SHAPE, VOCABULARY))
    shard = ShardNetwork(first, optimizer(learning_rate=3e-2), objective=NextToken(), head=head)
    x, _ = tokens(0)
    losses = []
    for step in range(60):
        at = BatchPart(step)
        shard.forward(at, x, {"": (x * 3 + 1) % VOCABULARY})
        gradient, loss = shard.head_gradient(at)
        shard.backward(at, gradient)
        shard.step()
        losses.append(loss)

    assert losses[0] == pytest.approx(np.log(VOCABULARY), rel=0.3)
    assert losses[-1] < 0.3 * losses[0]


def test_a_head_that_cannot_make_the_scores_is_refused() -> None:
    """A layer without places has no scores for each of them; one with places may have scores of the whole."""
    with pytest.raises(ScenarioError, match=r"scores of an example, \(9, 7\), of \(9, features\); .* gives \(32,\)"):
        LocalHead((32,), (*TOKEN_SHAPE, VOCABULARY))

    assert LocalHead((*TOKEN_SHAPE, 8), (CLASSES,))(torch.zeros(3, *TOKEN_SHAPE, 8)).shape == (3, CLASSES)


def test_layers_that_share_their_weights_are_not_cut() -> None:
    """What to take in the place of a built-in one is said."""
    torch.manual_seed(5)
    tied = TOKEN_MODELS["transformer"](TOKEN_SHAPE, VOCABULARY, 8, 2, 2)
    with pytest.raises(
        ScenarioError, match=r"layers 0 and 3 share the parameter '1.weight'; .* transformer-untied has"
    ):
        layers_of("transformer", tied)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda each: each.descent.config.name)
def test_a_shard_that_goes_on_from_its_state_learns_what_it_would_have(optimizer) -> None:
    """Whatever its optimizer remembers, be it nothing."""
    (undisturbed,), (restored,) = (shards_with("four-layer", (), optimizer) for _ in range(2))
    for step in range(4):
        through([undisturbed], BatchPart(step), *data(step))
        undisturbed.step()
        if step == 1:
            backup = undisturbed.state()
    restored.restore(backup)
    for step in range(2, 4):
        through([restored], BatchPart(step), *data(step))
        restored.step()
    assert np.array_equal(restored.state(), undisturbed.state())


def test_micro_batches_add_up_to_the_batch() -> None:
    """Where nothing depends on the rest of the batch, up to rounding (Huang et al. 2019, GPipe)."""
    cuts = (1,)
    whole_batch, parts = (shards_with("sigmoid-200", cuts, OPTIMIZERS[1]) for _ in range(2))
    for step in range(5):
        x, labels = data(step)
        loss = through(whole_batch, BatchPart(step), x, labels)
        losses = [through(parts, BatchPart(step, k), x[k::5], labels[k::5], share=0.2) for k in range(5)]
        for shard in (*whole_batch, *parts):
            shard.step()
        assert sum(losses) == pytest.approx(loss, rel=1e-5)

    for one, other in zip(whole_batch, parts, strict=True):
        np.testing.assert_allclose(one.layers.weights(), other.layers.weights(), rtol=1e-4, atol=1e-6)


def test_a_late_gradient_belongs_to_the_parameters_of_its_step() -> None:
    """Though steps have been made since the forward pass."""
    shard, fresh = (shards_with("four-layer", (1,), ADAM)[0] for _ in range(2))
    x, labels = data(0)
    outputs = shard.forward(BatchPart(0), x, {"": labels})
    for step in (1, 2):
        again = shard.forward(BatchPart(step), *given(step))
        shard.backward(BatchPart(step), np.ones_like(again))
        shard.step()
    late = shard.backward(BatchPart(0), np.ones_like(outputs))

    same = fresh.forward(BatchPart(0), x, {"": labels})
    np.testing.assert_array_equal(same, outputs)
    np.testing.assert_array_equal(fresh.backward(BatchPart(0), np.ones_like(same)), late)


def test_a_gradient_may_pass_without_teaching() -> None:
    """And another may follow, for the same graph."""
    shard = shards_with("four-layer", (1,), ADAM)[0]
    outputs = shard.forward(BatchPart(0), *given(0))
    passed = shard.backward(BatchPart(0), np.ones_like(outputs), keep=True, learn=False)
    before = shard.layers.weights()
    taught = shard.backward(BatchPart(0), np.ones_like(outputs))
    shard.step()

    np.testing.assert_array_equal(passed, taught)
    assert not np.array_equal(shard.layers.weights(), before)


def with_module(shape: tuple[int, ...], **options) -> ShardNetwork:
    """A layer whose output has that shape, with a gradient module."""
    torch.manual_seed(3)
    if len(shape) == 3:
        layers = nn.Sequential(nn.Conv2d(SHAPE[0], shape[0], 3, padding="same"), nn.ReLU())
    else:
        layers = nn.Sequential(nn.Flatten(), nn.Linear(144, shape[0]), nn.ReLU())
    return ShardNetwork(layers, ADAM, gradient_module=GradientModule(shape, CLASSES, **options))


@pytest.mark.parametrize("shape", [(6,), (4, 12, 12)])
@pytest.mark.parametrize("options", [{}, {"hidden_layers": 0}, {"labels": False}, {"hidden": 7}], ids=str)
def test_a_gradient_module_predicts_nothing_at_first_and_then_what_it_was_taught(shape, options) -> None:
    """Its loss is that of B times the gradient, and falls."""
    shard = with_module(shape, **options)
    outputs = shard.forward(BatchPart(0), *given(0))
    assert not shard.synthetic_gradient(BatchPart(0)).any()
    target = np.random.default_rng(1).normal(0, 0.1, outputs.shape).astype(np.float32)
    losses = []
    for _ in range(30):
        losses.append(shard.teach(BatchPart(0), target))
        shard.forward(BatchPart(0), *given(0))

    assert losses[0] == pytest.approx(float(np.square(BATCH * target).sum()) / BATCH, rel=1e-4)
    assert losses[-1] < losses[0]
    assert shard.synthetic_gradient(BatchPart(0)).any()


@pytest.mark.parametrize("shape", [(6,), (4, 12, 12)])
def test_a_gradient_module_may_predict_the_gradient_of_the_mean_loss(shape) -> None:
    """Its loss is averaged over all entries, and what it gives out is what it predicts."""
    shard = with_module(shape, predicts="mini-batch")
    outputs = shard.forward(BatchPart(0), *given(0))
    target = np.random.default_rng(1).normal(0, 0.1, outputs.shape).astype(np.float32)
    first = shard.teach(BatchPart(0), target)
    shard.forward(BatchPart(0), *given(0))
    assert shard.predictor
    with torch.no_grad():
        predicted = shard.predictor.trained(*shard.predictor.untaught[BatchPart(0)])

    assert first == pytest.approx(float(np.square(target).mean()), rel=1e-4)
    np.testing.assert_array_equal(shard.synthetic_gradient(BatchPart(0)), predicted.numpy())


def test_a_gradient_module_that_knows_the_labels_tells_classes_apart() -> None:
    """The same output with another label is given another gradient."""
    shard = with_module((6,))
    for step in range(3):
        outputs = shard.forward(BatchPart(step), *given(step))
        shard.teach(BatchPart(step), np.random.default_rng(step).normal(0, 1, outputs.shape).astype(np.float32))
    same = torch.ones(CLASSES, 6)
    assert shard.predictor
    shard.predictor.see(BatchPart(9), same, torch.arange(CLASSES))

    assert len({tuple(row) for row in shard.synthetic_gradient(BatchPart(9)).tolist()}) == CLASSES


def test_a_gradient_module_of_a_linear_problem_finds_the_gradient() -> None:
    """Taught the true gradient of a softmax layer above, it comes close to it on new data."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Flatten(), nn.Linear(144, 6))
    module = GradientModule((6,), CLASSES, hidden=64)
    shard = ShardNetwork(layers, optimizer(learning_rate=1e-3), gradient_module=module)
    above = ShardNetwork(nn.Sequential(nn.Linear(6, CLASSES)), ADAM)
    errors = []
    for step in range(300):
        x, labels = data(step, 64)
        outputs = shard.forward(BatchPart(step), x, {"": labels})
        above.forward(BatchPart(step), outputs, {"": labels})
        gradient = above.backward(BatchPart(step), above.final_gradient(BatchPart(step))[0])
        error = np.square(shard.synthetic_gradient(BatchPart(step)) - gradient).sum() / np.square(gradient).sum()
        errors.append(error)
        shard.teach(BatchPart(step), gradient)

    assert errors[0] == 1.0
    assert np.mean(errors[-20:]) < 0.2


def test_a_local_head_teaches_its_layers_alone() -> None:
    """Decoupled greedy learning: the loss of its own falls without anybody above."""
    torch.manual_seed(0)
    layers = layers_of("four-layer", model_of("four-layer"))[0]
    shard = ShardNetwork(layers, ADAM, head=LocalHead((8, 6, 6), (CLASSES,)))
    x, labels = data(0)
    losses = []
    for step in range(30):
        shard.forward(BatchPart(step), x, {"": labels})
        gradient, loss = shard.head_gradient(BatchPart(step))
        shard.backward(BatchPart(step), gradient)
        shard.step()
        losses.append(loss)

    assert losses[-1] < 0.4 * losses[0]


def test_an_input_module_learns_the_inputs_that_came() -> None:
    """From the model's own inputs."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(6, CLASSES))
    shard = ShardNetwork(layers, ADAM, input_module=InputModule(SHAPE, (6,)), module_optimizer=optimizer())
    x, _ = data(0)
    target = np.random.default_rng(0).random((BATCH, 6), dtype=np.float32)
    losses = [shard.teach_inputs(x, target) for _ in range(200)]

    assert losses[-1] < 0.05 * losses[0]
    assert np.abs(shard.synthetic_inputs(x) - target).max() < 0.5


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_an_input_module_with_a_learning_rate_of_zero_stays_as_it_was_drawn(name) -> None:
    """It still says how far its prediction was from what came."""
    torch.manual_seed(2)
    shard = ShardNetwork(
        nn.Sequential(nn.Linear(6, 3)),
        ADAM,
        input_module=InputModule(SHAPE, (6,)),
        input_optimizer=optimizer(name=name, learning_rate=0.0),
    )
    assert shard.input_module is not None
    x, _ = data(0)
    target, drawn = np.random.default_rng(1).normal(size=(BATCH, 6)).astype(np.float32), shard.input_module.weights()
    losses = [shard.teach_inputs(x, target) for _ in range(3)]

    np.testing.assert_array_equal(shard.input_module.weights(), drawn)
    assert losses[0] == losses[-1] > 0


def test_the_squared_loss_is_that_of_the_softmax() -> None:
    """Tong et al. 2016: the mean over the batch of the squared distance from the label."""
    shard = ShardNetwork(
        nn.Sequential(nn.Flatten(), nn.Linear(144, CLASSES)),
        ADAM,
        objective=Classification(Config(loss="squared-softmax")),
    )
    x, labels = data(0)
    scores = shard.forward(BatchPart(0), x, {"": labels})
    _, loss = shard.final_gradient(BatchPart(0))
    softmax = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    assert loss == pytest.approx(np.square(softmax - np.eye(CLASSES)[labels]).sum() / BATCH, rel=1e-5)


def test_dropout_is_drawn_by_key() -> None:
    """The same step drops the same; another one something else."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Flatten(), nn.Linear(144, 50), nn.Dropout(0.5))
    shard = ShardNetwork(layers, ADAM, key=lambda at: 100 + at.step)
    x, labels = data(0)
    first = shard.forward(BatchPart(0), x, {"": labels})

    np.testing.assert_array_equal(shard.forward(BatchPart(0), x, {"": labels}), first)
    assert not np.array_equal(shard.forward(BatchPart(1), x, {"": labels}), first)


FIRST_STEP = """
import sys
import numpy as np
from torch import nn
from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.learning.optimizers import Optimizer, optimizer
from edgebed.learning.shards.network import ShardNetwork

shard = ShardNetwork(nn.Sequential(nn.Sequential(nn.Linear(4, 3), nn.ReLU())), optimizer(name="adam"))
before = set(sys.modules)
shard.forward(BatchPart(0), np.ones((2, 4), np.float32), {"": np.zeros(2, np.int64)})
shard.backward(BatchPart(0), np.ones((2, 3), np.float32))
shard.step()
print(len([name for name in set(sys.modules) - before if not name.startswith("torch.nested")]), "sympy" in sys.modules)
"""


@pytest.mark.slow
def test_the_first_step_loads_no_symbolic_mathematics():
    """Torch would for a gradient that it is given: half a second of a core in each shard, while all others wait."""
    told = subprocess.run([sys.executable, "-c", FIRST_STEP], capture_output=True, text=True, timeout=60, check=True)
    count, has_symbols = told.stdout.split()

    assert has_symbols == "False"
    assert int(count) < 20


def test_the_settings_of_a_method_reach_its_modules() -> None:
    """From the scenario to the network that a shard builds."""
    learning = {"predicts": "mini-batch", "hidden": 7, "labels": False}
    given = {
        "name": "modules",
        "task": {"data": "synthetic", "model": "four-layer"},
        "method": {"preset": "synthetic-gradients", "learning": learning},
        "fleet": {"edge": {"count": 2}},
        "shards": {"cuts": [2]},
        "stop": {"updates": 1},
    }
    (trial,) = plan_trials(load_scenario(given, ()))
    predictor = shard_network(trial.plan.node("edge-0")).predictor
    assert predictor
    module = predictor.trained.module
    assert isinstance(module, GradientModule)

    assert (module.predicts, module.classes, module.net[0].out_features) == ("mini-batch", 0, 7)


TOKENS = {
    "name": "tokens",
    "task": {
        "data": "token_data:walk", "model": "transformer-untied", "width": 8, "layers": 2, "heads": 2,
        "objective": "next-token",
    },
    "fleet": {"edge": {"count": 2}},
    "stop": {"updates": 1},
}  # fmt: skip
NO_LABEL = r"see the label of each example, one whole number; the targets here are int64 of shape \(16,\)"
NO_FLOATS = r"input modules are dense layers, .*; the inputs here are int64 of shape \(16,\)"


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("synthetic-gradients", [NO_LABEL]),
        ("synthetic-inputs", [NO_LABEL, NO_FLOATS]),
        ({"preset": "synthetic-inputs", "learning": {"labels": False}}, [NO_FLOATS]),
    ],
)
def test_modules_that_cannot_take_tokens_are_refused(method, says) -> None:
    """All at once, where the method stands, with what to do."""
    with pytest.raises(ScenarioError) as caught:
        plan_trials(load_scenario(TOKENS | {"method": method}, ()))

    for problem, sentence in zip(caught.value.problems, says, strict=True):
        assert problem.startswith("method: ")
        assert re.search(sentence, problem)
        assert "back-propagation or decoupled-greedy" in problem


@pytest.mark.parametrize(
    "method", [{"preset": "synthetic-gradients", "learning": {"labels": False}}, "decoupled-greedy"]
)
def test_what_lies_beside_layers_of_tokens_is_built(method) -> None:
    """Modules without labels take whole outputs, and heads the places."""
    (trial,) = plan_trials(load_scenario(TOKENS | {"method": method}, ()))
    network, x = shard_network(trial.plan.node("edge-0")), np.zeros((4, 16), np.int64)
    outputs = network.forward(BatchPart(0), x, {"": x})

    if network.head:
        assert network.head(torch.from_numpy(outputs)).shape == (4, 16, 12)
    else:
        assert network.synthetic_gradient(BatchPart(0)).shape == outputs.shape == (4, 16, 8)
