"""Random faults of layer-wise training from a seed: the books say of every step what the simulation did with it.

`EDGEBED_RANDOM_FAULTS=17-17` runs the one of that seed alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import random_faults
import random_shards

from edgebed.core import records
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.folds import Timeline
from edgebed.journal.journal import Entry

Outcome = Any  # conftest.py
Simulate = Callable[..., Outcome]


def blocks() -> list[range]:
    """The seeds to run, a test for each thirteen of them: each method once."""
    size = len(random_shards.METHODS)
    seeds = random_faults.seeds(size, 12 * size)
    return [seeds[k : k + size] for k in range(0, len(seeds), size)]


def check(outcome: Outcome) -> None:
    """Life by life."""
    books = outcome.accounting
    told = {(life.worker, life.incarnation): random_shards.counts_of(life) for life in books.lives}
    assert books.closes, books.problems
    assert told == outcome.truth.counts()
    assert books.total.begun == len(outcome.truth.begun)
    assert outcome.truth.begun


@pytest.mark.random
@pytest.mark.parametrize("seeds", blocks(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_books_say_what_became_of_every_step(simulate: Simulate, seeds: range) -> None:
    """One run after another; the first that fails is named with the way to repeat it."""
    for seed in seeds:
        try:
            check(simulate(random_shards.scenario_of(seed)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed is what to look at
            pytest.fail(f"seed {seed}: {error!r}; again with {random_faults.SEEDS}={seed}-{seed} pytest {__file__}")


def accounting_of(entries: Sequence[Entry]) -> Accounting | None:
    """Of a journal."""
    return UpdateAccounting(Timeline()).add_all(entries).close()


SHARDS = ("fast-0", "fast-1", "slow-0")


@pytest.mark.parametrize("method", [random_shards.METHODS[k] for k in (1, 5, 8)], ids=lambda method: method["preset"])
def test_a_line_that_is_dropped_or_doubled_is_noticed(simulate: Simulate, method: dict[str, Any]) -> None:
    """Of each step, in the model or rolled back, and of each history; wherever a journal is cut, its books close."""
    faults = [{"kill": shard, "at": f"{2 + k}s"} for k, shard in enumerate(SHARDS)]
    settings = {"method": method, "shards": {"cuts": "even"}, "faults": faults, "on_failure": "restart"}
    stop = {"stop": {"updates": 40}, "checkpoints": {"every": "5 updates"}, "evaluation": {"every": "5 updates"}}
    outcome = simulate(random_shards.scenario_of(1) | settings | stop)
    entries = outcome.entries
    check(outcome)
    assert outcome.accounting.total.rolled_back > 0

    histories = [place for place, (_, _, record) in enumerate(entries) if isinstance(record, records.Resumed)]
    assert len(histories) > len(SHARDS)
    steps = [place for place, (_, _, record) in enumerate(entries) if isinstance(record, records.Step)]
    for place in steps[::15] + histories:
        assert not accounting_of(entries[:place] + entries[place + 1 :]).closes, entries[place]
        assert not accounting_of(entries[: place + 1] + entries[place:]).closes, entries[place]
    for length in range(0, len(entries), 25):
        accounting = accounting_of(entries[:length])
        assert accounting is None or accounting.closes, (length, accounting.problems)
