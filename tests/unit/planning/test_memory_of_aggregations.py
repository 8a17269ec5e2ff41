"""What every aggregation says that it holds is what it was seen to hold: not less, and not far more."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from part_settings import variants

from edgebed.algorithms.aggregator import PushInfo
from edgebed.algorithms.registry import AGGREGATIONS, aggregation_of
from edgebed.algorithms.update import ModelUpdate
from edgebed.core.plan import Method, Part
from edgebed.planning.memory import DENSE_PEER_COPIES
from edgebed.roles.server.snapshot import dump_lasting

SIZE = 100_000
WORKERS = 6
ROUNDS = 4
NUMBERS = {"momentum": (0.9,), "count": (3,), "schedule": ("plateau",)}
SPARSE = 3.0
"""Copies of the share of the model that a push has: positions of 8 bytes, and values."""
STEP = 2.0
"""Copies that every server has room for besides: what a step of the model makes on its way."""
MORE_MAX, SPARE = 2.0, 2.0
"""What is said may be so many times what was seen, and so many copies more."""
CASES = [
    (name, settings, share)
    for name in AGGREGATIONS
    for settings in variants(AGGREGATIONS[name].Config, NUMBERS)
    for share in (None, 0.2)
]


def method_of(name: str, settings: dict[str, Any]) -> Method:
    """With that aggregation."""
    return Method(name="m", parts={"aggregation": Part(name=name, settings=settings)})


def pushed(share: float | None, rng: np.random.Generator) -> ModelUpdate:
    """Dense, or so many chosen entries."""
    if share is None:
        return ModelUpdate(SIZE, None, rng.standard_normal(SIZE, dtype=np.float32))
    indices = np.sort(rng.choice(SIZE, int(share * SIZE), replace=False))
    return ModelUpdate(SIZE, indices, rng.standard_normal(len(indices), dtype=np.float32))


def held(name: str, settings: dict[str, Any], share: float | None) -> float:
    """Copies of the model at most, besides the model, in some rounds in which all push, and one checkpoint."""
    aggregation, config = aggregation_of(method_of(name, settings))
    theta, rng = np.zeros(SIZE, np.float32), np.random.default_rng(0)
    names = [f"edge-{k}" for k in range(WORKERS)]
    most = 0
    tracemalloc.start()
    try:
        made = aggregation(config, theta)
        for worker in names:
            made.joined(worker)
            made.pulled(worker)
        for _ in range(ROUNDS):
            for worker in names:
                update, base = pushed(share, rng), made.version
                tracemalloc.reset_peak()
                beside = tuple(pushed(share, rng) for _ in made.vectors[1:])
                applied = made.push(worker, update, base, PushInfo(examples=3, loss=1.0, beside=beside))
                del update, beside
                for each in applied.released if applied else ():
                    made.pulled(each)
                most = max(most, tracemalloc.get_traced_memory()[1])
        state = dump_lasting(made)
        assert len(state)
        return max(most, tracemalloc.get_traced_memory()[1]) / (4 * SIZE)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("name", "settings", "share"), CASES, ids=str)
def test_what_an_aggregation_says_is_at_least_what_it_holds_and_not_far_more(
    name: str, settings: dict[str, Any], share: float | None
) -> None:
    """Beside the push that has come, and a round's dense ones as they came; its `holds` is where that is said."""
    aggregation, config = aggregation_of(method_of(name, settings))
    said, seen = aggregation.holds(config, WORKERS, share), held(name, settings, share)
    come = 1.0 if share is None else SPARSE * share
    if aggregation.in_rounds and share is None:
        come = DENSE_PEER_COPIES * WORKERS

    assert seen <= said + come + STEP, f"{name} was seen to hold {seen:.1f} copies of the model"
    assert said <= MORE_MAX * seen + SPARE


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_no_step_is_made_of_more_pushes_than_an_aggregation_says(name: str) -> None:
    """By its version, while nobody joins twice; where it is in rounds, all are answered at once."""
    aggregation, config = aggregation_of(method_of(name, {}))
    made = aggregation(config, np.zeros(5, np.float32))
    names = [f"edge-{k}" for k in range(WORKERS)]
    for worker in names:
        made.joined(worker)
        made.pulled(worker)
    for _ in range(3):
        for worker in names:
            before = made.version
            update = ModelUpdate(5, None, np.ones(5, np.float32))
            applied = made.push(worker, update, before, PushInfo(beside=(update,) * (len(made.vectors) - 1)))
            assert made.version - before <= aggregation.together(config, WORKERS)
            if aggregation.in_rounds and applied is not None:
                assert sorted(applied.released) == names
            for each in applied.released if applied else ():
                made.pulled(each)
