"""A server with a log that is killed in virtual time goes on as one that was not: nothing is lost but the time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.journal.checkpoints import read_checkpoint

Simulate = Callable[..., Any]  # conftest.py
KILLS = [{"restart": "server", "at": f"{at}ms", "delay": "100ms"} for at in (203, 407, 555)]
ORDERED: dict[str, tuple[Any, int]] = {
    "sync-sgd": ("sync-sgd", 4),
    "momentum": ({"preset": "dgc", "aggregation": {"momentum": 0.5}}, 3),
    "fedavg": ("fedavg", 3),
    "asgd": ("asgd", 1),
    "adacomp": ("adacomp", 1),
    "softsync": ({"preset": "softsync", "aggregation": {"count": 3}}, 1),
}
"""Method and workers; in these, pushes come in the same order however late they are."""


def trained(simulate: Simulate, method: Any, workers: int, faults: Any, **fields: Any) -> tuple[Any, NDArray[Any]]:
    """The run, and its final model."""
    outcome = simulate(
        {
            "name": "server-log",
            "seed": 2,
            "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "5ms"},
            "method": method,
            "fleet": {"edge": {"count": workers, "waiting": {"uniform": ["10ms", "30ms"]}}},
            "evaluation": {"every": "20 updates"},
            "stop": {"updates": 80},
            "faults": faults,
        }
        | fields
    )
    assert outcome.ended.outcome == "completed"
    assert outcome.accounting.closes, outcome.accounting.problems
    return outcome, read_checkpoint(outcome.journal.parent / "checkpoints" / "final.npz").theta


@pytest.mark.parametrize("pull", ["full", "changed-since"])
@pytest.mark.parametrize("name", ORDERED)
def test_the_model_is_that_of_a_server_that_lived(simulate: Simulate, name: str, pull: str) -> None:
    """To the bit, with workers that draw their batches in order: no step is left out, and none is made twice."""
    method, workers = ORDERED[name]
    _, expected = trained(simulate, method, workers, [], pull=pull)
    killed, found = trained(simulate, method, workers, KILLS, pull=pull)

    restored = [record for _, record in killed.of(records.Restored)]
    assert len(restored) == 3
    assert all(record.replayed is not None for record in restored)
    assert killed.accounting.total.lost == 0
    assert len(killed.of(records.Joined)) == workers
    assert killed.of(records.Unanswered) == []
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", ["asgd", "adacomp", "ssp", "softsync", "fedbuff"])
def test_nothing_is_lost_where_pushes_come_in_another_order(simulate: Simulate, method: str) -> None:
    """Several workers that do not wait for each other: the accounts close without a loss."""
    killed, _ = trained(simulate, method, 4, KILLS)

    assert len(killed.of(records.Restored)) == 3
    assert killed.accounting.total.lost == 0


def test_a_worker_that_died_with_the_server_is_not_waited_for(simulate: Simulate) -> None:
    """A round that it had been part of ends without it."""
    faults = [{"kill": "edge-0", "at": "250ms"}, {"restart": "server", "at": "250ms", "delay": "100ms"}]
    killed, _ = trained(simulate, "sync-sgd", 3, faults)

    assert killed.ended.outcome == "completed"
    assert {record.worker for t, record in killed.of(records.Update) if t > 1.0} == {"edge-1", "edge-2"}


def test_without_a_log_it_goes_on_from_a_checkpoint(simulate: Simulate) -> None:
    """As it always has; what was applied since is lost."""
    fields = {"server": {"durability": "none"}, "checkpoints": {"every": "20 updates"}}
    killed, _ = trained(simulate, "asgd", 4, KILLS, **fields)

    assert {record.replayed for _, record in killed.of(records.Restored)} == {None}
    assert killed.accounting.total.lost_with_server > 0
