"""Outages that last to the end of a trial are in its time, its rates and its lines, in every runtime."""

from pathlib import Path

import pytest
from quick_runs import run as run_quickly

from edgebed.reports.run.brief import results_brief
from edgebed.reports.run.faults_text import faults_line
from edgebed.reports.writing.page import Grid

RUNTIMES = [
    pytest.param("simulation", marks=pytest.mark.simulation),
    pytest.param("process", marks=pytest.mark.process),
    pytest.param("docker", marks=pytest.mark.docker),
]
SCENARIO = {
    "name": "outages",
    "question": "Is the headline that of the whole training?",
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "1ms"},
    "method": "asgd",
    "fleet": {"edge": {"count": 2, "waiting": "20ms"}},
    "evaluation": {"every": "100 updates"},
    "faults": [{"kill": "edge-0", "at": "500ms"}, {"restart": "server", "at": "1s", "delay": "1995ms"}],
    "restart_time": {"server": "1s"},
    "stop": {"time": "3s"},
}
LATE_S = 0.5
"""Seconds by which a busy machine may do things later."""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_outage_to_the_end_is_in_the_headline(runtime: str, tmp_path: Path) -> None:
    """Of a worker that was killed, and of a server that came back when the time was up."""
    run = run_quickly(SCENARIO, runtime=runtime, runs_dir=tmp_path)
    (trial,) = run.trials.values()
    summary = trial.summary
    (results,) = (part for part in results_brief(run) if isinstance(part, Grid))
    line = faults_line(summary, trial.series.faults) or ""

    assert summary.outcome == "completed"
    assert summary.time_s == pytest.approx(3.0, abs=1e-3)
    assert summary.last_update_s == pytest.approx(1.0, abs=LATE_S)
    assert summary.updates_per_s == pytest.approx(summary.updates / summary.time_s)
    assert dict(zip(results.head, results.rows[0], strict=True))["time"] == "3.00 s"
    assert "last update" in results.head
    assert summary.gone == pytest.approx({"edge-0": 2.5, "server": 2.0}, abs=LATE_S)
    assert line.count("until the end: not back") == 2
