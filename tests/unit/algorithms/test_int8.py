"""8-bit integers: entries that share a scale are at most half a step away, and a step is a part of the largest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgebed.algorithms.compression.int8 import LARGEST, Compression, Config
from edgebed.algorithms.compressor import StepContext

SHAPES = [(3, 4), (5,), (1,), (0,)]
SIZE = 18
SPANS = {"tensor": [slice(0, 12), slice(12, 17), slice(17, 18), slice(18, 18)], "model": [slice(0, 18)]}
"""Entries that share a scale."""
scopes = st.sampled_from(("tensor", "model"))
vectors = arrays.arrays(np.float32, SIZE, elements=st.floats(-1e6, 1e6, width=32))
SMALLEST = 1e-30
"""A step that is so small is rounded itself."""


def levels_and_scales(vector, **settings):
    """What is sent, and what it stands for."""
    compression = Compression(Config(**settings), SHAPES)
    pieces, _ = compression.compress(vector, None, StepContext(0))
    levels, scales = (piece.update.values for piece in pieces)
    return levels, scales, compression.restore(pieces).values


@given(scope=scopes, vector=vectors)
def test_an_entry_is_at_most_half_a_step_away(scope, vector):
    """A step is a 127th of the largest magnitude of the tensor, or of the model; rounded by chance it is a step."""
    for rounding, most in (("nearest", 0.5), ("stochastic", 1.0)):
        _, scales, found = levels_and_scales(vector, scope=scope, rounding=rounding)
        for span, scale in zip(SPANS[scope], scales, strict=True):
            step = float(np.abs(vector[span]).max(initial=0.0)) / LARGEST
            assert scale == pytest.approx(step, rel=1e-6, abs=SMALLEST)
            assert (np.abs(found[span] - vector[span]) <= most * step * (1 + 1e-4) + SMALLEST).all()


@given(scope=scopes, vector=vectors)
def test_the_largest_entry_uses_all_levels(scope, vector):
    """Unless all are zero, or so small that there is no step."""
    levels, scales, _ = levels_and_scales(vector, scope=scope)
    for span, scale in zip(SPANS[scope], scales, strict=True):
        largest = int(np.abs(levels[span].astype(int)).max(initial=0))
        assert largest == LARGEST or scale <= SMALLEST


@given(vector=vectors, deflate=st.booleans(), residual=st.booleans())
def test_one_scale_is_that_of_a_single_tensor(vector, deflate, residual):
    """Whatever the model's tensors are: the same pieces and the same memory, step by step."""
    settings = {"deflate": deflate, "residual": residual}
    model = Compression(Config(scope="model", **settings), SHAPES)
    tensor = Compression(Config(**settings), [(SIZE,)])
    memory = other = None
    for step in range(3):
        pieces, memory = model.compress(vector, memory, StepContext(0, step))
        others, other = tensor.compress(vector, other, StepContext(0, step))
        assert [(piece.name, piece.deflate) for piece in pieces] == [(piece.name, piece.deflate) for piece in others]
        for piece, its in zip(pieces, others, strict=True):
            np.testing.assert_array_equal(piece.update.values, its.update.values)
        assert (memory is None) == (not residual)
        np.testing.assert_array_equal(memory, other)


def test_a_tensor_of_small_entries_is_lost_in_the_models_scale_alone():
    """So its zeros pack well; with a scale of its own it is as fine as any other."""
    vector = np.concatenate([np.linspace(-100, 100, 12), np.linspace(0.001, 0.3, 6)]).astype(np.float32)
    of_tensor, scales, _ = levels_and_scales(vector)
    of_model, scale, found = levels_and_scales(vector, scope="model")

    assert (len(scales), len(scale)) == (len(SHAPES), 1)
    assert of_tensor[12:].any()
    assert not of_model[12:].any()
    assert not found[12:].any()
    np.testing.assert_array_equal(of_tensor[:12], of_model[:12])


@pytest.mark.parametrize("scope", ["tensor", "model"])
def test_what_is_zero_stays_zero(scope):
    """A vector of nothing else has a step of zero."""
    levels, scales, found = levels_and_scales(np.zeros(SIZE, "f4"), scope=scope)

    assert not levels.any()
    assert not scales.any()
    assert not found.any()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_spoils_what_shares_its_scale(value):
    """All that shares it comes to nothing that is finite; a tensor with a scale of its own is what it was."""
    vector = np.ones(SIZE, np.float32)
    vector[0] = value
    with np.errstate(all="ignore"):
        *_, of_tensor = levels_and_scales(vector)
        *_, of_model = levels_and_scales(vector, scope="model")

    assert not np.isfinite(of_tensor[:12]).any()
    np.testing.assert_array_equal(of_tensor[12:], 1)
    assert not np.isfinite(of_model).any()
