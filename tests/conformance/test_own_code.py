"""A user's own model and data, by import path, in every runtime; and what happens when that code fails."""

from pathlib import Path

import numpy as np
import pytest
from quick_runs import run as run_quickly

import edgebed
from edgebed.core.errors import EdgebedError

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]
MODULE = """
from pathlib import Path

import numpy as np
import torch
from torch import nn

def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400).astype("u1")
    x = (np.eye(3)[y][:, :, None] + rng.normal(0, 0.3, (400, 3, 4))).astype("f4")
    return x[:300], y[:300], x[300:], y[300:]

def tiny(input_shape, outputs):
    print("building")
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(12, outputs))

def frozen(with_weights):
    '''A layer whose weights are in a file, which the controller alone may read.'''
    layer = nn.Linear(12, 12, bias=False).requires_grad_(False)
    nn.init.zeros_(layer.weight)
    if with_weights:
        layer.weight.copy_(torch.from_numpy(np.load(Path(__file__).with_name("weights.npy"))))
    return layer

def pretrained(outputs, with_weights):
    return nn.Sequential(nn.Flatten(), frozen(with_weights), nn.Linear(12, outputs))

class Numbers(nn.Embedding):
    def forward(self, x):
        return super().forward((x > 0.5).flatten(1).long())

def embedded(with_weights):
    '''Three layers: an embedding, and a frozen one with batch normalisation.'''
    return nn.Sequential(
        nn.Sequential(Numbers(2, 1), nn.Flatten()), nn.Sequential(frozen(with_weights), nn.BatchNorm1d(12)),
        nn.Linear(12, 3),
    )

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
    np.save(folder / "weights.npy", np.eye(12, dtype=np.float32))
    path = folder / "own.yaml"
    path.write_text(SCENARIO.replace("{tag}", tag).replace("{model}", model))
    return path


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_users_own_model_and_data_are_trained(runtime: str, tmp_path: Path, capsys) -> None:
    """With dropout, which draws from a key; what the model prints is no result."""
    run = run_quickly(scenario(tmp_path, "tiny"), runtime=runtime, runs_dir=tmp_path / "runs")

    assert run.exit_code == 0
    assert np.isfinite(run.trials["adacomp"].checkpoint()).all()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_pretrained_weights_that_the_controller_reads_reach_every_node(runtime: str, tmp_path: Path) -> None:
    """Without them nothing would come through the frozen layer; a push has the 39 parameters of the other one."""
    run = run_quickly(scenario(tmp_path, "pretrained"), runtime=runtime, runs_dir=tmp_path / "runs")
    trial = run.trials["adacomp"]

    assert run.exit_code == 0
    assert trial.checkpoint().shape == (39,)
    assert trial.model().get_parameter("1.weight").tolist() == np.eye(12).tolist()
    assert trial.summary.server.ingress_bytes < 150 * trial.summary.updates


@pytest.mark.process
def test_shards_that_begin_with_an_embedding_leave_the_same_weights_in_processes(tmp_path: Path) -> None:
    """With a frozen layer and running means among them, bit for bit those of the simulation."""
    path, found = scenario(tmp_path, "embedded"), {}
    for runtime in ("simulation", "process"):
        sets = ["method=back-propagation", "fleet.edge.count=3", "stop.updates=20", "evaluation.every=20 updates"]
        run = run_quickly(path, runtime=runtime, runs_dir=tmp_path / "runs", set=sets)
        found[runtime] = run.trials["back-propagation"].checkpoint()

    assert found["simulation"].shape == (2 + 2 * 12 + 2 * 12 + 39,)
    np.testing.assert_array_equal(found["process"], found["simulation"])


def test_code_that_raises_ends_a_simulated_run_with_its_own_words(tmp_path: Path) -> None:
    """The place in the user's file is named; the run's folder says that it failed."""
    path = scenario(tmp_path, "Bomb")

    with pytest.raises(EdgebedError, match=r"edge-\d failed in its work: RuntimeError: boom in forward \(.*own_"):
        edgebed.run(path, runtime="simulation", processes=1, runs_dir=tmp_path / "runs")

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
