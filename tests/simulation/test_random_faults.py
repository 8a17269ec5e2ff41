"""Random faults from a seed: every run ends, its books close exactly, and the journal names each fault that was due.

`EDGEBED_RANDOM_FAULTS=17-17` runs the one of that seed alone. What a storm that fails says has the fewest of its faults
that are enough.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import random_faults
import storms

Outcome = Any  # conftest.py
Simulate = Callable[..., Outcome]
pytestmark = pytest.mark.random


def blocks() -> list[range]:
    """The seeds to run, a test for each dozen of them."""
    seeds = random_faults.seeds(12, 240)
    return [seeds[k : k + 12] for k in range(0, len(seeds), 12)]


@pytest.mark.parametrize("seeds", blocks(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_books_close_whatever_happens(simulate: Simulate, seeds: range) -> None:
    """One run after another; the first that fails is named with the way to repeat it."""
    check_all(simulate, seeds, random_faults.METHODS)


@pytest.mark.parametrize("seeds", blocks(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_books_close_with_methods_that_hold_pushes(simulate: Simulate, seeds: range) -> None:
    """In a buffer, in a round, or until the slowest has caught up."""
    check_all(simulate, seeds, random_faults.HOLDING)


@pytest.mark.parametrize("seeds", blocks(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_books_close_with_faults_of_server_and_evaluator(simulate: Simulate, seeds: range) -> None:
    """A server that is started anew is the one that ended, with any method; of its log all is in the journal once."""
    check_all(simulate, seeds, random_faults.SERVED, hubs=True)


@pytest.mark.parametrize("seeds", blocks(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_books_close_with_methods_that_remember_more(simulate: Simulate, seeds: range) -> None:
    """Control variates, drifts, fragments and the models that workers were sent, with a server that dies, too."""
    check_all(simulate, seeds, random_faults.REMEMBERING, hubs=True)


def check_all(simulate: Simulate, seeds: range, methods: Sequence[Any], *, hubs: bool = False) -> None:
    """Run by run."""
    for seed in seeds:
        scenario = random_faults.scenario_of(seed, methods=methods, hubs=hubs)
        if error := storms.failure_of(simulate, scenario):
            pytest.fail(storms.complaint(simulate, seed, scenario, error))
