"""A task is tried with its own data before anything starts: tasks of any kind without mistakes are taken.

What is said of mistakes: `own objective` and `own data` in tests/shared/mistaken_scenarios.txt.
"""

import sys
from pathlib import Path

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario

MODULE = """
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from edgebed import DataSet, Objective, TaskMeasure

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(41, 4)).astype("f4"), RNG.integers(0, 3, 41)

def unlabelled():
    return DataSet(train=(X, None), test=(X[:7], None), outputs=4)

def unnumbered():
    return DataSet(train=(X, None), test=(X[:7], None))

def by_name():
    parts = ({"a": X, "b": Y}, {"label": Y, "size": X[:, 0]}, Y)
    return DataSet(train=parts, test=parts, validation=parts, outputs=3)

def alone():
    return X[:, :1], Y, X[:1, :1], Y[:1]

def net(input_shape, outputs):
    return nn.Linear(input_shape[0], outputs)

def fixed():
    return nn.Linear(4, 4)

class Both(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.look, self.head, self.size = nn.Embedding(3, 4), nn.Linear(8, outputs), nn.Linear(8, 1)

    def forward(self, a, b):
        hidden = torch.cat((a, self.look(b)), dim=1)
        return {"label": self.head(hidden), "size": self.size(hidden)}

def both(outputs):
    return Both(outputs)

class Own(Objective):
    measures = (TaskMeasure("loss"),)

    def sums(self, model, batch):
        return {"loss": (self.loss(model, batch) * batch.size, batch.size)}

class Contrastive(Own):
    '''Each example and a disturbed one of it are to be alike, and unlike the others of the batch.'''

    def loss(self, model, batch):
        one, other = (F.normalize(model(batch.inputs + noise)) for noise in (0.0, 0.1))
        return F.cross_entropy(one @ other.T, torch.arange(batch.size))

    def sums(self, model, batch):
        alike = F.cosine_similarity(model(batch.inputs), model(batch.inputs + 0.1))
        return {"loss": (alike.sum(), batch.size)}

class Auxiliary(Own):
    '''A second loss beside the first, of a dict of outputs and one of targets.'''

    def loss(self, model, batch):
        outputs = batch.outputs(model)
        first = F.cross_entropy(outputs["label"], batch.targets["label"])
        return first + 0.1 * F.mse_loss(outputs["size"][:, 0], batch.targets["size"])

class InTraining(Own):
    '''A loss, drawn in part, of a model that trains, and sums of one that does not.'''

    def loss(self, model, batch):
        assert model.training
        return (self.spread(model, batch) + 0.1 * torch.rand(())).mean()

    def sums(self, model, batch):
        assert not model.training
        return {"loss": (self.spread(model, batch).sum(), batch.size)}

    def spread(self, model, batch):
        return batch.outputs(model).square().mean(dim=1)

class Ranking(Own):
    '''Scores of pairs of examples, whose difference is a table on purpose.'''

    measures = (TaskMeasure("hits", unit="share", better="more"),)

    def loss(self, model, batch):
        scores = batch.outputs(model)[:, :1]
        return ((scores - scores[:, 0]).sigmoid() * (batch.targets[:, None] < batch.targets)).mean()

    def sums(self, model, batch):
        hits = (batch.outputs(model) > 0).sum(dim=0).numpy()
        return {"hits of each": (hits, batch.size)}

    def values(self, sums):
        total, weight = sums["hits of each"]
        return {"hits": np.float32(total.mean() / weight)}
"""


@pytest.mark.parametrize(
    ("data", "model", "objective", "headline"),
    [
        ("unlabelled", "net", "Contrastive", "loss"),
        ("unnumbered", "fixed", "Contrastive", "loss"),
        ("by_name", "both", "Auxiliary", "loss"),
        ("alone", "net", "Ranking", "hits"),
        ("unlabelled", "net", "InTraining", "loss"),
    ],
)
def test_a_task_without_mistakes_is_taken(tmp_path: Path, monkeypatch, data, model, objective, headline) -> None:
    """Without targets, of several inputs and targets, of a single example for testing, of a loss in training alone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "tried", raising=False)
    (tmp_path / "tried.py").write_text(MODULE)
    (tmp_path / "s.yaml").write_text(
        f'name: s\ntask: {{ data: "tried:{data}", model: "tried:{model}", objective: "tried:{objective}" }}\n'
        "method: asgd\nfleet: { edge: { count: 2 } }\nstop: { updates: 2 }\n"
    )
    (planned,) = plan_trials(load_scenario(tmp_path / "s.yaml"))
    assert [each.name for each in planned.plan.measures] == [headline]


def test_a_model_that_asks_for_its_outputs_needs_data_that_says_them(tmp_path: Path, monkeypatch) -> None:
    """Where there are no targets from which they follow."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "tried", raising=False)
    (tmp_path / "tried.py").write_text(MODULE)
    (tmp_path / "s.yaml").write_text(
        'name: s\ntask: { data: "tried:unnumbered", model: "tried:net", objective: "tried:Contrastive" }\n'
        "method: asgd\nfleet: { edge: { count: 2 } }\nstop: { updates: 2 }\n"
    )
    with pytest.raises(ScenarioError, match="does not say how many outputs tried:net has; return a DataSet with outp"):
        plan_trials(load_scenario(tmp_path / "s.yaml"))
