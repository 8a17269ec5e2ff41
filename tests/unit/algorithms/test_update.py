"""Updates count what they send, and float16 rounds without overflowing."""

import numpy as np
import pytest

from edgebed.algorithms.compression import none
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.update import FLOAT16_MAX, ModelUpdate, as_dtype


@pytest.mark.parametrize(
    ("update", "bits"),
    [
        (ModelUpdate(9, None, np.zeros(9, "f4")), 9 * 32),
        (ModelUpdate(9, None, np.zeros(9, "f2")), 9 * 16),
        (ModelUpdate(9, np.arange(4), np.zeros(4, "f4")), 4 * (32 + 32)),
        (ModelUpdate(9, np.arange(4), np.zeros(4, "f2")), 4 * (16 + 32)),
        (ModelUpdate(9, np.arange(0), np.zeros(0, "f4")), 0),
    ],
    ids=["dense float32", "dense float16", "sparse float32", "sparse float16", "nothing"],
)
def test_bits_are_a_value_and_an_index_for_each_entry(update, bits):
    """A dense update needs no index."""
    assert update.bits == bits
    assert update.entries == len(update.values)


def test_float16_values_saturate_instead_of_becoming_infinite():
    """A large gradient stays a large gradient; what is no number stays none."""
    values = np.array([1.0, 1e6, -1e6, np.inf, -np.inf, 65504.0, 1e-9, np.nan], "f4")

    sent = as_dtype(values, "float16")

    assert sent.dtype == np.float16
    assert sent[:7].tolist() == [1.0, FLOAT16_MAX, -FLOAT16_MAX, FLOAT16_MAX, -FLOAT16_MAX, FLOAT16_MAX, 0.0]
    assert np.isnan(sent[7])


def test_float32_values_are_sent_as_they_are():
    """Not even a copy is made."""
    values = np.array([1.0, 2.0], "f4")

    assert as_dtype(values, "float32") is values


@pytest.mark.parametrize(("values", "dtype"), [("float32", np.float32), ("float16", np.float16)])
def test_no_compression_sends_every_entry(values, dtype):
    """In order, without indices."""
    gradient = np.array([0.5, 0.0, -2.0], "f4")

    (piece,), memory = none.Compression(none.Config(values=values), [(2,), (1,)]).compress(
        gradient, None, StepContext(0)
    )
    update = piece.update

    assert (update.size, update.indices, update.values.tolist(), memory) == (3, None, [0.5, 0.0, -2.0], None)
    assert update.values.dtype == dtype
