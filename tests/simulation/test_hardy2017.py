"""The claim of Hardy et al. 2017 that everything else builds on, at the size of their experiment."""

from pathlib import Path

import pytest
from quick_runs import run as run_quickly

SCENARIO = Path(__file__).parents[2] / "scenarios/hardy2017/adacomp.yaml"


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_adacomp_reaches_95_percent_within_10000_updates(data_dir: Path, tmp_path: Path) -> None:
    """MNIST, the 211,690-parameter CNN, c = 0.01, 200 workers, mini-batches of 10."""
    often = "evaluation.every=1250 updates"  # to measure takes as long as hundreds of updates
    options = ["stop.accuracy=0.95", often, "expect=null"]
    run = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path, set=options)
    trial = run.trials["adacomp"]
    summary = trial.summary

    assert run.exit_code == 0
    assert summary.updates <= 10_000
    assert summary.best["accuracy"] >= 0.95
    assert summary.server.entries_mean == 2_117
    assert trial.series.updates.staleness[400:].mean() == pytest.approx(199, rel=0.01)  # the first are younger
