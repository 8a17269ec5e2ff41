"""Runs in which a loss is not finite: they go on to their end, are over, and name what was not finite first."""

import json
from pathlib import Path
from typing import Any

import pytest
from quick_runs import run as run_quickly

import edgebed
from edgebed.core import records
from edgebed.core.errors import ScenarioError
from edgebed.journal.run_folder import RunFolder
from edgebed.reports.run.report import write_report
from edgebed.running.results import Run
from edgebed.running.run import write_results
from edgebed.studies.cells.run_index import RunIndex

SCENARIO = {
    "name": "diverging",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "1ms"},
    "fleet": {"edge": {"count": 2}},
    "evaluation": {"every": "10 updates"},
    "stop": {"updates": 20},
    "variants": {
        "wild": {
            "method": {"preset": "asgd", "aggregation": {"learning_rate": 9e15}},
            "task": {"objective": "own_steep:Steep"},
        },
        "tame": {"method": "asgd"},
    },
}
STEEP = """
from edgebed.learning.objectives.classification import Classification

class Steep(Classification):
    def loss_of(self, outputs, targets):
        return 1e30 * super().loss_of(outputs, targets)
"""
OVERFLOWING = """
import torch
from torch import nn

class Overflowing(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        scores = self.inner(x) + 0.0 * self.scale
        if self.training:
            self.scale.mul_(100.0)
        return scores

def net():
    return Overflowing()
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A variant whose first update is infinite, and one that learns."""
    return run_of(SCENARIO, tmp_path)


def run_of(scenario: dict[str, Any], folder: Path) -> Run:
    """A scenario whose tasks find `own_steep` beside it: one update of a step of 9e15 is beyond single precision."""
    (folder / "own_steep.py").write_text(STEEP)
    (folder / "steep.yaml").write_text(json.dumps(scenario))
    return run_quickly(folder / "steep.yaml", runtime="simulation", runs_dir=folder)


def test_a_run_that_diverged_is_over(run: Run, tmp_path: Path) -> None:
    """The next trial is run all the same; there is nothing to resume, and it is found again by its plan."""
    wild, tame = run.summary.trials

    assert (wild.outcome, wild.updates, tame.outcome, run.exit_code) == ("diverged", 20, "completed", 1)
    assert wild.final
    assert not run.can_be_resumed
    with pytest.raises(ScenarioError, match="is complete: there is nothing to resume"):
        edgebed.resume(run.path)
    assert RunIndex(tmp_path).completed(run.trials["wild"].plan)
    (comparison,) = [edgebed.compare([run], baseline="tame")]
    assert comparison.arms["wild"].num_diverged == 1
    assert any("wild diverged at update 3" in note for note in comparison.notes)


def test_the_parameter_that_was_not_finite_first_is_named(run: Run) -> None:
    """With its name in the module; each node says it once."""
    (wild, _), events = run.summary.trials, [*run.trials["wild"].events()]
    said = [node for _, node, record in events if isinstance(record, records.Diverged)]

    assert wild.diverged
    assert (wild.diverged.update, wild.diverged.text) == (3, "parameter 1.weight at edge-0")
    assert sorted(said) == ["edge-0", "edge-1", "evaluator"]


def test_accounts_that_do_not_close_end_with_exit_code_3(run: Run) -> None:
    """An update that nobody tells of is edgebed's own failure, whatever else came of the run."""
    journal = run.trials["tame"].folder.journal
    lines = journal.read_bytes().splitlines(keepends=True)
    gone = next(line for line in lines if b'"kind":"update"' in line and b'"version":7,' in line)
    journal.write_bytes(b"".join(line for line in lines if line != gone))
    again = write_results(RunFolder(run.path), write_report)

    assert (again.exit_code, again.summary.result) == (3, "accounting does not close")
    assert "edgebed's own accounting does not close: tame: " in again.folder.report.read_text().replace("&#39;", "'")
    assert json.loads(again.folder.summary.read_bytes())["exit_code"] == 3


def test_a_buffer_of_an_own_model_is_named(tmp_path: Path) -> None:
    """It grows a hundredfold in each forward pass, until it overflows, and with it the loss of the next."""
    (tmp_path / "own_overflowing.py").write_text(OVERFLOWING)
    (tmp_path / "own.yaml").write_text(json.dumps({
        "name": "own", "seed": 3, "method": "asgd",
        "task": {"data": "digits", "model": "own_overflowing:net", "batch_size": 10},
        **{key: SCENARIO[key] for key in ("fleet", "evaluation")}, "stop": {"updates": 80},
    }))  # fmt: skip
    own = run_quickly(tmp_path / "own.yaml", runtime="simulation", runs_dir=tmp_path / "runs")
    (trial,) = own.summary.trials

    assert trial.diverged
    assert (trial.outcome, trial.diverged.what, trial.diverged.tensor) == ("diverged", "update", "scale")
    assert f"diverged at update {trial.diverged.update} (update of scale at edge-" in own.summary.badge


def test_of_shards_a_parameter_has_its_name_in_the_whole_model(tmp_path: Path) -> None:
    """The upper shard's is the second of the model's layers, though the first of its own."""
    method = {"preset": "back-propagation", "optimizer": {"name": "sgd", "learning_rate": 9e15}}
    task = {"data": "digits", "model": "sigmoid-200", "batch_size": 32, "objective": "own_steep:Steep"}
    varied = {**SCENARIO, "task": task, "method": method}
    varied.pop("variants")
    found = run_of(varied, tmp_path)
    (trial,), (only,) = found.summary.trials, found.trials.values()
    said = {node: record.tensor for _, node, record in only.events() if isinstance(record, records.Diverged)}

    assert (trial.outcome, trial.diverged_at) == ("diverged", 2)
    assert said == {"edge-0": "0.1.weight", "edge-1": "1.weight", "evaluator": "0.1.weight"}
