"""What every compression says that it holds is what it was seen to hold: not less, and not far more."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from part_settings import variants

from edgebed.algorithms.compressor import Compressor, StepContext, WithBuffers
from edgebed.algorithms.registry import COMPRESSIONS, configure
from edgebed.core.plan import Part
from edgebed.planning.memory import SELECTED_WORKER_COPIES, WORKER_COPIES, worker_copies
from edgebed.wire.tensors import encode_pieces

SHAPES = [(500, 1000), (500,), (100, 3, 5, 50), (25, 999), (300,)]
SIZE = sum(int(np.prod(shape)) for shape in SHAPES)
MODEL = 4 * SIZE
SENT = 1.0
"""Copies that every worker has room for besides: of what is sent."""
MORE_MAX, SPARE = 2.0, 3.0
"""What is said may be so many times what was seen, and so many copies more: the worst case is seldom met."""
NUMBERS = {"fraction": (0.001, 0.1, 0.5), "warm_up": ([],)}


def made(name: str, settings: dict[str, Any], shapes: list[tuple[int, ...]] = SHAPES) -> Compressor:
    """For a model of these shapes."""
    return COMPRESSIONS[name].Compression(configure("compression", Part(name=name, settings=settings)), shapes)


def held(compressor: Compressor) -> float:
    """Copies of the model at most, while it compresses and encodes, what it remembers included."""
    vector = np.random.default_rng(0).laplace(size=compressor.size).astype(np.float32)
    memory = None
    tracemalloc.start()
    try:
        for step in range(3):
            pieces, memory = compressor.compress(vector, memory, StepContext(key=step, step=step, loss=1.0 + step))
            encode_pieces(pieces)
        return tracemalloc.get_traced_memory()[1] / (4 * compressor.size)
    finally:
        tracemalloc.stop()


def said(compressor: Compressor) -> float:
    """Copies of the model that a worker has room for."""
    return compressor.copies + SELECTED_WORKER_COPIES * (compressor.share or 0.0)


CASES = [(name, settings) for name in COMPRESSIONS for settings in variants(COMPRESSIONS[name].Config, NUMBERS)]


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_what_a_compression_says_is_at_least_what_it_holds_and_not_far_more(
    name: str, settings: dict[str, Any]
) -> None:
    """With every switch and choice that it has; its `copies` and `share` are where that is said."""
    compressor = made(name, settings)
    seen = held(compressor)

    assert seen <= said(compressor) + SENT, f"{name} was seen to hold {seen:.1f} copies of the model"
    assert said(compressor) <= MORE_MAX * seen + SPARE


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_no_more_is_sent_than_the_largest_share(name: str, settings: dict[str, Any]) -> None:
    """Chosen entries at most as many as are said; one that says no share sends all of them."""
    compressor = made(name, settings)
    vector = np.random.default_rng(1).laplace(size=SIZE).astype(np.float32)
    pieces, _ = compressor.compress(vector, None, StepContext(key=1, loss=1.0))
    update = compressor.restore(pieces)

    assert (update.indices is None) == (compressor.share is None)
    assert compressor.share is None or update.entries <= round(compressor.share * SIZE)


def test_a_method_that_sends_tensors_whole_says_so() -> None:
    """Deep gradient compression of dense layers alone, where these are left out: all of it travels."""
    some = made("dgc", {"fraction": 0.001, "warm_up": []})
    whole = made("dgc", {"fraction": 0.001, "warm_up": [], "whole": "all-but-convolutions"})

    assert some.share == pytest.approx(0.002, rel=0.2)
    assert whole.share == pytest.approx(1 - 75_000 / SIZE, rel=0.01)


def test_what_lies_beside_parameters_is_counted() -> None:
    """Running means that travel whole, and the positions of the rest."""
    kept = np.zeros(SIZE, bool)
    kept[::7] = True
    inner = made("top-k", {"fraction": 0.01}, [(int((~kept).sum()),)])
    apart = WithBuffers(inner, kept)

    assert held(apart) <= said(apart) + SENT
    assert apart.share == pytest.approx(1 / 7 + 0.01 * 6 / 7, rel=0.01)


def test_a_worker_needs_more_for_whoever_holds_more() -> None:
    """What a compression says comes on top of what every worker has."""
    bare, full = made("none", {}), made("esgd", {})

    assert worker_copies(bare, MODEL) == WORKER_COPIES.bytes(MODEL)
    assert worker_copies(full, MODEL) - worker_copies(bare, MODEL) == pytest.approx(said(full) * MODEL)
