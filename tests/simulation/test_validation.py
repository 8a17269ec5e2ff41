"""A trial with a validation part: what stops it, what it says of both parts, and what of a sweep."""

import functools
import io
import tempfile

from quick_runs import run as run_quickly

from edgebed.core.console import make_console
from edgebed.exporting.subjects import tables_of
from edgebed.reports.run.brief import results_brief
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.terminal import show
from edgebed.running.results import Run

SCENARIO = {
    "name": "validated",
    "seed": 2,
    "task": {"data": "digits", "model": "small", "validation": "20%", "gradient_time": "5ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 3}},
    "evaluation": {"every": "20 updates"},
    "stop": {"accuracy": 0.7, "window": 2, "updates": 600},
    "expect": {"validated_accuracy": ">= 0.7", "best_accuracy": ">= 0.5"},
}


@functools.cache
def made() -> Run:
    """The run, made once."""
    with tempfile.TemporaryDirectory(prefix="edgebed-validated-") as folder:
        run = run_quickly(SCENARIO, runtime="simulation", runs_dir=folder)
        assert run.trials["asgd"].series  # read while the folder is there
        return run


def test_validation_ends_the_trial_and_chooses_the_version() -> None:
    """The mean of two validation accuracies reached the level; the test part's value is that of the chosen version."""
    trial = made().trials["asgd"]
    found, summary = trial.series.evaluations, trial.summary

    assert found.validation["accuracy"][-2:].mean() >= 0.7
    assert summary.reason.startswith("validation accuracy 0.7")
    place = found.version.tolist().index(summary.chosen_version)
    assert found.validation["accuracy"].max() == found.validation["accuracy"][place] == summary.validated["accuracy"]
    assert summary.best["accuracy"] == found.measured["accuracy"][place]
    assert summary.final["accuracy"] == found.measured["accuracy"][-1]
    assert summary.met


def test_pages_say_which_part_they_show() -> None:
    """The chart is of the validation part; final and best of the test part stand beside each other."""
    stream = io.StringIO()
    show(results_brief(made()), make_console(stream, width=140))
    page = to_html(report_page(made()))

    assert "validation accuracy (%)" in stream.getvalue()
    assert "To 70 % accuracy on the validation part in the mean of 2 evaluations:\n  asgd" in stream.getvalue()
    assert "Final accuracy (where validation was best): asgd" in stream.getvalue()
    head = next(line for line in stream.getvalue().splitlines() if line.startswith("trial"))
    assert head.split()[:4] == ["trial", "accuracy", "best", "validated"]
    assert "best validation accuracy" in page
    assert "validation accuracy (%)" in page


def test_an_export_has_both_parts() -> None:
    """A column for each."""
    (table,) = (table for table in tables_of(made()) if table.name == "evaluations")
    trial = made().trials["asgd"]
    columns = dict(zip([column.name for column in table.columns], table.fill(made(), trial), strict=True))

    assert list(columns["accuracy"]) == trial.series.evaluations.measured["accuracy"].tolist()
    assert list(columns["validation_accuracy"]) == trial.series.evaluations.validation["accuracy"].tolist()
