"""Models of tokens in whole trials: what travels, what is kept, and what of them is loaded again."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from quick_runs import run as run_quickly
from token_data import walk

from edgebed.running.results import Trial

SEED = 3
SIZES: dict[str, dict[str, int]] = {
    "transformer": {"width": 16, "layers": 2, "heads": 2},
    "gru": {"width": 16, "layers": 1},
}
FLOAT16 = {"none": {}, "top-k": {"fraction": 0.1}}
OWN = """
import torch
from torch import nn

class Masked(nn.Module):
    '''Attends with a mask and a table of positions that are buffers.'''

    def __init__(self, places, outputs):
        super().__init__()
        self.tokens, self.last = nn.Embedding(outputs, 16), nn.Linear(16, outputs)
        self.query = nn.Linear(16, 16)
        self.register_buffer("mask", torch.triu(torch.full((places, places), float("-inf")), diagonal=1))
        self.register_buffer("table", 0.1 * torch.sin(torch.arange(16.0 * places)).view(places, 16), persistent=False)

    def forward(self, x):
        h = self.tokens(x) + self.table
        scores = self.query(h) @ h.transpose(1, 2) + self.mask
        return self.last(h + scores.softmax(-1) @ h)

def masked(input_shape, outputs):
    return Masked(input_shape[0], outputs)
"""


def trained(folder: Path, task: dict[str, Any], method: Any = "asgd") -> Trial:
    """A trial in virtual time of 60 updates."""
    scenario = {
        "name": "tokens", "question": "Do tokens work?", "seed": SEED, "method": method,
        "task": {"data": "token_data:walk", "objective": "next-token", "batch_size": 16, "gradient_time": "1ms"} | task,
        "fleet": {"edge": {"count": 2}}, "evaluation": {"every": "30 updates"}, "stop": {"updates": 60},
    }  # fmt: skip
    (only,) = run_quickly(scenario, runtime="simulation", runs_dir=folder).trials.values()
    return only


def perplexity_of(trial: Trial) -> float:
    """The test set's, by the model that is loaded again."""
    text = walk(SEED).test
    with torch.no_grad():
        scores = trial.model()(torch.from_numpy(text.inputs[""]))
    return float(F.cross_entropy(scores.flatten(0, 1), torch.from_numpy(text.targets[""]).flatten()).exp())


@pytest.mark.parametrize("model", SIZES)
def test_a_model_of_tokens_learns_and_is_loaded_again(tmp_path: Path, model: str) -> None:
    """What was measured last is what the loaded module gives; tied weights travel once."""
    trial = trained(tmp_path, {"model": model, **SIZES[model]})
    measured = trial.series.evaluations.measured["perplexity"]

    assert measured[-1] < 0.8 * measured[0]
    assert perplexity_of(trial) == pytest.approx(measured[-1], rel=1e-4)
    assert trial.checkpoint().shape == (sum(each.size for each in trial.plan.nodes[0].task.layout),)
    if model == "transformer":
        loaded = trial.model()
        assert loaded.get_parameter("0.weight") is loaded.get_parameter("3.1.weight")


@pytest.mark.parametrize("compression", FLOAT16)
def test_a_transformers_values_may_travel_in_16_bits(tmp_path: Path, compression: str) -> None:
    """Fewer bytes, and nearly the same model."""
    sent = {}
    for values in ("float32", "float16"):
        part = {"name": compression, "values": values, **FLOAT16[compression]}
        method = {"preset": "asgd", "compression": part}
        sent[values] = trained(tmp_path, {"model": "transformer", **SIZES["transformer"]}, method)
    whole, half = (trial.summary.server.ingress_bytes for trial in sent.values())
    last = [trial.series.evaluations.measured["perplexity"][-1] for trial in sent.values()]

    assert half < 0.85 * whole
    assert last[1] == pytest.approx(last[0], rel=0.02)


def test_masks_and_tables_of_positions_are_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not travel with pushes, hold minus infinity, and are there where the model is loaded again."""
    (tmp_path / "maskednets.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    trial = trained(tmp_path, {"model": "maskednets:masked"})
    measured = trial.series.evaluations.measured["perplexity"]

    assert {each.name.partition(".")[0] for each in trial.plan.nodes[0].task.layout} == {"tokens", "query", "last"}
    assert np.isfinite(trial.checkpoint()).all()
    assert measured[-1] < measured[0]
    assert perplexity_of(trial) == pytest.approx(measured[-1], rel=1e-4)
