"""A user's own model and data, by import path, in every runtime; and what happens when that code fails."""

from pathlib import Path

import numpy as np
import pytest

import edgebed
from edgebed.errors import EdgebedError

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]
MODULE = """
import numpy as np
import torch
from torch import nn

def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400).astype("u1")
    x = (np.eye(3)[y][:, :, None] + rng.normal(0, 0.3, (400, 3, 4))).astype("f4")
    return x[:300], y[:300], x[300:], y[300:]

def tiny(input_shape, classes):
    print("building")
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(12, classes))

class Bomb(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.left = tiny((3, 4), 3), 12

    def forward(self, x):
        self.left -= self.training
        if self.left < 0:
            raise RuntimeError("boom in forward")
        return self.inner(x)
"""
SCENARIO = """
name: own
question: Does my own code run?
task: { data: "own_{tag}:data", model: "own_{tag}:{model}", batch_size: 10 }
method: adacomp
fleet: { edge: { count: 2 } }
evaluation: { every: 100 updates }
stop: { updates: 200 }
expect: { best_accuracy: ">= 0.9" }
"""


def scenario(folder: Path, model: str) -> Path:
    """A scenario beside the user's module, whose name no other test uses."""
    tag = f"{abs(hash(str(folder)))}"
    (folder / f"own_{tag}.py").write_text(MODULE)
    path = folder / "own.yaml"
    path.write_text(SCENARIO.replace("{tag}", tag).replace("{model}", model))
    return path


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_users_own_model_and_data_are_trained(runtime: str, tmp_path: Path, capsys) -> None:
    """With dropout, which draws from a key; what the model prints is no result."""
    run = edgebed.run(scenario(tmp_path, "tiny"), runtime=runtime, runs_dir=tmp_path / "runs")

    assert run.exit_code == 0
    assert np.isfinite(run.trials["adacomp"].checkpoint()).all()
    assert capsys.readouterr().out == ""


def test_code_that_raises_ends_a_simulated_run_with_its_own_words(tmp_path: Path) -> None:
    """The place in the user's file is named; the run's folder says that it failed."""
    path = scenario(tmp_path, "Bomb")

    with pytest.raises(EdgebedError, match=r"edge-\d failed in its work: RuntimeError: boom in forward \(.*own_"):
        edgebed.run(path, runtime="simulation", runs_dir=tmp_path / "runs")

    run = edgebed.load("own", runs_dir=tmp_path / "runs")
    assert run.exit_code == 3
    assert run.trials["adacomp"].summary.outcome == "failed"
    assert (run.path / "report.html").exists()


@pytest.mark.process
def test_code_that_raises_ends_its_worker(tmp_path: Path) -> None:
    """The journal has the last line of the worker's log; when all workers are gone the run has failed."""
    run = edgebed.run(scenario(tmp_path, "Bomb"), runtime="process", runs_dir=tmp_path / "runs")

    assert run.exit_code == 3
    assert "boom in forward" in run.trials["adacomp"].summary.reason
