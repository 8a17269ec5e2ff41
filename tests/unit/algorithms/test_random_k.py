"""Random-k: as many entries as stated, any of them, and nothing that is left out is lost where it is remembered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.compression import random_k
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.update import ModelUpdate

GRADIENT = np.array([3.0, -1.0, 0.5, 0.0, 2.0], "f4")


def made(**settings: object) -> random_k.Compression:
    """Of two tensors."""
    return random_k.Compression(random_k.Config(**settings), [(2,), (3,)])  # type: ignore[arg-type]


def sent(key: int, **settings: object) -> ModelUpdate:
    """The update that a key gives."""
    compression = made(**settings)
    update: ModelUpdate = compression.restore(compression.compress(GRADIENT, None, StepContext(key))[0])
    return update


@given(key=st.integers(0, 2**128 - 1), fraction=st.floats(0.01, 1.0))
def test_as_many_as_stated_are_sent_with_their_values(key: int, fraction: float) -> None:
    """At increasing positions."""
    update = sent(key, fraction=fraction)

    assert update.indices is not None
    assert update.entries == max(1, int(5 * fraction))
    assert (np.diff(update.indices) > 0).all()
    np.testing.assert_array_equal(GRADIENT[update.indices], update.values)


def test_every_entry_is_as_likely() -> None:
    """Whatever its magnitude."""
    counts = np.zeros(5)
    for key in range(4_000):
        counts[sent(key, fraction=0.4).indices] += 1

    np.testing.assert_allclose(counts / 4_000, 0.4, atol=5 * (0.24 / 4_000) ** 0.5)


def test_scaled_it_is_right_on_average() -> None:
    """Five standard errors are allowed."""
    mean = np.zeros(5)
    for key in range(4_000):
        update = sent(key, fraction=0.4, scaled=True)
        mean[update.indices] += update.values / 4_000

    np.testing.assert_allclose(mean, GRADIENT, atol=5 * 3.0 * 1.5**0.5 / 4_000**0.5)


@given(keys=st.lists(st.integers(0, 2**64), min_size=1, max_size=8), values=st.sampled_from(["float32", "float16"]))
def test_with_a_residual_nothing_is_lost(keys: list[int], values: str) -> None:
    """What was sent and what is remembered are all gradients together."""
    compression, memory, total = made(fraction=0.4, residual=True, values=values), None, np.zeros(5)
    for key in keys:
        pieces, memory = compression.compress(GRADIENT, memory, StepContext(key))
        update = compression.restore(pieces)
        total[update.indices] += update.values

    np.testing.assert_allclose(total + memory, len(keys) * GRADIENT, rtol=1e-5, atol=1e-5)


def test_what_is_left_out_is_made_up_for_once() -> None:
    """By a residual, or by the scale."""
    with pytest.raises(ValueError, match="scaled: with a residual"):
        random_k.Config(scaled=True, residual=True)
