"""Random faults from a seed, done to real processes: held by the kernel for root, or by the nodes themselves.

Every run ends, its books close exactly, and its journal names each fault that was due. The scenario of a seed, and so
its schedule, is that of all runtimes. `EDGEBED_RANDOM_FAULTS=30` runs so many seeds, `17-17` that of 17 alone.
"""

from pathlib import Path

import pytest
import random_faults
from live_runs import run_live, side_by_side

from edgebed.emulation import means

AT_ONCE = 4
"""Runs at a time: their nodes mostly wait."""
SLACK_S = 1.0
"""Between asking and doing, and between the last update and the news of it, on a busy machine."""


def blocks() -> list[tuple[str, range]]:
    """(what holds links and caps, seeds): for each seed the kernel, for a fifth of them the model as well."""
    seeds = random_faults.seeds(8)
    held = {"kernel": seeds, "model": seeds[: max(1, len(seeds) // 5)]}
    return [(name, some[k : k + AT_ONCE]) for name, some in held.items() for k in range(0, len(some), AT_ONCE)]


@pytest.fixture(scope="module")
def rights() -> None:
    """Of root, with which the kernel carries faults out."""
    if reason := means.why_no_namespaces() or means.why_no_cgroups():
        pytest.skip(f"neither namespaces nor cgroups: {reason}; run the tests as root")


@pytest.mark.parametrize(
    ("emulation", "seeds"), blocks(), ids=lambda each: each if isinstance(each, str) else f"{each[0]}-{each[-1]}"
)
def test_the_books_close_whatever_happens(rights: None, tmp_path: Path, emulation: str, seeds: range) -> None:
    """Several runs at a time; a seed that fails can be repeated alone."""

    def check(seed: int) -> None:
        scenario = random_faults.scenario_of(seed, memory=emulation == "kernel")
        run = run_live(scenario, tmp_path / str(seed), "--emulation", emulation)
        assert run.told.plan == random_faults.plan_of(scenario)
        random_faults.check_journal(run.told, SLACK_S)

    side_by_side(check, seeds, AT_ONCE)
