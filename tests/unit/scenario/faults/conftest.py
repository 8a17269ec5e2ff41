"""A fleet for faults, and a way from the list of a scenario to the faults of its plan."""

from collections.abc import Callable
from typing import Any

import pytest

from edgebed.core.planned.fault import FaultPlan
from edgebed.scenario.faults.registry import plan_faults, read_faults
from edgebed.scenario.faults.settings.targets import Group, Roster

ROSTER: Roster = {
    "server": Group("server", ("server",)),
    "evaluator": Group("evaluator", ("evaluator",)),
    "phones": Group("worker", tuple(f"phones-{k}" for k in range(8)), memory_capped=True, latency_s=0.04),
    "hub": Group("worker", ("hub-0", "hub-1")),
}


@pytest.fixture(scope="session")
def roster() -> Roster:
    """Eight phones with a memory cap and a latency, two hubs with neither."""
    return ROSTER


@pytest.fixture(scope="session")
def resolve() -> Callable[..., list[FaultPlan]]:
    """The faults that entries come to."""

    def resolve(*entries: dict[str, Any], seed: int = 1, roster: Roster = ROSTER) -> list[FaultPlan]:
        return list(plan_faults(read_faults(list(entries), roster), roster, seed))

    return resolve
