"""8-bit inputs are pixels: a model that looks them up in an embedding is refused, before they are scaled in silence."""

import sys

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario

MODULE = """
import numpy as np
import torch
from torch import nn

class Tokens(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.embedding, self.head = nn.Embedding(256, 4), nn.Linear(4, outputs)

    def forward(self, x):
        return self.head(self.embedding(input=x.long()).mean(dim=1))

class Positions(nn.Module):
    def __init__(self, input_shape, outputs):
        super().__init__()
        self.positions, self.head = nn.Embedding(*input_shape * 2), nn.Linear(input_shape[0], outputs)

    def forward(self, x):
        return self.head(x + self.positions(torch.arange(x.shape[1])).sum(dim=1))

class Moody(nn.Module):
    def __init__(self, input_shape, outputs):
        super().__init__()
        self.head = nn.Linear(input_shape[0], outputs)

    def forward(self, x):
        if (x == 1).all():
            raise ValueError("all alike")
        return self.head(x.float())

def tokens(outputs):
    return Tokens(outputs)

def positions(input_shape, outputs):
    return Positions(input_shape, outputs)

def moody(input_shape, outputs):
    return Moody(input_shape, outputs)

def data(dtype):
    x, y = np.arange(60).reshape(20, 3) % 7, np.arange(20) % 3
    return x.astype(dtype), y, x[:6].astype(dtype), y[:6]

def bytes_(): return data("uint8")
def longs(): return data("int64")
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Plans a trial of that model on those data."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "looking", raising=False)
    (tmp_path / "looking.py").write_text(MODULE)

    def plan(model, data):
        (tmp_path / "s.yaml").write_text(
            f'name: s\ntask: {{ data: "looking:{data}", model: "looking:{model}", batch_size: 2 }}\n'
            "method: asgd\nfleet: { edge: { count: 2 } }\nstop: { updates: 2 }\n"
        )
        return plan_trials(load_scenario(tmp_path / "s.yaml"))

    return plan


def test_8_bit_tokens_for_an_embedding_are_refused_with_what_to_give(plan):
    """At the data, naming the layer."""
    with pytest.raises(ScenarioError) as caught:
        plan("tokens", "bytes_")

    (problem,) = caught.value.problems
    assert "s.yaml:2:15: task.data: looking:bytes_ gives uint8, which is for pixels and scaled to [0, 1]" in problem
    assert "looking:tokens looks its inputs up in the embedding 'embedding'" in problem
    assert "give these whole numbers as int64" in problem


@pytest.mark.parametrize(("model", "data"), [("tokens", "longs"), ("positions", "bytes_"), ("moody", "longs")])
def test_tokens_as_whole_numbers_and_embeddings_of_something_else_are_taken(plan, model, data):
    """Positions do not depend on the inputs."""
    assert plan(model, data)


def test_a_model_that_fails_on_what_it_is_tried_with_says_so(plan):
    """No traceback."""
    with pytest.raises(ScenarioError, match="does not take inputs of 0 and of 1: ValueError: all alike"):
        plan("moody", "bytes_")
