"""Random faults from a seed: every run ends, its books close exactly, and the journal names each fault that was due.

`EDGEBED_RANDOM_FAULTS=1000` runs so many, `EDGEBED_RANDOM_FAULTS=17-17` the one of that seed alone.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import random_faults

from edgebed.core import records

Outcome = Any  # conftest.py
Simulate = Callable[..., Outcome]


def blocks() -> list[range]:
    """The seeds to run, a test for each fifty of them."""
    seeds = random_faults.seeds(200)
    return [seeds[k : k + 50] for k in range(0, len(seeds), 50)]


def check_pushes(outcome: Outcome) -> None:
    """What the journal tells of each update is what the simulation did with it."""
    told = [entry for entry in outcome.entries if isinstance(entry[2], records.Pushes)]
    pushed = {(node, record.incarnation, step) for _, node, record in told for step in range(record.pushed)}
    seen = Counter(
        (record.worker, record.incarnation, record.step)
        for _, record in outcome.of(records.Update) + outcome.of(records.Refused)
        if record.step >= 0
    )
    assert max(seen.values(), default=1) == 1
    lost = outcome.lost.keys() | outcome.under_way
    assert pushed - seen.keys() == lost - seen.keys()
    assert outcome.of(records.Restored) or not lost & seen.keys()  # else it was pushed once more, to another server
    assert seen.keys() <= pushed
    last = {(node, record.incarnation): record.begun for _, node, record in told}
    begun = sum(last.values())
    total = outcome.accounting.total
    assert total.begun == begun
    assert total.applied + sum(total.refused.values()) == len(seen)
    assert total.lost + total.unfinished == begun - len(seen)


@pytest.mark.parametrize("seeds", blocks(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_books_close_whatever_happens(simulate: Simulate, seeds: range) -> None:
    """One run after another; the first that fails is named with the way to repeat it."""
    check_all(simulate, seeds, random_faults.METHODS)


def test_the_books_close_with_methods_that_hold_pushes(simulate: Simulate) -> None:
    """In a buffer, in a round, or until the slowest has caught up."""
    check_all(simulate, random_faults.seeds(30), random_faults.HOLDING)


def check_all(simulate: Simulate, seeds: range, methods: Sequence[Any]) -> None:
    """Run by run."""
    for seed in seeds:
        try:
            outcome = simulate(random_faults.scenario_of(seed, methods=methods))
            random_faults.check_journal(random_faults.Told(outcome.plan, outcome.entries))
            check_pushes(outcome)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed is what to look at
            pytest.fail(f"seed {seed}: {error!r}; again with {random_faults.SEEDS}={seed}-{seed} pytest {__file__}")
