"""After a failure the accuracy curve is that of the history which survives."""

from pathlib import Path

from quick_runs import run as run_quickly

from edgebed.core import records

SCENARIO = {
    "name": "again",
    "question": "Is what is made anew measured anew?",
    "seed": 7,
    "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 32, "gradient_time": "10ms"},
    "method": "synthetic-gradients",
    "fleet": {"edge": {"count": 2}},
    "evaluation": {"every": "10 updates"},
    "checkpoints": {"every": "20 updates"},
    "stop": {"updates": 60},
    "faults": [{"kill": "edge-1", "at_update": 37}],
    "on_failure": "restart",
    "restart_delay": "200ms",
}


def test_versions_that_are_made_anew_are_measured_anew(tmp_path: Path) -> None:
    """Version 30 is measured in the history that is given up and in the one after it; the later counts."""
    (trial,) = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path).trials.values()
    measured = [record.version for _, _, record in trial.events() if isinstance(record, records.Evaluated)]

    assert trial.summary.accounting is not None
    assert trial.summary.shards.steps_rolled_back == trial.summary.accounting.total.rolled_back > 0
    assert measured.count(30) == 2
    assert trial.series.evaluations.version.tolist() == [0, 10, 20, 30, 40, 50, 60]
