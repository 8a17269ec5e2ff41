"""The server, a real process, is killed again and again, and nothing that it has answered is lost.

A few times in the suite, more often in `scripts/test soak`.
"""

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soaking
import yaml
from live_runs import run_live
from log_runs import EVERY, assert_nothing_lost, run_killed

from edgebed.core import records
from edgebed.journal.checkpoints import read_checkpoint
from edgebed.journal.run_folder import TrialFolder
from edgebed.journal.series import Series

KILLS = soaking.count(3, 20)
Begin = Callable[..., "LiveRun"]  # noqa: F821 # of conftest.py, which is no module to import from


@pytest.mark.slow
@pytest.mark.random
@pytest.mark.timeout(60 + 20 * KILLS)
@pytest.mark.parametrize(("method", "workers", "durability"), [("sync-sgd", 3, "log"), ("adacomp", 1, "fsync")])
def test_a_killed_server_comes_to_the_model_of_one_that_lived(
    method: Any, workers: int, durability: str, tmp_path: Path
) -> None:
    """To the bit, with nothing lost."""
    models, choice, updates = {}, ("--set", f"server.durability={durability}"), EVERY * (KILLS + 2)
    for kills in (0, KILLS):
        run = run_killed("server-log", method, workers, kills, tmp_path / str(kills), *choice, updates=updates)
        models[kills] = read_checkpoint(run.trial.final_checkpoint).theta

    appended = [record for _, record in run.told.of(records.Appended)]
    assert_nothing_lost(run.told, KILLS)
    assert all(record.bytes > 0 and record.append_s > 0.0 for record in appended)
    assert any(record.saved for record in appended)
    assert any(record.syncs for record in appended) == (durability == "fsync")
    np.testing.assert_array_equal(models[KILLS], models[0])


SCENARIO = """
name: resumed
question: Does it go on where its server ended?
task: { data: digits, model: small, batch_size: 10 }
method: asgd
fleet: { edge: { count: 2, waiting: 5ms } }
checkpoints: { every: 100000 updates }
evaluation: { every: 500 updates }
stop: { updates: 600 }
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_broke_off_goes_on_where_its_server_ended(begin: Begin, how: signal.Signals) -> None:
    """There is no checkpoint at all; the journal has what it lacked; in the end the log is gone."""
    run = begin(SCENARIO, "--emulation", "model").trains(150)
    run.process.send_signal(how)
    run.end()
    known = max(record.version for record in run.all(records.Update))
    code, _, err = run.command("resume", "resumed")
    assert code == 0, err

    (restored,) = run.all(records.Restored)
    versions = [record.version for record in run.all(records.Update)]
    assert restored.version >= known >= 150
    assert restored.replayed == restored.version
    assert versions == list(range(1, len(versions) + 1))
    books = Series.from_journal(run.trial / "events.jsonl").accounting
    assert books.closes, books.problems
    assert books.total.applied == len(versions) >= 600
    assert not (run.trial / "server-log").exists()


@pytest.mark.slow
def test_a_run_whose_controller_was_killed_comes_to_the_model_that_its_log_and_seed_say(begin: Begin) -> None:
    """To the bit: that of a simulation whose worker begins its second life after the same push."""
    text = SCENARIO.replace("asgd", "adacomp").replace("count: 2", "count: 1")
    run = begin(text, "--emulation", "model").trains(150)
    run.process.kill()
    run.end()
    code, _, err = run.command("resume", "resumed")
    assert code == 0, err
    lives = Counter(record.incarnation for record in run.all(records.Update))
    fault = f"faults: [{{ restart: edge-0, after: push, step: {lives[1] - 1}, delay: 0s }}]\n"
    expected = run_live(yaml.safe_load(text + fault), run.runs / "simulated", "--runtime", "simulation")

    assert lives[1] >= 150
    assert lives[2] == 600 - lives[1]
    made = [(r.version, r.incarnation, r.step, r.loss) for r in run.all(records.Update)]
    assert made == [(r.version, r.incarnation, r.step, r.loss) for _, r in expected.told.of(records.Update)]
    found = read_checkpoint(TrialFolder(run.trial).final_checkpoint).theta
    np.testing.assert_array_equal(found, read_checkpoint(expected.trial.final_checkpoint).theta)


DAMAGED = """
name: damaged
question: What becomes of a server whose log cannot be read?
task: { data: digits, model: small, batch_size: 10 }
method: asgd
fleet: { edge: { count: 2, waiting: 5ms } }
server: { durability: fsync }
on_failure: restart
restart_delay: 0s
stop: { updates: 100000 }
"""


@pytest.mark.slow
def test_a_server_with_a_damaged_log_ends_the_run_once(begin: Begin) -> None:
    """It is not restarted again and again; what to do is said, and done: without its log it has its checkpoint."""
    run = begin(DAMAGED, "--emulation", "model").trains(100)
    log = run.trial / "server-log" / "server.log"
    with log.open("r+b") as file:
        file.seek(1000)
        file.write(b"\0" * 100)
    run.node("server").kill()
    assert run.end() == 3

    (ended,) = run.all(records.Ended)
    assert run.states("server").count("joined") == 2
    assert ended.outcome == "failed"
    assert f"{log} of the server: damaged at byte 0: " in ended.reason
    assert "go on from the last checkpoint without it (edgebed resume --from-checkpoint)" in ended.reason
    assert "damaged at byte 0" in run.err
    resumed = run.start("resume", "damaged", "--from-checkpoint")
    run.until(lambda: len(run.all(records.Ended)) == 1 and run.states("server").count("running") == 2, "its server")
    resumed.send_signal(signal.SIGINT)
    resumed.communicate(timeout=60)


@pytest.mark.slow
def test_a_log_that_lacks_what_the_journal_has_is_not_gone_on_from(begin: Begin) -> None:
    """The controller was killed, and the disk has lost half of the log: nothing is trained before a choice is made."""
    text = SCENARIO.replace("100000 updates", "50 updates").replace("500 updates", "100 updates").replace("600", "300")
    run = begin(text, "--emulation", "model").trains(120)
    run.process.kill()
    run.end()
    log, known = run.trial / "server-log" / "server.log", len(run.all(records.Update))
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size // 2)

    code, _, err = run.command("resume", "resumed")

    assert code == 3
    assert f"and the journal has update {known} of it" in err
    assert "`edgebed resume resumed/0001 --from-checkpoint` goes on from update " in err
    assert len(run.all(records.Update)) == known
    assert not run.all(records.Restored)

    code, _, err = run.command("resume", "resumed", "--from-checkpoint")

    assert code == 0, err
    (restored,) = run.all(records.Restored)
    assert (restored.replayed, restored.version % 50) == (None, 0)
    books = Series.from_journal(run.trial / "events.jsonl").accounting
    assert books.closes, books.problems
    assert not log.exists()
