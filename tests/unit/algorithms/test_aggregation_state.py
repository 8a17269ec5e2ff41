"""What a checkpoint keeps of an aggregation: a server that goes on from it does as one that was never gone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.aggregator import Aggregator, PushInfo
from edgebed.algorithms.registry import AGGREGATIONS, configure
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.plan import Part

N = 4
WORKERS = ("a", "b", "c")
PLATEAU = {"schedule": "plateau", "patience": 0, "threshold": 0.1, "decay_by": 0.5, "warm_up": 1.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "constant": {},
    "plateau": PLATEAU,
    "cosine": {"schedule": "cosine", "epochs": 6.0},
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "asynchronous": ("asynchronous", {"staleness": "whole-update"}),
    "per-parameter": ("asynchronous", {"staleness": "per-parameter"}),
    "rounds": ("synchronous", {}),
    "momentum": ("synchronous", {"momentum": 0.9, "weights": "examples"}),
    "stale-synchronous": ("stale-synchronous", {"bound": 1}),
    "buffered": ("buffered", {"count": 3, "staleness": "power"}),
}


def make(kind: str, settings: dict[str, Any], theta: Any = None, version: int = 0) -> Aggregator:
    """A server that all workers have joined, and been sent the model of; three pushes are an epoch."""
    name, own = KINDS[kind]
    config = configure("aggregation", Part(name=name, settings=own | settings))
    made: Aggregator = AGGREGATIONS[name].Aggregation(
        config, np.linspace(-1, 1, N, dtype="f4") if theta is None else theta, version
    )
    made.epochs_a_push = 1 / 3
    for worker in WORKERS:
        made.joined(worker)
        made.pulled(worker)
    return made


def round_of(server: Aggregator, values: list[float], base: int) -> None:
    """One push of each; nothing is held when the last has come."""
    for worker, value in zip(WORKERS, values, strict=True):
        server.schedule.note(server.epoch, abs(value))
        server.push(worker, ModelUpdate(N, None, np.full(N, value, "f4")), base, PushInfo(examples=1 + ord(worker) % 3))
        server.pulled(worker)


ROUNDS = st.lists(st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3), max_size=8)


@pytest.mark.parametrize(
    "settings", [{}, PLATEAU, {"schedule": "cosine", "epochs": 6.0}], ids=["as-is", "plateau", "cosine"]
)
@pytest.mark.parametrize("kind", KINDS)
@given(before=ROUNDS, after=ROUNDS)
def test_a_server_that_goes_on_from_a_checkpoint_is_the_one_before(
    kind: str, settings: dict[str, Any], before: list[list[float]], after: list[list[float]]
) -> None:
    """Bit for bit in model, version and learning rate, whatever came before and comes after."""
    lasting = make(kind, settings)
    for values in before:
        round_of(lasting, values, lasting.version)
    state = lasting.state()
    kept = state.copy()
    anew = make(kind, settings, lasting.theta.copy(), lasting.version)
    anew.restore(state)
    for worker in WORKERS:  # all have to join the new one
        lasting.joined(worker)
        lasting.pulled(worker)
    for values in after:
        for server in (lasting, anew):
            round_of(server, values, server.version)

    np.testing.assert_array_equal(lasting.theta, anew.theta)
    assert (lasting.version, lasting.learning_rate) == (anew.version, anew.learning_rate)
    np.testing.assert_array_equal(lasting.state(), anew.state())
    np.testing.assert_array_equal(state, kept)  # it was handed out: nobody writes to it


@pytest.mark.parametrize(("kind", "settings"), [("momentum", {}), ("rounds", PLATEAU)])
def test_without_its_state_it_is_another(kind: str, settings: dict[str, Any]) -> None:
    """What is kept matters."""
    lasting = make(kind, settings)
    for loss in (1.0, 1.0, 1.0, 1.0):
        round_of(lasting, [loss] * 3, lasting.version)
    anew = make(kind, settings, lasting.theta.copy(), lasting.version)
    for server in (lasting, anew):
        round_of(server, [1.0] * 3, server.version)

    assert (lasting.theta != anew.theta).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "momentum"])
def test_most_remember_nothing_but_the_model(kind: str) -> None:
    """So their checkpoints are as small as it."""
    server = make(kind, {})
    round_of(server, [1.0, 2.0, 3.0], 0)

    assert len(server.state()) == 0
