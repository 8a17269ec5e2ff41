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
import yaml
from live_runs import run_live
from numpy.typing import NDArray
from random_faults import Told

from edgebed.core import records
from edgebed.journal.checkpoints import read_checkpoint
from edgebed.journal.run_folder import TrialFolder
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
@pytest.mark.parametrize(("method", "workers"), [("sync-sgd", 3), ("adacomp", 1)])
def test_a_killed_server_comes_to_the_model_of_one_that_lived(method: Any, workers: int, tmp_path: Path) -> None:
    """To the bit; every update is there once, no worker was told of one that is not, and the accounts close."""
    _, expected = trained(method, workers, 0, tmp_path / "living")
    told, found = trained(method, workers, KILLS, tmp_path / "killed")

    restored = [record for _, record in told.of(records.Restored)]
    updates = Counter(record.version for _, record in told.of(records.Update))
    steps = Counter((record.worker, record.incarnation, record.step) for _, record in told.of(records.Update))
    heard = {record.version for _, record in told.of(records.Received) if record.message == "model"}
    assert sum(record.action == "kill" for _, record in told.of(records.Fault)) == KILLS
    assert KILLS / 2 <= len(restored) <= KILLS  # one that is killed again before it is ready has gone on nowhere
    assert [record.version for record in restored] == sorted(record.version for record in restored)
    assert all(record.replayed is not None and record.log_bytes > 0 for record in restored)
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
