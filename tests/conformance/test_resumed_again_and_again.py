"""A controller is killed at drawn moments, with its server or without, and each time the run is resumed.

Whatever was in force when it died, nothing that the server had answered is lost, and the accounts of all lives close.
"""

import os
import random
import signal
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import soaking
from live_runs import updates_in
from waiting import until
from warm_command import WarmCommand

from edgebed.core import records
from edgebed.journal.folds import of_type
from edgebed.journal.journal import read_journal
from edgebed.journal.run_folder import TrialFolder
from edgebed.journal.series import Series

KILLS = 3
"""Times that a run loses its controller."""
STEP = 120
"""Updates between two kills, at most."""
LIMIT_S = 100.0
"""For a start, a resume or an end, on a busy machine."""


def scenario_of(seed: int) -> dict[str, Any]:
    """Two or three workers with pauses of milliseconds; by half of the seeds checkpoints are made on the way."""
    draw = random.Random(f"resumed {seed}")
    return {
        "name": f"resumed-{os.getpid()}-{seed}",
        "seed": seed,
        "task": {"data": "digits", "model": "small", "batch_size": 10},
        "method": draw.choice(["asgd", "adacomp", "sync-sgd"]),
        "fleet": {"edge": {"count": draw.choice([2, 3]), "waiting": "10ms"}},
        "checkpoints": {"every": draw.choice(["40 updates", "100000 updates"])},
        "evaluation": {"every": "200 updates"},
        "stop": {"updates": STEP * (KILLS + 1)},
        "deadlines": {"join": f"{LIMIT_S:g}s"},
    }


@pytest.mark.soak
@pytest.mark.alone  # any other command would remove what is left
@pytest.mark.timeout((KILLS + 1) * LIMIT_S)
@pytest.mark.parametrize("runtime", ["process", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.parametrize("seed", soaking.seeds(1, 4))
def test_nothing_is_lost_however_often_a_run_is_resumed(runtime: str, seed: int, tmp_path: Path) -> None:
    """Every version is in the journal once, and as many updates were applied as the stop asks for."""
    scenario, draw = scenario_of(seed), random.Random(f"killed {seed}")
    (tmp_path / "scenario.yaml").write_bytes(msgspec.json.encode(scenario))
    (words, again) = (("run", "scenario.yaml", "--runtime", runtime), ("resume", scenario["name"]))

    for number in range(1, KILLS + 1):
        due = STEP * (number - 1) + draw.randrange(20, STEP)
        begun = WarmCommand(*words, "--runs-dir", ".", cwd=tmp_path)
        until(lambda: applied(tmp_path) >= due or begun.poll() is not None, "training", LIMIT_S, every_s=0.05)  # noqa: B023
        kill(begun, tmp_path, with_server=runtime == "process" and draw.random() < 0.5)
        words = again
    last = WarmCommand(*again, "--runs-dir", ".", cwd=tmp_path)
    _, err = last.communicate(timeout=LIMIT_S)
    assert last.returncode == 0, err

    trial = TrialFolder(next(tmp_path.glob("*/0001/*/events.jsonl")).parent)
    series = Series.from_journal(trial.journal)
    versions = [record.version for _, _, record in of_type(read_journal(trial.journal), records.Update)]
    books = series.accounting
    assert len(list(of_type(read_journal(trial.journal), records.Continued))) == KILLS
    assert versions == list(range(1, len(versions) + 1))
    assert books.closes, books.problems
    assert books.total.applied == len(versions) >= scenario["stop"]["updates"]
    assert not trial.server_log.exists()


def applied(folder: Path) -> int:
    """Updates that the journal has."""
    return sum(map(updates_in, folder.glob("*/0001/*/events.jsonl")))


def kill(begun: WarmCommand, folder: Path, *, with_server: bool) -> None:
    """Kill the controller, and the server, which else goes on alone for a while."""
    assert begun.poll() is None, begun.communicate(timeout=1)
    if with_server:
        (journal,) = folder.glob("*/0001/*/events.jsonl")
        nodes = [record for _, _, record in of_type(read_journal(journal), records.Node) if record.name == "server"]
        psutil.Process(next(node.pid for node in reversed(nodes) if node.pid)).kill()
    begun.send_signal(signal.SIGKILL)
    begun.wait()
