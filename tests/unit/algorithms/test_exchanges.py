"""What shards send of activations and gradients: what arrives, and what it costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgebed.algorithms.exchange import dense, int8, top_k
from edgebed.algorithms.exchange.exchanged import Exchanged
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.tensors import check_frames, decode_exchanged, encode_dense, encode_exchanged, payload_bytes

FLOATS = arrays.arrays(
    np.float32,
    arrays.array_shapes(min_dims=1, max_dims=4, max_side=6),
    elements=st.floats(-1e4, 1e4, width=32),
)


def arrived(sent: Exchanged) -> np.ndarray:
    """As the receiver sees it, after the wire."""
    tensor, frames = encode_exchanged("h", sent)
    check_frames([tensor], frames)
    assert sum(map(len, frames)) == payload_bytes(tensor)
    return decode_exchanged(tensor, [bytes(frame) for frame in frames])


@given(FLOATS)
def test_dense_values_arrive_as_they_are(array):
    """Bit for bit in float32; rounded in float16."""
    np.testing.assert_array_equal(arrived(dense.exchange(array, dense.Config())), array)
    halved = arrived(dense.exchange(array, dense.Config(values="float16")))
    np.testing.assert_array_equal(halved, array.astype(np.float16).astype(np.float32))


@given(FLOATS)
def test_int8_is_within_half_a_step(array):
    """A step is the largest magnitude in 127 parts; that magnitude itself arrives, and zeros stay zeros."""
    found = arrived(int8.exchange(array, int8.Config()))
    step = np.abs(array).max() / 127

    assert found.shape == array.shape
    assert np.abs(found - array).max() <= step * 0.51 + 1e-30
    np.testing.assert_array_equal(found[array == 0], 0)


@given(FLOATS, st.floats(0.01, 1.0))
def test_top_k_keeps_the_largest_and_nothing_else(array, fraction):
    """As many as the fraction says, at least one, where they were."""
    sent = top_k.exchange(array, top_k.Config(fraction=fraction))
    found = arrived(sent)
    kept = found != 0

    assert len(sent.values) <= max(1, int(array.size * fraction))
    np.testing.assert_array_equal(found[kept], array[kept])
    if kept.any():
        assert np.abs(array[kept]).min() >= np.abs(array[~kept]).max(initial=0)


def test_what_is_not_finite_does_not_spoil_the_rest():
    """Of a diverged model the other values still arrive."""
    array = np.array([1.0, np.nan, -2.0, np.inf, 0.5], np.float32)

    np.testing.assert_allclose(arrived(int8.exchange(array, int8.Config())), [1, 0, -2, 0, 0.5], atol=0.01)


def test_bytes_are_a_half_a_quarter_and_a_tenth_or_so():
    """Of 10,000 values that float32 takes 40,000 bytes for; positions cost about a byte each."""
    array = np.random.default_rng(1).standard_normal((10, 1000), np.float32)
    sizes = {
        name: payload_bytes(encode_exchanged("h", sent)[0])
        for name, sent in {
            "float32": dense.exchange(array, dense.Config()),
            "float16": dense.exchange(array, dense.Config(values="float16")),
            "int8": int8.exchange(array, int8.Config()),
            "top-k": top_k.exchange(array, top_k.Config(fraction=0.1)),
        }.items()
    }

    assert (sizes["float32"], sizes["float16"], sizes["int8"]) == (40_000, 20_000, 10_004)
    assert 4_000 < sizes["top-k"] < 5_500


def test_other_numbers_are_refused():
    """Positions and labels are no activations."""
    tensor, frames = encode_dense("h", np.zeros(3, np.int64))

    with pytest.raises(RemoteWireError, match="shards send float32, float16 or int8"):
        decode_exchanged(tensor, frames)
