"""docs/own-task.md works: its files are what they say, its scenario runs, and each kind of task is learnt."""

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from quick_runs import run as run_quickly
from sklearn import metrics

from edgebed.core.errors import ScenarioError
from edgebed.core.imports import forgetting
from edgebed.learning.objectives.registry import OBJECTIVES
from edgebed.planning.planning import plan_trials
from edgebed.running.results import Trial
from edgebed.scenario.load import load_scenario

TEXT = (Path(__file__).parents[3] / "docs/own-task.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"File\s`([^`]+)`[^`]*?:\n\n```\w+\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
MORE = '''
import numpy as np
from torch import nn


def line(seed):
    """Points, and a number that follows from each, but for noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(600, 3))
    y = x @ [2.0, 1.0, 0.0] + rng.normal(0.0, 0.3, 600)
    return x[:500], y[:500], x[500:], y[500:]


def sides(seed):
    """Points, and on which side of a plane each is, but for noise."""
    x, y, *test = line(seed)
    return x, (y > 0).astype(int), test[0], (test[1] > 0).astype(int)


def net(input_shape, outputs):
    return nn.Sequential(nn.Linear(input_shape[0], 16), nn.Tanh(), nn.Linear(16, outputs))
'''
LINE = {"data": "line_of_more:line", "model": "line_of_more:net"}
TASKS: dict[str, dict[str, Any]] = {
    "tokens": {},
    "quantile": LINE | {"objective": {"name": "myquantile:Quantile", "level": 0.8}},
    "correlation": LINE | {"objective": "mygoals:Correlated"},
    "ranks": {"data": "line_of_more:sides", "model": "line_of_more:net", "objective": "myranks:Ranked"},
    "two": {"data": "mytwo:words", "model": "mytwo:Words", "objective": "mytwo:WordAndLength"},
    "contrast": {"data": "mycontrast:rings", "model": "line_of_more:net", "objective": "mycontrast:Contrast"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The files of the document; what they bring into this process is gone after the tests."""
    folder = tmp_path_factory.mktemp("own-task")
    for name, text in (FILES | {"line_of_more.py": MORE}).items():
        (folder / name).write_text(text, encoding="utf-8")
    with forgetting(folder):
        yield folder


@pytest.fixture(scope="module")
def trials(folder: Path) -> dict[str, Trial]:
    """A trial of each task, as a variant of the document's scenario."""
    variants = {name: {"task": task} for name, task in TASKS.items()}
    sets = {"variants": variants, "expect": None, "stop.updates": 100}
    return run_quickly(folder / "own-task.yaml", runtime="simulation", runs_dir=folder / "runs", set=sets).trials


def test_each_file_of_the_document_is_in_a_task() -> None:
    """None is shown and not run."""
    modules = set(re.findall(r"\"?(my\w+):", str(TASKS))) | {"mytokens"}
    assert {Path(name).stem for name in FILES} == modules | {"own-task"}


def test_the_document_has_all_that_comes_with_edgebed() -> None:
    """Each objective with its measures and its settings."""
    _, *found = re.findall(r"^\| `([\w-]+)` \|(.*)$", TEXT, re.MULTILINE)
    rows = {row[0]: row for row in found}
    assert rows.keys() == OBJECTIVES.keys()
    for name, objective in OBJECTIVES.items():
        told = rows[name][1]
        *_, measures, settings, _ = told.split("|")
        assert [each.words.lower() for each in objective.measures] == measures.strip().lower().split(", ")
        assert {f"`{each}`" for each in objective.Config.__dataclass_fields__} <= set(re.findall("`[a-z_]+`", settings))


@pytest.mark.parametrize(
    ("name", "measure", "better_than"),
    [
        ("tokens", "perplexity", 12.0),
        ("quantile", "pinball", 0.25),
        ("correlation", "correlation", 0.95),
        ("ranks", "auc", 0.95),
        ("two", "right", 0.8),
        ("contrast", "margin", 0.8),
    ],
)
def test_each_task_of_the_document_is_learnt(
    trials: dict[str, Trial], name: str, measure: str, better_than: float
) -> None:
    """Its headline is what the document declares, and becomes better."""
    trial = trials[name]
    headline, values = trial.plan.measures[0], trial.series.evaluations.measured[measure]

    assert headline.name == measure
    assert headline.gain(values[-1], better_than) > 0
    assert headline.gain(values[-1], values[0]) > 0


def test_the_correlation_of_the_document_is_numpys(trials: dict[str, Trial], folder: Path) -> None:
    """Of the last model, over all examples for testing."""
    trial = trials["correlation"]
    sys.path.insert(0, str(folder))
    from line_of_more import line

    _, _, x, y = line(trial.plan.seed)
    outputs = trial.model()(torch.from_numpy(x.astype("f4")))[:, 0].detach().numpy()
    assert trial.summary.final["correlation"] == pytest.approx(np.corrcoef(outputs, y)[0, 1], abs=1e-4)


def test_the_ranks_of_the_document_are_scikit_learns(trials: dict[str, Trial], folder: Path) -> None:
    """But for scores in one bin; and the model sees data as the document says."""
    trial = trials["ranks"]
    (planned, *_) = plan_trials(
        load_scenario(folder / "own-task.yaml", [f"task={msgspec.json.encode(TASKS['ranks']).decode()}", "expect=null"])
    )
    test = planned.data.test
    scores = trial.model()(torch.from_numpy(test.inputs[""])).softmax(dim=1)[:, 1].detach().numpy()
    assert trial.summary.final["auc"] == pytest.approx(metrics.roc_auc_score(test.targets[""], scores), abs=1e-3)


def test_a_setting_of_the_document_is_refused_in_its_own_words(folder: Path) -> None:
    """At its place."""
    with pytest.raises(ScenarioError, match=r"task.objective.*: level: 2.0 is not between 0 and 1|level: 2.0 is not"):
        load_scenario(folder / "own-task.yaml", ["task.objective={name: 'myquantile:Quantile', level: 2}"])


def test_the_data_of_the_document_has_three_parts_with_clients(folder: Path) -> None:
    """And takes its setting."""
    (planned,) = plan_trials(
        load_scenario(folder / "own-task.yaml", ["task.data={name: 'mytokens:sentences', count: 500}"])
    )
    assert {name: len(part) for name, part in planned.data.parts.items()} == {
        "train": 300, "validation": 100, "test": 100,
    }  # fmt: skip
    assert planned.data.client_names == ("cat", "mouse", "owl")


@pytest.mark.slow
def test_the_scenario_of_the_document_meets_its_expectation(folder: Path) -> None:
    """As it stands there."""
    assert run_quickly(folder / "own-task.yaml", runtime="simulation", runs_dir=folder / "runs").exit_code == 0
