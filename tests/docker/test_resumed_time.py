"""A trial in containers whose controller died: nodes went on alone, and that is training that nobody watched."""

import os
import signal
from pathlib import Path

import pytest
from live_runs import updates_in
from waiting import until
from warm_command import WarmCommand

from edgebed.running.results import load

NAME = f"resumed-{os.getpid()}"
TRAINED_S = 45.0
SCENARIO = f"""
name: {NAME}
task: {{ data: digits, model: small, batch_size: 10 }}
method: asgd
fleet: {{ edge: {{ count: 2, waiting: 50ms }} }}
evaluation: {{ every: 100 updates }}
stop: {{ time: {TRAINED_S}s }}
deadlines: {{ join: 100s, stall: 60s }}
"""
NODES_END_S = 60.0


@pytest.mark.soak  # two minutes
@pytest.mark.alone  # any other command would remove what is left
@pytest.mark.timeout(400)
def test_what_containers_did_without_a_controller_is_counted_and_degrades(engine, tmp_path: Path) -> None:
    """The trial trains as long as any other, with them; each worker had an update under way when it ended unheard."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    journal = tmp_path / NAME / "0001/asgd/events.jsonl"
    begun = WarmCommand("run", "scenario.yaml", "--runtime", "docker", "--runs-dir", ".", cwd=tmp_path)
    until(lambda: updates_in(journal) >= 60, "training", every_s=0.2)
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    until(lambda: not any(each["State"]["Running"] for each in engine.containers()), "the nodes' end", NODES_END_S)

    resumed = WarmCommand("resume", NAME, "--runs-dir", ".", cwd=tmp_path)
    _, err = resumed.communicate(timeout=250)
    assert resumed.returncode == 0, err
    (trial,) = load(tmp_path / NAME / "0001").trials.values()
    summary = trial.summary
    lives = [life for life in summary.accounting.lives if life.incarnation == 1]

    assert summary.unobserved_s > 2.0
    assert summary.unobserved_updates > 10
    assert "unobserved" in summary.fidelity.causes
    assert summary.time_s == pytest.approx(TRAINED_S, abs=1.0)
    assert trial.series.updates.t[-1] == pytest.approx(TRAINED_S, abs=1.5)
    assert (trial.series.updates.t[1:] >= trial.series.updates.t[:-1]).all()
    assert summary.accounting.closes
    assert [life.lost_with_worker for life in lives] == [1, 1]
