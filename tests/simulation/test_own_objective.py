"""An objective of one's own, in a single file beside the scenario: what it measures is everywhere by its name."""

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.core.console import make_console
from edgebed.core.errors import ScenarioError
from edgebed.exporting.subjects import tables_of
from edgebed.metrics.trial_metrics import TrialMetrics
from edgebed.reports.run.brief import results_brief
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.terminal import show
from edgebed.running.results import Run
from edgebed.scenario.load import load_scenario

OBJECTIVE = '''
from edgebed.core.measures.task import TaskMeasure
from edgebed.learning.objectives.classification import Classification


class AmongThree(Classification):
    """A classification whose answer is three classes."""

    measures = (
        TaskMeasure(name="among_three", meaning="Share whose label is among three.", unit="share", better="more"),
        TaskMeasure(name="confusion", meaning="Classes that score higher than the label, on average."),
        *Classification.measures,
    )

    def sums_of(self, outputs, targets):
        better = (outputs > outputs.gather(1, targets[:, None])).sum(dim=1)
        own = {"among_three": ((better < 3).sum(), len(targets)), "confusion": (better.sum(), len(targets))}
        return own | super().sums_of(outputs, targets)
'''
SCENARIO: dict[str, Any] = {
    "name": "own-objective",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "objective": "objective_of_mine:AmongThree", "gradient_time": "5ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 3}},
    "evaluation": {"every": "50 updates"},
    "stop": {"measure": "among_three", "at": "90%", "updates": 600},
    "expect": {"best_among_three": ">= 0.9", "final_confusion": "<= 2", "final_accuracy": "> 0.2"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the scenario, with the user's one file."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "objective_of_mine.py").write_text(OBJECTIVE)
    (folder / "own.yaml").write_bytes(msgspec.json.encode(SCENARIO))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """A run of it in virtual time."""
    return run_quickly(folder / "own.yaml", runtime="simulation", runs_dir=folder / "runs")


def test_a_measure_of_ones_own_ends_the_trial_and_is_expected(run: Run) -> None:
    """It is journaled as a sum with its weight; the first one declared is what results are told by."""
    (trial,) = run.trials.values()
    last = [record for _, _, record in trial.events() if isinstance(record, records.Evaluated)][-1]

    assert list(last.measured) == ["among_three", "confusion", "accuracy", "loss"]
    assert last.measured["confusion"] < 2
    assert trial.summary.reason.startswith("among three 0.9")
    assert [each.met for each in trial.summary.expectations] == [True, True, True]
    assert trial.summary.best["confusion"] == trial.series.evaluations.measured["confusion"].min()


def test_a_measure_of_ones_own_is_on_pages_in_tables_and_in_metrics(run: Run) -> None:
    """By its name, in its unit."""
    (trial,) = run.trials.values()
    console = make_console(io.StringIO(), width=150)
    show(results_brief(run), console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    report = to_html(report_page(run))
    metrics = TrialMetrics()
    metrics.start_trial(trial.plan, "own-objective/1", "simulation", 0.0)
    for _, node, record in trial.events():
        metrics.observe(record, node)
    labels = {"run": "own-objective/1", "trial": trial.name, "split": "test"}

    assert "test among three (%)" in shown
    assert "best_among_three 9" in shown
    assert "Among three against bytes up and down" in report
    assert "final confusion" in report
    (columns,) = ([column.name for column in table.columns] for table in tables_of(run) if table.name == "evaluations")
    assert columns[2:6] == ["among_three", "confusion", "accuracy", "loss"]
    assert (
        metrics.registry.get_sample_value("edgebed_model_among_three_ratio", labels)
        == trial.summary.final["among_three"]
    )
    assert metrics.registry.get_sample_value("edgebed_model_confusion", labels) == trial.summary.final["confusion"]


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("stop.measure=among_four", "did you mean 'among_three'? allowed: among_three, confusion, accuracy, loss"),
        ("stop.at=9", "9 is above 1 (9 % is 0.09)"),
        ("stop={measure: confusion, at: few}", "not a number: 'few'"),
        ("expect.best_among_four='>= 0.5'", "did you mean 'best_among_three'?"),
        ("expect.best_among_three='>= 5'", "not a fraction from 0 to 1: '5'"),
        ("task.objective=objective_of_mine:AmongFour", "has no 'AmongFour'. Did you mean 'AmongThree'?"),
        ("task.objective=objective_of_mine:TaskMeasure", "no objective; derive a class from"),
    ],
)
def test_an_unknown_measure_is_refused_with_those_of_the_task(folder: Path, option: str, problem: str) -> None:
    """Where it stands, with what there is."""
    with pytest.raises(ScenarioError) as caught:
        load_scenario(folder / "own.yaml", [option])
    assert problem in str(caught.value)
