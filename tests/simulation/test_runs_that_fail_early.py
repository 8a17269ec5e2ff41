"""A run that fails before its first node is asked for: what is kept of it."""

from pathlib import Path

import pytest
from quick_runs import run as run_quickly

import edgebed
from edgebed.cli.look import show_results
from edgebed.core.errors import InfrastructureError
from edgebed.runtimes.hosting import TrialHost

SCENARIO = {
    "name": "early",
    "task": {"data": "digits", "model": "small"},
    "method": "asgd",
    "fleet": {"edge": {"count": 2}},
    "stop": {"updates": 10},
}
REASON = "the controller has to run on host a, and does not: scripts/swarm run"


def test_a_run_that_fails_before_it_starts_keeps_the_reason_and_is_not_offered_to_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to go on from; the command that began it is the one to repeat."""

    def fail(*_: object) -> None:
        raise InfrastructureError(REASON)

    monkeypatch.setattr(TrialHost, "run_trial", fail)
    with pytest.raises(InfrastructureError, match=REASON):
        run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path)
    run = edgebed.load("early", runs_dir=tmp_path)
    show_results(run, json=False, verbose=False)
    told = capsys.readouterr()

    assert (run.summary.result, run.trials["asgd"].summary.outcome) == ("no result", "failed")
    assert f"asgd: failed: {REASON}" in told.out
    assert "breaks off" not in told.out
    assert "to resume" not in told.err
    assert not run.can_be_resumed
