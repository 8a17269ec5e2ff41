"""Random faults from a seed, done to real processes: held by the kernel for root, or by the nodes themselves.

Every run ends, its books close exactly, and its journal names each fault that was due. The scenario of a seed, and so
its schedule, is that of all runtimes. `EDGEBED_RANDOM_FAULTS=17-17` runs that of 17 alone.
"""

import random
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import random_faults
from live_runs import run_live, side_by_side
from waiting import until
from warm_command import WarmCommand
from warm_fork_server import called

from edgebed.emulation import means

pytestmark = pytest.mark.random

SEEDS = random_faults.seeds(3, 12)
AT_ONCE = 4
"""Runs at a time: their nodes mostly wait."""
SLACK_S = 1.0
"""Between asking and doing, and between the last update and the news of it, on a busy machine."""


@pytest.fixture(scope="module")
def rights() -> None:
    """Of root, with which the kernel carries faults out."""
    if reason := means.why_no_namespaces() or means.why_no_cgroups():
        pytest.skip(f"neither namespaces nor cgroups: {reason}; run the tests as root")


@pytest.mark.slow
@pytest.mark.timeout(300 + 20 * len(SEEDS))
@pytest.mark.parametrize("emulation", ["kernel", "model"])
def test_the_books_close_whatever_happens(rights: None, tmp_path: Path, emulation: str) -> None:
    """For every seed, of which a third do without the kernel; several runs at a time."""

    def check(seed: int) -> None:
        scenario = random_faults.scenario_of(seed, memory=emulation == "kernel")
        run = run_live(scenario, tmp_path / str(seed), "--emulation", emulation)
        assert run.told.plan == random_faults.plan_of(scenario)
        random_faults.check_journal(run.told, SLACK_S)

    side_by_side(check, SEEDS if emulation == "kernel" else SEEDS[: -(-len(SEEDS) // 3)], AT_ONCE)


def killing(seed: int, controller: WarmCommand, folder: Path) -> None:
    """While it trains, kill twice what nodes stand on: what forks them, what holds their namespaces, or both."""
    draw = random.Random(f"{seed}: fork server and switch")

    def is_training() -> bool:
        journals = list(folder.glob("runs/*/0001/*/events.jsonl"))
        return controller.poll() is not None or any('"kind":"trial"' in each.read_text() for each in journals)

    until(is_training, "the training", every_s=0.05)
    for modules in draw.choices((["fork_server"], ["emulation.switch"], ["fork_server", "emulation.switch"]), k=2):
        time.sleep(draw.uniform(0.0, 4.0))
        with suppress(psutil.Error):
            for child in psutil.Process(controller.pid).children():
                if any(module in called(child) for module in modules):
                    child.kill()


@pytest.mark.slow
@pytest.mark.timeout(300 + 20 * len(SEEDS))
def test_the_books_close_though_what_nodes_stand_on_is_killed(rights: None, tmp_path: Path) -> None:
    """Under the policy of restarting: all nodes begin another life, and the faults go on."""

    def check(seed: int) -> None:
        scenario = random_faults.scenario_of(seed) | {"on_failure": "restart"}
        run = run_live(scenario, tmp_path / str(seed), meanwhile=lambda *given: killing(seed, *given))
        random_faults.check_journal(run.told, SLACK_S)
        assert not run.told.ended[1].reason.startswith("the controller failed")

    side_by_side(check, SEEDS[: -(-len(SEEDS) // 2)], AT_ONCE // 2)  # to start what was killed takes a core
