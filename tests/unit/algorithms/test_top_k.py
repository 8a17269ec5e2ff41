"""Top-k keeps exactly the largest entries, the rest is discarded, and the result depends on the values alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgebed.algorithms.compression import top_k
from edgebed.algorithms.compression.top_k import Compression, Config, largest
from edgebed.algorithms.compressor import StepContext

CNN_SIZES = [288, 32, 9216, 32, 200_704, 128, 1280, 10]
"""Lengths of the tensors of the 211,690-parameter CNN, weights before biases."""
CNN_SHAPES = [(size,) for size in CNN_SIZES]


def largest_slowly(magnitude, k):
    """The obvious version: sort by falling magnitude, then by position."""
    ranked = sorted(range(len(magnitude)), key=lambda position: (-magnitude[position], position))
    return sorted(ranked[:k])


numbers = st.floats(-4, 4, width=32) | st.sampled_from([0.0, -1.0, 1.0, 2.0])
gradients = arrays.arrays(np.float32, st.integers(1, 200), elements=numbers)


@settings(max_examples=6 * settings.default.max_examples)
@given(gradient=gradients, data=st.data())
def test_the_largest_are_chosen_and_ties_go_to_the_lower_position(gradient, data):
    """As the obvious version does it."""
    k = data.draw(st.integers(1, len(gradient)))
    magnitude = np.abs(gradient)

    assert largest(magnitude, k).tolist() == largest_slowly(magnitude.tolist(), k)


@pytest.mark.parametrize("k", [1, 2, 40, 400, 4_000, 19_999, 20_000])
@pytest.mark.parametrize("levels", [2, 50, 10**6], ids="{} different values".format)
def test_long_gradients_are_selected_exactly_through_their_sample(k, levels):
    """The sampled threshold is a short cut, never an approximation, also with many ties."""
    magnitude = np.random.default_rng(k).integers(0, levels, 20_000).astype("f4")

    assert largest(magnitude, k).tolist() == largest_slowly(magnitude.tolist(), k)


def test_a_sample_that_misses_the_large_entries_changes_nothing():
    """All that is large lies between the sampled positions; or only there."""
    between = np.ones(top_k.LARGE * 2, "f4")
    between[:: top_k.SAMPLE_STRIDE] = 0.0
    within = 1.0 - between

    for magnitude in (between, within):
        assert largest(magnitude, 100).tolist() == largest_slowly(magnitude.tolist(), 100)


@pytest.mark.parametrize("num_nans", [0, 1, 40])
@pytest.mark.parametrize("others", [0, 30, 39, 41, 500])
def test_of_fewer_entries_than_k_zeros_are_sent_too(others, num_nans):
    """Units that are off have no gradient at all: the zeros with the lowest positions fill up."""
    rng = np.random.default_rng(others)
    magnitude = np.zeros(20_000, "f4")
    magnitude[rng.choice(20_000, others, replace=False)] = rng.random(others) + 0.1
    magnitude[rng.choice(20_000, num_nans, replace=False)] = np.nan
    chosen = largest(magnitude, 40)

    assert len(chosen) == 40
    assert (np.diff(chosen) > 0).all()
    if not num_nans:
        assert chosen.tolist() == largest_slowly(magnitude.tolist(), 40)


@pytest.mark.parametrize("size", [5, 100, 20_000])
@pytest.mark.parametrize("num_nans", [1, 3, 5])
def test_numbers_that_are_none_do_not_break_the_selection(size, num_nans):
    """A diverged gradient still gives k increasing positions."""
    magnitude = np.random.default_rng(size).random(size).astype("f4")
    magnitude[:num_nans] = np.nan
    for k in {1, 3, size // 10 or 1, size - 1}:
        chosen = largest(magnitude, k)
        assert len(chosen) == k
        assert (np.diff(chosen) > 0).all()


@settings(max_examples=4 * settings.default.max_examples)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    fraction=st.floats(0.001, 1.0),
    scope=st.sampled_from(["tensor", "model"]),
    seed=st.integers(0, 99),
)
def test_what_is_sent_and_what_is_discarded_make_up_the_gradient(sizes, fraction, scope, seed):
    """No value is changed, no position is twice, the number sent is the sum of max(1, floor(length * c))."""
    gradient = np.random.default_rng(seed).normal(size=sum(sizes)).astype("f4")
    compression = Compression(Config(fraction=fraction, scope=scope), [(size,) for size in sizes])

    pieces, memory = compression.compress(gradient, None, StepContext(0))
    update = compression.restore(pieces)

    assert memory is None
    groups = sizes if scope == "tensor" else [sum(sizes)]
    assert update.entries == sum(max(1, math.floor(length * fraction)) for length in groups)
    assert (np.diff(update.indices) > 0).all()
    sent = np.zeros_like(gradient)
    sent[update.indices] = update.values
    discarded = gradient.copy()
    discarded[update.indices] = 0
    np.testing.assert_array_equal(gradient, sent + discarded)
    assert (update.size, update.values.dtype) == (len(gradient), np.float32)


def test_a_tensor_of_small_gradients_is_heard_within_tensors_and_not_across_the_model():
    """This is how AdaComp differs from Comp-ASGD."""
    gradient = np.array([9, 8, 7, 6, 0.1, 0.2, 0.3, 0.4], "f4")

    def sent(scope):
        return Compression(Config(fraction=0.5, scope=scope), [(4,), (4,)]).choose(gradient).indices.tolist()

    assert sent("tensor") == [0, 1, 6, 7]
    assert sent("model") == [0, 1, 2, 3]


@pytest.mark.parametrize(("fraction", "entries"), [(0.1, 21_166), (0.01, 2_117), (0.001, 215)])
def test_the_cnn_sends_the_numbers_of_entries_that_the_paper_implies(fraction, entries):
    """Of each tensor max(1, floor(length * c))."""
    assert sum(CNN_SIZES) == 211_690
    gradient = np.random.default_rng(1).normal(size=211_690).astype("f4")

    update = Compression(Config(fraction=fraction), CNN_SHAPES).choose(gradient)

    assert update.entries == entries


def test_one_percent_of_the_cnn_is_spread_over_its_tensors_as_stated():
    """conv1 2 and 1, conv2 92 and 1, the large matrix 2007 and 1, the last 12 and 1."""
    groups = Compression(Config(fraction=0.01), CNN_SHAPES).groups

    assert [k for _, _, k in groups] == [2, 1, 92, 1, 2007, 1, 12, 1]


def test_the_gradient_handed_in_is_not_changed_and_not_kept():
    """Who computed it may go on using it."""
    gradient = np.array([1, -5, 3, 2], "f4")
    update = Compression(Config(fraction=0.5), [(4,)]).choose(gradient)

    gradient[:] = 0

    assert update.indices.tolist() == [1, 2]
    assert update.values.tolist() == [-5, 3]
