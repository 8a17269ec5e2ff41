"""A task is tried with its own data before anything starts: what is wrong is told with the line of the user's code."""

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

from edgebed import DataSet, Objective, TaskMeasure

def data(last=5):
    x, y = np.arange(60).reshape(20, 3) % 6, np.arange(20) % 3
    x[-1] = last
    return DataSet(train=(x, y), test=(x[:6], y[:6]))

class Tokens(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.embedding, self.head = nn.Embedding(6, 4), nn.Linear(4, outputs)

    def forward(self, x):
        return self.head(self.embedding(x).mean(dim=1))

def tokens(outputs):
    return Tokens(outputs)

def wrong_output():
    return Tokens(5)

class Two(Tokens):
    def forward(self, x):
        return super().forward(x), x

def tuple_output(outputs):
    return Two(outputs)

class Own(Objective):
    measures = (TaskMeasure(name="right", unit="share", better="more"),)

    def loss(self, model, batch):
        return nn.functional.cross_entropy(batch.outputs(model), batch.targets)

    def sums(self, model, batch):
        return {"right": ((batch.outputs(model).argmax(dim=1) == batch.targets).sum(), batch.size)}

class NoScalar(Own):
    def loss(self, model, batch):
        return batch.outputs(model)

class Constant(Own):
    def loss(self, model, batch):
        return torch.zeros(())

class Failing(Own):
    def loss(self, model, batch):
        return torch.zeros(2) @ batch.targets

class Means(Own):
    def sums(self, model, batch):
        return {"right": (batch.size**2 / 8, batch.size)}

class NoSum(Own):
    def sums(self, model, batch):
        return {"left": (1, batch.size)}

class Beyond(Own):
    def sums(self, model, batch):
        return {"right": (2 * batch.size, batch.size)}

class Words(Own):
    def values(self, sums):
        return {"right": "many"}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Plans a trial of that task."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "tried", raising=False)
    (tmp_path / "tried.py").write_text(MODULE)

    def plan(model: str = "tokens", objective: str = "tried:Own", data: str = '"tried:data"'):
        (tmp_path / "s.yaml").write_text(
            f'name: s\ntask: {{ data: {data}, model: "tried:{model}", objective: "{objective}", batch_size: 2 }}\n'
            "method: asgd\nfleet: { edge: { count: 2 } }\nstop: { updates: 2 }\n"
        )
        return plan_trials(load_scenario(tmp_path / "s.yaml"))

    return plan


def test_an_objective_of_ones_own_without_mistakes_is_taken(plan) -> None:
    """Of model and batch, with one measure."""
    (planned,) = plan()
    assert [each.name for each in planned.plan.measures] == ["right"]


def test_an_input_outside_of_the_vocabulary_is_found_in_the_last_batch(plan) -> None:
    """With the place of the model's code."""
    problem = "tried:tokens: it does not take the last batch of train: IndexError: .*tried.py:19"
    with pytest.raises(ScenarioError, match=problem):
        plan(data='{ name: "tried:data", last: 6 }')


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"objective": "tried:NoScalar"}, r"failed in loss: returned Tensor \(2, 3\), not a tensor of one number"),
        ({"objective": "tried:Constant"}, "its loss does not depend on the model's parameters"),
        ({"objective": "tried:Failing"}, "failed in loss: RuntimeError.*tried.py:53"),
        ({"objective": "tried:Means"}, "its sum 'right' does not add up: two batches give"),
        ({"objective": "tried:NoSum"}, "`sums` has no 'right', of which the measure 'right' is the mean"),
        ({"objective": "tried:Beyond"}, "right is 2, and is said to be a share, from 0 to 1"),
        ({"objective": "tried:Words"}, "failed in values: returned str as right, not a number"),
        (
            {"objective": "classification", "model": "wrong_output"},
            r"gives shape \(2, 5\), where classification needs \(2, 3\)",
        ),
        ({"objective": "classification", "model": "tuple_output"}, "gives a tuple, where classification needs"),
        (
            {"objective": "multi-label"},
            r"targets are int64 of shape \(20,\); a multi-label classification has zeros and ones",
        ),
        ({"objective": "next-token"}, r"tokens are whole numbers, \(examples, places\)"),
    ],
)
def test_what_is_wrong_with_a_task_is_told(plan, changes: dict[str, str], says: str) -> None:
    """Before anything starts."""
    with pytest.raises(ScenarioError, match=says):
        plan(**changes)
