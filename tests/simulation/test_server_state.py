"""A server without a log that is killed and started anew at a checkpoint goes on as one that was not, bit for bit.

So that what is lost on its way changes nothing, each worker has one example and does the same at every step.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.journal.checkpoints import read_checkpoint

Simulate = Callable[..., Any]  # conftest.py
WORKERS = 4
UPDATES = 80
PLATEAU = {"schedule": "plateau", "patience": 0, "threshold": 0.5, "decay_by": 0.7}
METHODS: dict[str, dict[str, Any]] = {
    "momentum": {"preset": "sync-sgd", "aggregation": {"momentum": 0.9, "learning_rate": 0.05}},
    "plateau": {"preset": "sync-sgd", "aggregation": PLATEAU},
    "cosine": {"preset": "sync-sgd", "aggregation": {"schedule": "cosine", "zero_at": 15.0, "warm_up": 3.0}},
    "fedadam": {
        "preset": "fedavg",
        "aggregation": {"optimizer": "adam", "learning_rate": 0.02, "epsilon": 1e-3},
        "local_work": {"steps": 2, "optimizer": "adam", "learning_rate": 0.01, "schedule": "step", "decay_at": [2.0]},
    },
    "fedavgm": {"preset": "fedavg", "aggregation": {"momentum": 0.5} | PLATEAU, "local_work": {"steps": 2}},
}


def trained(
    simulate: Simulate, method: dict[str, Any], *faults: dict[str, Any], every: str
) -> tuple[Any, NDArray[Any]]:
    """The run, and its final model."""
    outcome = simulate(
        {
            "name": "server-state",
            "seed": 2,
            "task": {
                "data": "digits",
                "fraction": WORKERS / 1438,
                "model": "small",
                "batch_size": 1,
                "gradient_time": "5ms",
            },
            "method": method,
            "fleet": {"edge": {"count": WORKERS, "waiting": {"uniform": ["10ms", "30ms"]}}},
            "evaluation": {"every": f"{UPDATES} updates"},
            "checkpoints": {"every": every},
            "server": {"durability": "none"},
            "stop": {"updates": UPDATES},
            "faults": list(faults),
        }
    )
    assert {node.num_examples for node in outcome.plan.workers()} == {1}
    assert outcome.ended.outcome == "completed"
    assert outcome.accounting.closes, outcome.accounting.problems
    return outcome, read_checkpoint(outcome.journal.parent / "checkpoints" / "final.npz").theta


@pytest.mark.parametrize("every", ["4 updates", "12 updates"])
@pytest.mark.parametrize("method", METHODS)
def test_a_server_that_comes_back_goes_on_as_if_it_had_not_been_gone(
    simulate: Simulate, method: str, every: str
) -> None:
    """Twice: between two rounds, and in the middle of one; with what its aggregation and its schedule remember."""
    kills = [
        {"restart": "server", "at_update": 24, "delay": "100ms"},
        {"restart": "server", "at": "402ms", "delay": "0s"},
    ]
    lasting, expected = trained(simulate, METHODS[method], every=every)
    killed, found = trained(simulate, METHODS[method], *kills, every=every)

    assert lasting.of(records.Restored) == []
    assert len(killed.of(records.Restored)) == 2
    assert min(record.version for _, record in killed.of(records.Restored)) >= 12
    np.testing.assert_array_equal(found, expected)


def test_what_a_buffer_holds_is_lost_with_the_server(simulate: Simulate) -> None:
    """It is in no checkpoint; all that is applied is a whole buffer, and every update is accounted for."""
    method = {"preset": "softsync", "aggregation": {"count": 3}}
    killed, _ = trained(simulate, method, {"restart": "server", "at": "250ms"}, every="100ms")

    assert len(killed.of(records.Restored)) == 1
    assert killed.accounting.total.lost_with_server > 0
    assert all(record.version % 3 == 0 for _, record in killed.of(records.Restored))


def test_compressed_models_come_down_right_after_a_new_server_as_well(simulate: Simulate) -> None:
    """Who has which copy is lost with it: everybody joins anew, and is sent the whole model first."""
    method = {"preset": "sync-sgd", "compression": {"name": "int8"}, "downlink": {"name": "int8"}}
    killed, _ = trained(simulate, method, {"restart": "server", "at_update": 24, "delay": "100ms"}, every="4 updates")
    (back_s, _), *_ = killed.of(records.Restored)
    traffic = killed.of(records.Traffic, "server")

    assert len(killed.of(records.Joined)) == 2 * WORKERS
    assert killed.of(records.Dropped) == []
    assert traffic[-1][0] > back_s
    last = traffic[-1][1]
    assert last.pulls - last.pulls_changed <= 2 * WORKERS  # one when it joined, and the final one
