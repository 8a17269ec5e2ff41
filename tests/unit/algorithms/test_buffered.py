"""Buffered aggregation: the model moves at every K-th push, by a mean weighted by staleness; nobody waits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.aggregation import asynchronous, buffered
from edgebed.algorithms.update import ModelUpdate

N = 4
START = np.linspace(-1, 1, N, dtype="f4")


def make(**settings):
    """A server of three workers."""
    server = buffered.Aggregation(buffered.Config(**settings), START.copy())
    for worker in ("a", "b", "c"):
        server.joined(worker)
    return server


def dense(value):
    """An update of all entries."""
    return ModelUpdate(N, None, np.full(N, value, "f4"))


@given(values=st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=12), count=st.integers(1, 4))
def test_the_model_moves_by_the_mean_of_every_k_pushes(values, count):
    """Those that are too few to move it are held; the version counts pushes that are in the model."""
    server = make(count=count, staleness="none", learning_rate=0.5)
    for k, value in enumerate(values):
        applied = server.push("abc"[k % 3], dense(value), server.version)

        assert applied.released == ("abc"[k % 3],)
        assert applied.buffered == bool((k + 1) % count)
    whole = len(values) // count * count
    assert server.version == whole
    np.testing.assert_allclose(server.theta, START - 0.5 * sum(values[:whole]) / count, atol=1e-4)


@given(values=st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=8), stale=st.integers(0, 3))
def test_one_at_a_time_is_asynchronous(values, stale):
    """With staleness divided, bit for bit."""
    server = make(count=1, staleness="divide", learning_rate=0.25)
    plain = asynchronous.Aggregation(asynchronous.Config(learning_rate=0.25, staleness="whole-update"), START.copy())
    for k, value in enumerate(values):
        base = max(0, k - stale)
        server.push("a", dense(value), base)
        plain.push("a", dense(value), base)

        np.testing.assert_allclose(server.theta, plain.theta, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("staleness", "weights"), [("none", (1, 1)), ("divide", (1, 1 / 3)), ("power", (1, 0.5))])
def test_staleness_counts_how_often_the_model_has_moved(staleness, weights):
    """Three times since the base of the second: a third, or the root of a quarter."""
    server = make(count=2, staleness=staleness, learning_rate=1.0)
    for _ in range(6):
        server.push("a", dense(0.0), server.version)
    server.push("a", ModelUpdate(N, np.array([0]), np.ones(1, "f4")), 6)
    applied = server.push("b", ModelUpdate(N, np.array([2]), np.ones(1, "f4")), 0)

    np.testing.assert_allclose((START - server.theta)[[0, 2]], np.array(weights) / 2, rtol=1e-5)
    assert applied.changed.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"count": 0}, "count"), ({"exponent": -1.0}, "exponent"), ({"learning_rate": 0.0}, "learning_rate")],
)
def test_settings_out_of_range_are_refused(wrong, name):
    """By name."""
    with pytest.raises(ValueError, match=f"^{name}: "):
        buffered.Config(**wrong)
