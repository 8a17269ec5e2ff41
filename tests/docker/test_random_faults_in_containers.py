"""Random faults from a seed, done to containers: every run ends, its books close, its journal names each fault.

The scenario of a seed, and so its schedule, is that of all runtimes. `EDGEBED_RANDOM_FAULTS=7-7` runs that of 7 alone.
"""

import os
from pathlib import Path

import pytest
import random_faults
from live_runs import run_live, side_by_side

SEEDS = random_faults.seeds(1, 6)
AT_ONCE = 2
"""Runs at a time."""
SLACK_S = 2.0
"""Between asking and doing, and between the last update and the news of it, on a busy machine: the engine may queue."""


@pytest.mark.random
@pytest.mark.timeout(300 + 30 * len(SEEDS))
def test_the_books_close_whatever_happens(tmp_path: Path) -> None:
    """Several runs at a time; a seed that fails can be repeated alone."""

    def check(seed: int) -> None:
        scenario = random_faults.scenario_of(seed) | {"name": f"random-{os.getpid()}-{seed}"}
        run = run_live(scenario, tmp_path / str(seed), "--runtime", "docker")
        assert run.told.plan == random_faults.plan_of(scenario)
        random_faults.check_journal(run.told, SLACK_S)

    side_by_side(check, SEEDS, AT_ONCE)
