"""Going on with a run that has broken off, with real processes.

Method: a real run is ended before its time, by the death of its controller, of its server, or by Ctrl-C; `edgebed
resume` goes on. The journal, which both have written, tells whether it is one trial.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import edgebed
from edgebed.core import records
from edgebed.core.errors import ScenarioError
from edgebed.journal.checkpoints import read_checkpoint
from edgebed.journal.run_folder import RunFolder
from edgebed.running.results import load

UPDATES = 600
EVERY = 50
SCENARIO = f"""
name: resumed
question: Is it one trial?
task: {{ data: digits, model: small, batch_size: 10 }}
method: adacomp
fleet: {{ edge: {{ count: 3, waiting: 30ms }} }}
evaluation: {{ every: 100 updates }}
stop: {{ updates: {UPDATES} }}
checkpoints: {{ every: {EVERY} updates }}
server: {{ durability: none }}
deadlines: {{ join: 20s, stall: 30s }}
"""
Begin = Callable[..., "LiveRun"]  # noqa: F821 # of conftest.py, which is no module to import from


def is_one_trial(run, lives: int = 2) -> None:
    """Both parts of the journal together are one trial that has completed."""
    entries = run.entries()
    times = [t for t, _, r in entries if isinstance(r, records.Node | records.Trial | records.Restored | records.Ended)]
    assert times == sorted(times)
    joined = [r for r in run.all(records.Node) if r.state == "joined"]
    assert {r.name: r.incarnation for r in joined} == dict.fromkeys(("server", "evaluator", *workers()), lives)
    restored = [(k, r) for k, (_, _, r) in enumerate(entries) if isinstance(r, records.Restored)]
    assert [r.incarnation for _, r in restored] == list(range(2, lives + 1))
    place, last = restored[-1]
    versions = [r.version for _, _, r in entries[place:] if isinstance(r, records.Update)]
    assert versions == list(range(last.version + 1, UPDATES + 1))
    assert all(r.incarnation == lives for _, _, r in entries[place:] if isinstance(r, records.Update))

    trial = load(run.path).trials["adacomp"]
    assert trial.summary.outcome == "completed"
    assert trial.summary.final["accuracy"] is not None
    final = read_checkpoint(trial.folder.final_checkpoint)
    assert final.version == UPDATES
    assert np.isfinite(final.theta).all()
    assert not RunFolder(run.path).is_running()
    assert len(json.loads((run.path / "manifest.json").read_text())["resumed"]) == lives - 1
    assert (run.path / "report.html").exists()


def workers() -> tuple[str, ...]:
    """Those of the scenario."""
    return tuple(f"edge-{k}" for k in range(3))


def test_a_run_whose_controller_was_killed_goes_on(begin: Begin) -> None:
    """Even if the kill cut the last line of the journal in two."""
    run = begin(SCENARIO, "--emulation", "model").trains(200)
    os.kill(run.process.pid, signal.SIGKILL)
    run.end()
    applied = len(run.all(records.Update))
    with (run.trial / "events.jsonl").open("a") as journal:
        journal.write('{"t":3.1,"node":"ser')
    assert json.loads(run.command("ls", "--json")[1])[0]["result"] == "unfinished"
    code, out, err = run.command("resume", "resumed")

    assert code == 0, err
    assert "adacomp" in out
    is_one_trial(run)
    (restored,) = run.all(records.Restored)
    assert restored.version >= 150
    assert restored.version in (applied // EVERY * EVERY, (applied // EVERY - 1) * EVERY)
    code, _, err = run.command("resume", "resumed")
    assert (code, err) == (2, "error: run resumed/0001 is complete: there is nothing to resume\n")


def test_a_run_that_was_interrupted_twice_goes_on_twice(begin: Begin) -> None:
    """From where it was: the server hands its model over when it is told to end. Nothing is lost."""
    run = begin(SCENARIO, "--emulation", "model").trains(100)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert "to resume: edgebed resume resumed/0001" in run.err
    assert json.loads(run.command("ls", "--json")[1])[0]["result"] == "interrupted"
    run.process = run.start("resume", "resumed")
    run.trains(300)
    with pytest.raises(ScenarioError, match="run resumed/0001 is in progress"):
        edgebed.resume(run.path)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert run.command("resume", "resumed")[0] == 0

    is_one_trial(run, lives=3)
    assert [r.version for r in run.all(records.Update)] == list(range(1, UPDATES + 1))


@pytest.mark.parametrize("trigger", ["at_update: 200", "at: 2s"])
def test_a_run_that_failed_with_its_server_goes_on_without_that_fault(begin: Begin, trigger: str) -> None:
    """It has been; else nobody could ever get beyond it."""
    run = begin(SCENARIO + f"faults: [{{ kill: server, {trigger} }}]\n", "--emulation", "model")
    run.trains(20)
    assert run.end() == 3
    assert "the server died" in load(run.path).trials["adacomp"].summary.reason
    code, _, err = run.command("resume", "resumed")

    assert code == 0, err
    is_one_trial(run)
    assert len(run.all(records.Fault)) == 1


def test_a_run_that_would_not_be_the_same_is_refused(begin: Begin) -> None:
    """The plan is part of the run; the message says what differs."""
    run = begin(SCENARIO, "--emulation", "model").trains(100)
    os.kill(run.process.pid, signal.SIGKILL)
    run.end()
    scenario = run.path / "scenario.yaml"
    text = scenario.read_text()
    scenario.write_text(text.replace("count: 3", "count: 4"))
    code, _, err = run.command("resume", "resumed")
    manifest = json.loads((run.path / "manifest.json").read_text())
    (run.path / "manifest.json").write_text(json.dumps(manifest | {"code": "0123"}))
    other_code, _, other_err = run.command("resume", "resumed")

    assert code == 2
    assert "trial adacomp would not be the same: nodes" in err
    assert other_code == 2
    assert "begun by other code of edgebed" in other_err


TRAINED_S = 6.0
SLOW_START_S = 4.0
SLOW = """
import time
from pathlib import Path

