"""The gradient loss as a part of what layers learn from, against torch's own gradient of the total."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from edgebed.algorithms.layerwise.direct_minimisation import Config, rule
from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.learning.optimizers import optimizer
from edgebed.learning.shards.gradient_modules import GradientModule
from edgebed.learning.shards.network import ShardNetwork
from edgebed.roles.layerwise.shard_work import ForwardJob, ForwardResult, LearnJob, LearnResult, ShardWork
from edgebed.wire.tensors import decode_exchanged

B, CLASSES = 6, 3
WIDTHS = (5, 7, 4, CLASSES)
RATE = 0.5
SGD = optimizer(name="sgd", learning_rate=RATE)
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(B, 5)).astype(np.float32)
Y = DRAW.integers(0, CLASSES, B)
BATCH = np.arange(B)


def parts() -> tuple[list[nn.Sequential], list[GradientModule]]:
    """Three layers, and a linear module that has learnt something beside each but the last; always the same."""
    torch.manual_seed(1)
    layers = [nn.Sequential(nn.Linear(before, after), nn.Tanh()) for before, after in itertools.pairwise(WIDTHS)]
    modules = [GradientModule((width,), CLASSES, hidden_layers=0, labels=False) for width in WIDTHS[1:3]]
    for module in modules:
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=0.5)
    return layers, modules


def learnt_by_shards(weight: float) -> tuple[list[np.ndarray], list[float]]:
    """Of one step: each shard's change of its weights, as a gradient; and the modules' losses, from the bottom."""
    layers, modules = parts()
    networks = [
        ShardNetwork(layer, SGD, gradient_module=module) for layer, module in itertools.zip_longest(layers, modules)
    ]
    works = [ShardWork(network, rule(Config(weight=weight)), X, {"": Y}) for network in networks]
    before = [network.weights() for network in networks]
    h, gradient, losses = None, None, []
    for work in works:
        went = work.run(ForwardJob(BatchPart(0), BATCH, h))
        assert isinstance(went, ForwardResult)
        h = decode_exchanged(went.tensor, went.frames)
    for work in reversed(works):
        source = "direct" if work.networks.predictor else "loss"  # type: ignore[attr-defined]
        learnt = work.run(LearnJob(BatchPart(0), source, 1.0, True, False, gradient))  # type: ignore[arg-type]
        assert isinstance(learnt, LearnResult)
        gradient = decode_exchanged(learnt.tensor, learnt.frames)
        losses.insert(0, learnt.module_loss)
    after = [network.weights() for network in networks]
    return [(old - new) / RATE for old, new in zip(before, after, strict=True)], losses[:-1]  # type: ignore[return-value]


def learnt_in_one_piece(weight: float) -> tuple[list[np.ndarray], list[float]]:
    """The gradient of the total loss in one graph, as the report writes it."""
    layers, modules = parts()
    outputs = [torch.from_numpy(X)]
    for layer in layers:
        outputs.append(layer(outputs[-1]))
    total = F.cross_entropy(outputs[-1], torch.from_numpy(Y))
    losses: list[float] = []
    for h, module in zip(reversed(outputs[1:3]), reversed(modules), strict=True):
        (delta,) = torch.autograd.grad(total, h, retain_graph=True)  # a constant from here on
        loss = (B * delta - (h @ module.net[0].weight.T + module.net[0].bias)).square().sum() / B
        losses.insert(0, loss.item())
        total = total + weight * loss
    found = []
    for layer in layers:
        gradients = torch.autograd.grad(total, list(layer.parameters()), retain_graph=True)
        found.append(torch.cat([each.reshape(-1) for each in gradients]).numpy())
    return found, losses


@pytest.mark.parametrize("weight", [0.0, 0.01, 1.0, 3.0])
def test_shards_follow_the_gradient_of_the_total_loss(weight: float) -> None:
    """With linear modules, by autograd through the whole model; and each module's loss is told."""
    (gradients, losses), (expected, expected_losses) = learnt_by_shards(weight), learnt_in_one_piece(weight)

    for found, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=2e-6)
    assert losses == pytest.approx(expected_losses, rel=1e-4)


def test_with_a_weight_the_layers_learn_something_else() -> None:
    """Otherwise the test above would say nothing."""
    plain, direct = learnt_by_shards(0.0)[0], learnt_by_shards(1.0)[0]

    assert all(np.abs(one - other).max() > 1e-3 for one, other in zip(plain[:2], direct[:2], strict=True))
    np.testing.assert_array_equal(plain[2], direct[2])  # above all modules


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"weight": -0.1}, "weight: -0.1 is not a number from 0"),
        ({"weight": float("inf")}, "weight: inf"),
        ({"hidden_layers": -1}, "hidden_layers: -1 is below 0"),
        ({"hidden": 0}, "hidden: 0 is below 1"),
    ],
)
def test_settings_outside_their_range_are_refused(settings: dict, said: str) -> None:
    """With the field and what it was."""
    with pytest.raises(ValueError, match=said):
        Config(**settings)
