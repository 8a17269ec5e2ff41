"""A worker that trains alone: from its own model on, whatever others have learnt, and nothing of it is sent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.compression import nothing
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.local_work import alone
from edgebed.algorithms.local_work.base import MODEL

FIRST = StepContext(key=0)
START = np.linspace(-1, 1, 5, dtype="f4")


def slope(theta, batch):
    """Of a quadratic loss whose minimum depends on the batch; the last entry is a buffer, which loses a half."""
    gradient = theta - np.float32(batch[0])
    gradient[-1] = theta[-1] / 2
    return gradient, float((gradient**2).sum() / 2)


@given(pushes=st.integers(1, 4), steps=st.integers(1, 3), seed=st.integers(0, 99), has_buffers=st.booleans())
def test_it_ends_with_the_bits_of_a_bare_loop_on_its_own_examples(pushes, steps, seed, has_buffers):
    """Gradient descent push by push; the models that it is sent meanwhile play no part after the first."""
    draws = np.random.default_rng(seed)
    batches = draws.integers(0, 9, (pushes, steps, 1))
    is_buffer = np.arange(5) == 4 if has_buffers else None
    work = alone.LocalWork(alone.Config(learning_rate=0.25), is_buffer)

    memory, model = None, START
    for each in batches:
        done = work.run(slope, {MODEL: model}, each, memory, FIRST)
        memory, model = done.memory, draws.normal(size=5).astype("f4")

    own = START
    for each in batches:
        gone = np.zeros(5, "f4")
        for batch in each:
            gradient, _ = slope(own - gone, batch)
            gone += (
                np.where(np.arange(5) == 4, gradient, np.float32(0.25) * gradient)
                if has_buffers
                else (np.float32(0.25) * gradient)
            )
        own = own - gone
    np.testing.assert_array_equal(memory, own)


def test_nothing_is_an_update_without_entries():
    """Of no bits; added to a model it leaves it as it is."""
    compression = nothing.Compression(nothing.Config(), [(2, 2), (1,)])
    pieces, memory = compression.compress(START, None, FIRST)
    update = compression.restore(pieces)

    assert memory is None
    assert (update.size, update.entries, update.bits) == (5, 0, 0)


def test_there_is_nothing_to_be_held_to():
    """Another model never reaches the worker."""
    with pytest.raises(ValueError, match="no other model"):
        alone.Config(proximal=0.1)
