"""The server's log on a volume of the engine: what outlasts the server, its controller, and neither.

The server is killed once in the suite, more often in `scripts/test soak`.
"""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import soaking
from live_runs import updates_in
from log_runs import EVERY, assert_nothing_lost, run_killed
from waiting import until
from warm_command import WarmCommand

from edgebed.core import records
from edgebed.journal.checkpoints import read_checkpoint
from edgebed.journal.folds import of_type
from edgebed.journal.journal import read_journal
from edgebed.journal.series import Series

KILLS = soaking.count(1, 5)
NAME = f"logged-{os.getpid()}"
SCENARIO = f"""
name: {NAME}
question: Does it go on where its server ended?
task: {{ data: digits, model: small, batch_size: 10 }}
method: asgd
fleet: {{ edge: {{ count: 2, waiting: 5ms }} }}
checkpoints: {{ every: 100000 updates }}
evaluation: {{ every: 200 updates }}
stop: {{ updates: 400 }}
"""
NODES_END_S = 60.0


@pytest.mark.random
@pytest.mark.timeout(120 + 30 * KILLS)
def test_a_killed_server_comes_to_the_model_of_one_that_lived(engine, tmp_path: Path) -> None:
    """To the bit, with nothing lost; the volume goes when the trial is complete."""
    models = {}
    for kills in (0, KILLS):
        run = run_killed(
            NAME, "sync-sgd", 2, kills, tmp_path / str(kills), "--runtime", "docker", updates=EVERY * (KILLS + 2)
        )
        models[kills] = read_checkpoint(run.trial.final_checkpoint).theta

    assert_nothing_lost(run.told, KILLS)
    np.testing.assert_array_equal(models[KILLS], models[0])
    assert engine.volumes() == []


@pytest.mark.alone  # any other command would remove what is left
def test_what_outlasts_a_killed_controller(engine, tmp_path: Path) -> None:
    """Its nodes end by themselves, any command takes them and their networks away, and the log stays for `resume`."""
    (tmp_path / "logged.yaml").write_text(SCENARIO)
    trial = tmp_path / NAME / "0001/asgd"
    begun = _begun(tmp_path)
    until(lambda: updates_in(trial / "events.jsonl") >= 150, "training", every_s=0.2)
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    until(lambda: not any(each["State"]["Running"] for each in engine.containers()), "the nodes' end", NODES_END_S)
    assert len(engine.containers()) == 4
    known = updates_in(trial / "events.jsonl")

    _, said = _done(tmp_path, "ls", "--runs-dir", ".")

    assert f"removed 4 containers and 2 networks of {NAME}/0001, whose controller is gone" in said
    assert engine.removable() == []
    assert len(engine.volumes()) == 1
    _done(tmp_path, "resume", NAME, "--runs-dir", ".")
    journal = trial / "events.jsonl"
    ((_, _, restored),) = of_type(read_journal(journal), records.Restored)
    assert restored.replayed == restored.version >= known
    books = Series.from_journal(journal).accounting
    assert books.closes, books.problems
    assert books.total.applied >= 400
    assert engine.volumes() == []


@pytest.mark.alone
def test_what_the_log_leaves_goes_with_down(engine, tmp_path: Path) -> None:
    """A run that was interrupted leaves its log: `down` keeps it, `down --logs` of its own folder of runs removes it.

    A resume then asks to be told that what came after the last checkpoint is lost.
    """
    (tmp_path / "logged.yaml").write_text(SCENARIO.replace("100000 updates", "50 updates"))
    trial = tmp_path / NAME / "0001/asgd"
    begun = _begun(tmp_path)
    until(lambda: updates_in(trial / "events.jsonl") >= 150, "training", every_s=0.2)
    begun.send_signal(signal.SIGINT)
    assert begun.wait(60) == 130
    assert engine.removable() == []
    assert len(engine.volumes()) == 1

    kept, _ = _done(tmp_path, "down", "--runs-dir", ".")
    assert f"kept the log of the server of {NAME}/0001, trial asgd: `edgebed resume {NAME}/0001` goes on from" in kept
    others, _ = _done(tmp_path, "down", "--logs", "--runs-dir", "elsewhere")
    assert f"its run, in {tmp_path}/{NAME}/0001, is none of elsewhere" in others
    assert len(engine.volumes()) == 1

    said, _ = _done(tmp_path, "down", "--logs", "--runs-dir", ".")

    assert f"removed the log of the server of {NAME}/0001, trial asgd" in said
    assert engine.volumes() == []
    refused = WarmCommand("resume", NAME, "--runs-dir", ".", cwd=tmp_path)
    _, why = refused.communicate(timeout=100)
    assert refused.returncode == 3
    assert "the server's log is missing, or empty, and the journal has update " in why
    _done(tmp_path, "resume", NAME, "--from-checkpoint", "--runs-dir", ".")
    ((_, _, restored),) = of_type(read_journal(trial / "events.jsonl"), records.Restored)
    assert restored.replayed is None
    assert restored.version >= 50


def _begun(folder: Path) -> WarmCommand:
    return WarmCommand("run", "logged.yaml", "--runtime", "docker", "--runs-dir", ".", cwd=folder)


def _done(folder: Path, *arguments: str) -> tuple[str, str]:
    process = WarmCommand(*arguments, cwd=folder)
    out, err = process.communicate(timeout=100)
    assert process.wait() == 0, err
    return out, err
