"""What travels is what is trained: own models with constants, and models in shards that begin with an embedding."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from quick_runs import run as run_quickly

from edgebed.learning.models import registry as models
from edgebed.running.results import Trial

MODULE = """
import numpy as np
import torch
from torch import nn

def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400).astype("u1")
    x = (np.eye(3)[y][:, :, None] + rng.normal(0, 0.3, (400, 3, 4))).astype("f4")
    return x[:300], y[:300], x[300:], y[300:]

def tokens():
    '''Six token numbers; most of them are the label's own.'''
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400).astype("u1")
    x = np.where(rng.random((400, 6)) < 0.7, y[:, None], rng.integers(0, 8, (400, 6))).astype("f4")
    return x[:300], y[:300], x[300:], y[300:]

class Encoded(nn.Module):
    '''Adds a long table of positions, as torch's own tutorial has it.'''

    def __init__(self):
        super().__init__()
        self.register_buffer("table", 0.1 * torch.sin(torch.arange(20_000.0)).view(5_000, 4), persistent=False)
        self.last = nn.Linear(12, 3)

    def forward(self, x):
        return self.last((x + self.table[: x.size(1)]).flatten(1))

class Masked(nn.Module):
    '''Attends to what came before.'''

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.triu(torch.full((3, 3), float("-inf")), diagonal=1))
        self.query, self.value, self.last = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(24, 3)

    def forward(self, x):
        query = self.query(x)
        scores = query @ query.transpose(1, 2) + self.mask
        return self.last((scores.softmax(-1) @ self.value(x)).flatten(1))

def backbone(with_weights=False):
    '''Frozen layers that let nothing through, but for the weights that only the controller has.'''
    model = nn.Sequential(
        nn.Sequential(nn.Flatten(), nn.Linear(12, 12, bias=False)),
        nn.Sequential(nn.Linear(12, 12), nn.ReLU()),
        nn.Sequential(nn.Linear(12, 12), nn.BatchNorm1d(12), nn.ReLU()),
        nn.Linear(12, 3),
    )
    nn.init.constant_(model[0][1].weight, 0.0)
    if with_weights:
        nn.init.eye_(model[0][1].weight)
    model[0].requires_grad_(False)
    model[2][0].requires_grad_(False)
    return model

class Numbers(nn.Embedding):
    def forward(self, x):
        return super().forward(x.long())

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.down.weight = self.up.weight

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))

def embedded():
    '''Tokens, what mixes them with weights that it uses twice, and scores.'''
    return nn.Sequential(Numbers(8, 6), Tied(), nn.Sequential(nn.Flatten(), nn.Linear(36, 3)))
"""


QUICK = {"optimizer": {"learning_rate": 0.02}}
Train = Callable[..., Trial]


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Train]:
    """Trains one of the user's models, in `travelnets.py` of the present folder, in virtual time."""
    (tmp_path / "travelnets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(model: str, method: Any, updates: int, workers: int = 2, data: str = "data") -> Trial:
        task = {"data": f"travelnets:{data}", "model": f"travelnets:{model}", "batch_size": 20, "gradient_time": "1ms"}
        scenario = {
            "name": "travels", "question": "What travels?", "task": task, "method": method,
            "fleet": {"edge": {"count": workers}}, "evaluation": {"every": f"{updates} updates"},
            "stop": {"updates": updates},
        }  # fmt: skip
        (only,) = run_quickly(scenario, runtime="simulation", runs_dir=tmp_path).trials.values()
        return only

    yield run
    sys.modules.pop("travelnets", None)


def push_bytes(trial: Trial) -> float:
    """Of one push, on average."""
    return trial.summary.server.ingress_bytes / trial.summary.updates


def test_a_table_of_positions_is_no_traffic(train: Train) -> None:
    """Of 80 kB of sines nothing is pushed: 39 parameters, of which AdaComp sends a few."""
    found = train("Encoded", "adacomp", 20)

    assert found.checkpoint().shape == (39,)
    assert push_bytes(found) < 100


def test_a_mask_of_minus_infinity_stays_what_it_is(train: Train) -> None:
    """The model learns, and nothing in it is ever NaN."""
    found = train("Masked", {"preset": "asgd", "aggregation": {"learning_rate": 0.5}}, 150)

    assert np.isfinite(found.checkpoint()).all()
    assert found.summary.best["accuracy"] > 0.9
    assert torch.isneginf(found.model().get_buffer("mask")).sum() == 3


def test_a_frozen_backbone_comes_from_the_controller_and_does_not_travel(train: Train) -> None:
    """Workers and evaluator have its weights, else accuracy would be that of chance; a push has what is trained."""
    found = train("backbone", {"preset": "sync-sgd", "aggregation": {"learning_rate": 0.5}}, 100)
    parameters = (12 * 12 + 12) + 2 * 12 + (12 * 3 + 3)

    assert found.checkpoint().shape == (parameters + 2 * 12,)
    assert 4 * (parameters + 24) < push_bytes(found) < 4 * (parameters + 24) + 150
    assert found.summary.best["accuracy"] > 0.9
    model = found.model()
    x, y = (torch.from_numpy(array) for array in sys.modules["travelnets"].data()[2:])
    assert (model(x).argmax(1) == y).float().mean().item() == pytest.approx(found.summary.final["accuracy"])


@pytest.mark.parametrize("method", ["back-propagation", "decoupled-greedy"])
def test_shards_have_the_constants_of_their_own_layers(train: Train, method: str) -> None:
    """With a first layer that is all frozen, and one of whose tensors some are; running means are trained."""
    found = train("backbone", {"preset": method} | QUICK, 60, workers=4)
    (server, *_), shards = found.plan.nodes, [node.shard for node in found.plan.workers()]

    assert dict(server.shard.sizes) == {"edge-0": 0, "edge-1": 156, "edge-2": 48, "edge-3": 39}
    assert found.summary.best["accuracy"] > 0.9
    assert found.checkpoint().shape == (243,)
    costs = [dict(shard.costs) for shard in shards]
    assert costs[0]["backward"] == pytest.approx(costs[0]["forward"])
    assert costs[1]["backward"] == pytest.approx(2 * costs[1]["forward"])


LAYERWISE: list[dict[str, Any]] = [
    {"preset": "back-propagation"},
    {"preset": "back-propagation", "learning": {"micro_batches": 4}},
    {"preset": "synthetic-gradients"},
    {"preset": "synthetic-inputs"},
    {"preset": "synthetic-inputs", "learning": {"match": "batch"}},
    {"preset": "direct-minimisation"},
    {"preset": "decoupled-greedy"},
]


@pytest.mark.parametrize("method", LAYERWISE, ids=str)
def test_a_model_that_begins_with_an_embedding_is_trained_in_shards(train: Train, method: dict[str, Any]) -> None:
    """The embedding learns as well; another shard uses its weights twice, and has them once."""
    found = train("embedded", method | QUICK, 60, workers=3, data="tokens")
    begun = models.initial_parameters(found.plan.nodes[0].task, found.plan.seed)

    assert found.checkpoint().shape == (48 + 36 + 111,)
    assert not np.array_equal(found.checkpoint()[:48], begun[:48])
    if method["preset"] != "synthetic-inputs":  # by a straight line no token number says what its embedding is
        assert found.summary.best["accuracy"] > 0.8