from torch import nn

def net(input_shape, outputs):
    '''Slow to build in the nodes of a run that is resumed.'''
    if '"continued"' in Path("JOURNAL").read_text():
        time.sleep(SECONDS)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, outputs))
"""


def test_a_run_that_is_resumed_trains_as_long_as_any_other(begin: Begin, tmp_path: Path, monkeypatch) -> None:
    """Its start takes no time of the training: not of its limit, its faults, or its updates."""
    journal = tmp_path / "events.jsonl"
    journal.touch()
    (tmp_path / "slow_to_build.py").write_text(
        SLOW.replace("JOURNAL", str(journal)).replace("SECONDS", f"{SLOW_START_S}")
    )
    monkeypatch.chdir(tmp_path)
    run = begin(f"""
name: resumed
task: {{ data: digits, model: "slow_to_build:net", batch_size: 10 }}
method: asgd
fleet: {{ edge: {{ count: 2, waiting: 30ms }} }}
evaluation: {{ every: 1s }}
stop: {{ time: {TRAINED_S}s }}
faults: [{{ freeze: edge-0, at: 4.5s, for: 500ms }}]
deadlines: {{ join: 30s, stall: 30s }}
""", "--emulation", "model").trains(60)  # fmt: skip
    os.kill(run.process.pid, signal.SIGKILL)
    run.end()
    journal.unlink()
    journal.symlink_to(run.trial / "events.jsonl")
    code, _, err = run.command("resume", "resumed")
    assert code == 0, err
    (continued,) = run.all(records.Continued)
    first, second = (t for t, _, record in run.entries() if isinstance(record, records.Trial))
    trial = load(run.path).trials["asgd"]
    gaps = np.diff(trial.series.updates.t)

    assert second - first - continued.trained_s > SLOW_START_S
    assert trial.summary.time_s == pytest.approx(TRAINED_S, abs=1.0)
    assert trial.series.updates.t[-1] == pytest.approx(TRAINED_S, abs=1.0)
    assert gaps.max() < SLOW_START_S
    assert [done.asked_t for done in trial.series.faults] == pytest.approx([4.5, 5.0], abs=0.1)
    assert trial.summary.accounting.closes
    assert trial.summary.unobserved_s < 2.0
    lost = {life.worker: life.lost_with_worker for life in trial.summary.accounting.lives if life.incarnation == 1}
    assert lost == {"edge-0": 1, "edge-1": 1}
