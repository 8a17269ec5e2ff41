"""The server is killed ten times in one run in virtual time, and the model learns as well as without."""

from collections.abc import Callable
from typing import Any

import server_killed
from random_faults import Told

Simulate = Callable[..., Any]  # conftest.py


def told(simulate: Simulate, scenario: dict[str, Any]) -> Told:
    """What its journal tells."""
    outcome = simulate(scenario)
    return Told(outcome.plan, outcome.entries)


def test_it_goes_on_ten_times_and_learns_as_well(simulate: Simulate) -> None:
    """Whether each fault, or the policy, launches it anew."""
    living = [server_killed.accuracy(told(simulate, server_killed.scenario_of(seed))) for seed in server_killed.SEEDS]
    assert max(living) > min(living) > 0.9
    for seed, how in enumerate(("restart", "policy"), 1):
        server_killed.check_killed(told(simulate, server_killed.scenario_of(seed, how)), living)
