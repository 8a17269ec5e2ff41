"""Faults that a run ends before, in virtual time: whatever triggers them, and from beginning to end."""

from pathlib import Path
from typing import Any

import pytest
from quick_runs import run as run_quickly

from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html

SCENARIO: dict[str, Any] = {
    "name": "missed",
    "question": "Is a fault after the end told?",
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "5ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 2}},
    "checkpoints": {"every": "10 updates"},
    "evaluation": {"every": "1h"},
    "stop": {"updates": 12},
    "expect": {"verdict": "trusted", "updates": "== 12"},
}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ({"restart": "server", "at": "20s", "delay": "5s"}, "restart-1 at 20 s"),
        ({"kill": "edge-0", "after": "push"}, None),
        ({"freeze": "edge-1", "at": "10ms", "for": "1h"}, None),
        ({"kill": "edge-0", "during": "pull", "probability": 0.000001}, None),
        ({"flap": "edge-0", "at": "5s", "for": "10s"}, "flap-1 at 5 s"),
    ],
    ids=["time", "point", "second half", "by chance", "flap"],
)
def test_a_run_that_ends_before_a_fault_says_so(tmp_path: Path, fault: dict[str, Any], text: str | None) -> None:
    """In verdict, summary and report; trust is not judged, so that nothing fails."""
    run = run_quickly(SCENARIO | {"faults": [fault]}, runtime="simulation", runs_dir=tmp_path)
    (trial,) = run.summary.trials
    assert trial.fidelity is not None

    assert (run.exit_code, [each.met for each in trial.expectations]) == (0, [True, None])
    assert bool(trial.faults_missed) == (text is not None)
    if text is None:
        assert (trial.fidelity.verdict, trial.fidelity.reasons) == ("modelled", ())
    else:
        assert trial.fidelity.causes == ("faults",)
        assert trial.fidelity.reasons[0].startswith(f"faults: {text}")
        assert "did not happen" in to_html(report_page(run))


def test_nodes_that_were_to_come_and_go_and_were_not_due_yet_degrade_nothing(tmp_path: Path) -> None:
    """Churn, drawn once or several times, a recording, a repeated fault: remarked, counted, and in the table."""
    (tmp_path / "phones.csv").write_text("device,from_s,until_s\na,0,600\na,700,900\nb,0,900\n")
    churn = {"churn": 60, "at": "5s", "absent": "1s", "of": "workers"}
    for fault in (
        {**churn, "for": "10s"},
        {**churn, "for": "1s"},
        {"availability": str(tmp_path / "phones.csv"), "at": "0s"},
        {"restart": {"random": 1}, "at": "10m", "every": "10m", "until": "1h", "delay": "45s"},
    ):
        run = run_quickly(SCENARIO | {"faults": [fault]}, runtime="simulation", runs_dir=tmp_path)
        (trial,) = run.summary.trials
        assert trial.fidelity is not None

        assert (trial.fidelity.verdict, trial.fidelity.reasons, run.exit_code) == ("modelled", (), 0)
        assert "was to recur" in trial.fidelity.remarks[-1]
        assert trial.faults_missed
        assert "did not happen" in to_html(report_page(run))


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ({"at_update": 5000}, "kill-1 at update 5,000"),
        ({"after": "push", "step": 5000}, "kill-1 of edge-0, after-push 5000"),
    ],
    ids=["update", "step"],
)
def test_a_fault_at_an_update_that_never_comes_is_told(tmp_path: Path, trigger: dict[str, Any], text: str) -> None:
    """Training stops by its time before."""
    faults = [{"kill": "edge-0"} | trigger]
    scenario = SCENARIO | {"faults": faults, "stop": {"time": "30ms"}, "expect": {"faults_missed": "== 0"}}
    run = run_quickly(scenario, runtime="simulation", runs_dir=tmp_path)
    (trial,) = run.summary.trials
    assert trial.fidelity is not None

    assert trial.fidelity.reasons[0].startswith(f"faults: {text} did not happen, training ended at 0.03")
    assert (run.exit_code, run.summary.text) == (1, "1 of 1 expectations not met.")
