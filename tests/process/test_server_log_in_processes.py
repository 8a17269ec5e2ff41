"""The server, a real process, is killed again and again, and nothing that it has answered is lost.

As many times as EDGEBED_SERVER_KILLS says: a few in the suite, a hundred in `scripts/campaign`.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_runs import run_live
from numpy.typing import NDArray
from random_faults import Told

from edgebed.core import records
from edgebed.journal.checkpoints import read_checkpoint
from edgebed.journal.series import Series

KILLS = int(os.environ.get("EDGEBED_SERVER_KILLS", "5"))
EVERY = 60
"""Updates between two kills, about; the controller hears of an update up to a fifth of a second later."""
Begin = Callable[..., "LiveRun"]  # noqa: F821 # of conftest.py, which is no module to import from


def trained(method: Any, workers: int, kills: int, folder: Path, durability: str = "log") -> tuple[Told, NDArray[Any]]:
    """What the journal of such a run tells, and its final model."""
    draw = random.Random(kills)
    at = [EVERY * k + draw.randrange(EVERY // 2) for k in range(1, kills + 1)]
    scenario = {
        "name": "server-log",
        "question": "Is anything lost?",
        "seed": 4,
        "task": {"data": "digits", "model": "small", "batch_size": 10},
        "method": method,
        "fleet": {"edge": {"count": workers, "waiting": {"uniform": ["1ms", "4ms"]}}},
        "server": {"durability": durability},
        "evaluation": {"every": "100 updates"},
        "stop": {"updates": EVERY * (KILLS + 2)},
        "faults": [{"restart": "server", "at_update": each, "delay": "0s"} for each in at],
    }
    run = run_live(scenario, folder, "--trace")
    assert run.exit_code == 0
    return run.told, read_checkpoint(run.trial.final_checkpoint).theta


@pytest.mark.slow
@pytest.mark.timeout(60 + 20 * KILLS)
@pytest.mark.parametrize(("method", "workers", "durability"), [("sync-sgd", 3, "log"), ("adacomp", 1, "fsync")])
def test_a_killed_server_comes_to_the_model_of_one_that_lived(
    method: Any, workers: int, durability: str, tmp_path: Path
) -> None:
    """To the bit; every update is there once, no worker was told of one that is not, and the accounts close."""
    _, expected = trained(method, workers, 0, tmp_path / "living", durability)
    told, found = trained(method, workers, KILLS, tmp_path / "killed", durability)

    restored = [record for _, record in told.of(records.Restored)]
    updates = Counter(record.version for _, record in told.of(records.Update))
    steps = Counter((record.worker, record.incarnation, record.step) for _, record in told.of(records.Update))
    heard = {record.version for _, record in told.of(records.Received) if record.message == "model"}
    assert sum(record.action == "kill" for _, record in told.of(records.Fault)) == KILLS
    assert KILLS / 2 <= len(restored) <= KILLS  # one that is killed again before it is ready has gone on nowhere
    assert [record.version for record in restored] == sorted(record.version for record in restored)
    assert all(record.replayed is not None and record.log_bytes > 0 for record in restored)
    assert {record.bytes > 0 and record.append_s > 0.0 for _, record in told.of(records.Appended)} == {True}
    assert any(record.saved for _, record in told.of(records.Appended))
    assert any(record.syncs for _, record in told.of(records.Appended)) == (durability == "fsync")
    assert updates == Counter(range(1, max(updates) + 1))
    assert max(steps.values()) == 1
    assert heard <= {0, *updates}
    assert told.accounting.closes, told.accounting.problems
    assert told.accounting.total.lost == 0
    np.testing.assert_array_equal(found, expected)


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
    assert "remove it to go on from the last checkpoint; then resume the run" in ended.reason
    assert "damaged at byte 0" in run.err
    log.unlink()
    resumed = run.start("resume", "damaged")
    run.until(lambda: len(run.all(records.Ended)) == 1 and run.states("server").count("running") == 2, "its server")
    resumed.send_signal(signal.SIGINT)
    resumed.communicate(timeout=60)
