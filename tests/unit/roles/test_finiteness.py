"""What is named where a computation stops being finite: the first tensor, in the order of computing."""

import math

import numpy as np
import pytest
from local_runs import ran

from edgebed.algorithms.local_work import local_steps
from edgebed.core.plan import TensorLayout
from edgebed.roles.finiteness import CheckedGradient, NotFinite, all_finite, first_computed, first_given, first_sent

LAYOUT = (TensorLayout("in.weight", (2, 2)), TensorLayout("mean", (2,), is_buffer=True), TensorLayout("out.bias", (1,)))
FINE = np.ones(7, np.float32)


def with_nan(*places):
    """(7,) ones, with what is no number there."""
    vector = FINE.copy()
    vector[list(places)] = np.nan
    return vector


@pytest.mark.parametrize(
    ("theta", "loss", "slope", "first"),
    [
        (FINE, 1.0, FINE, None),
        (with_nan(4), 1.0, FINE, None),
        (with_nan(3, 5), math.nan, with_nan(0), NotFinite("parameter", "in.weight")),
        (with_nan(5, 6), math.nan, FINE, NotFinite("buffer", "mean")),
        (FINE, math.inf, with_nan(0), NotFinite("loss")),
        (FINE, 1.0, with_nan(6), NotFinite("gradient", "out.bias")),
        (FINE, 1.0, with_nan(4, 6), NotFinite("update", "mean")),
    ],
)
def test_what_was_given_comes_before_the_loss_and_that_before_the_gradient(theta, loss, slope, first):
    """And nothing is named where loss and gradient are finite, whatever a model keeps."""
    assert first_computed(LAYOUT, theta, loss, slope) == first


def test_finite_values_whose_sum_is_not_are_finite():
    """Large ones overflow in a sum, and nothing is wrong with them."""
    large = np.full(7, np.finfo(np.float32).max, np.float32)

    assert all_finite(large)
    assert first_given(LAYOUT, large) is None
    assert not all_finite(with_nan(2))
    assert not all_finite(np.array([np.inf, -np.inf], np.float32))


def test_an_update_has_the_name_of_its_tensor():
    """Of a parameter as of a buffer."""
    assert first_sent(LAYOUT, with_nan(6)) == NotFinite("update", "out.bias")
    assert first_sent((), with_nan(6)) == NotFinite("update")


def test_of_several_local_steps_the_first_that_is_not_finite_is_named():
    """There the loss is the second mini-batch's; the copy's parameters are so only behind it."""
    losses = iter((1.0, math.nan, 1.0))
    watched = CheckedGradient(
        lambda theta, _: (np.full(7, np.nan if theta[0] < 1.0 else 1.0, "f4"), next(losses)), LAYOUT
    )
    work = local_steps.LocalWork(local_steps.Config(steps=3))
    ran(work, watched, FINE, [np.zeros(1, np.int64)] * 3)

    assert watched.found == NotFinite("loss")
