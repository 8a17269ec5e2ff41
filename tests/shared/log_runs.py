"""Live runs whose server, which keeps a log, is killed again and again; and what must hold of them."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

from live_runs import DEADLINE_S, LiveRun, run_live
from random_faults import Told

from edgebed.core import records

EVERY = 60
"""Updates between two kills, about; the controller hears of an update up to a fifth of a second later."""


def run_killed(name: str, method: Any, workers: int, kills: int, folder: Path, *options: str, updates: int) -> LiveRun:
    """Run to so many updates; the server is killed and restarted so often on the way."""
    draw = random.Random(kills)
    at = [EVERY * k + draw.randrange(EVERY // 2) for k in range(1, kills + 1)]
    scenario = {
        "name": name,
        "question": "Is anything lost?",
        "seed": 4,
        "task": {"data": "digits", "model": "small", "batch_size": 10},
        "method": method,
        "fleet": {"edge": {"count": workers, "waiting": {"uniform": ["1ms", "4ms"]}}},
        "evaluation": {"every": "100 updates"},
        "stop": {"updates": updates},
        "faults": [{"restart": "server", "at_update": each, "delay": "0s"} for each in at],
    }
    run = run_live(scenario, folder, "--trace", *options, deadline_s=DEADLINE_S + 15 * kills)
    assert run.exit_code == 0
    return run


def assert_nothing_lost(told: Told, kills: int) -> None:
    """Every update is there once, no worker was told of one that is not, and the accounts close."""
    restored = [record for _, record in told.of(records.Restored)]
    updates = Counter(record.version for _, record in told.of(records.Update))
    steps = Counter((record.worker, record.incarnation, record.step) for _, record in told.of(records.Update))
    heard = {record.version for _, record in told.of(records.Received) if record.message == "model"}
    assert sum(record.action == "kill" for _, record in told.of(records.Fault)) == kills
    assert kills / 2 <= len(restored) <= kills  # one that is killed again before it is ready has gone on nowhere
    assert [record.version for record in restored] == sorted(record.version for record in restored)
    assert all(record.replayed is not None and record.log_bytes > 0 for record in restored)
    assert updates == Counter(range(1, max(updates) + 1))
    assert max(steps.values()) == 1
    assert heard <= {0, *updates}
    assert told.accounting.closes, told.accounting.problems
    assert told.accounting.total.lost == 0
