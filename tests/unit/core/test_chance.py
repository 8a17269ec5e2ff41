"""Every draw follows from its key alone, is distributed as it says, and is the same on every machine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import chance
from edgebed.core.plan import Waiting

DRAWS = 20_000

keys = st.tuples(st.integers(0, 2**32), st.text(max_size=8), st.text(max_size=8), st.integers(0, 2**32))


@given(keys)
def test_the_same_key_gives_the_same_draw(key):
    """Whatever was drawn in between."""
    first = chance.key(*key), chance.uniform(*key), chance.generator(*key).integers(2**40)
    chance.uniform(1, "something else")

    assert first == (chance.key(*key), chance.uniform(*key), chance.generator(*key).integers(2**40))


def test_a_different_seed_purpose_node_or_number_gives_a_different_draw():
    """Two nodes never wait in step, and a batch order says nothing about a pause."""
    keys = [(1, "waiting", "a", 0), (2, "waiting", "a", 0), (1, "order", "a", 0), (1, "waiting", "b", 0),
            (1, "waiting", "a", 1), (1, "waiting")]  # fmt: skip

    assert len({chance.uniform(*key) for key in keys}) == len(keys)


def test_known_keys_give_known_numbers():
    """If this fails, every run of every scenario has changed: say so in CHANGELOG.md, or undo it."""
    assert chance.key(1, "waiting", "edge-0", 3) == 534106916000862694989698659299405855
    assert chance.uniform(1, "waiting", "edge-0", 3) == 0.001569599156235224
    assert chance.generator(1, "order", "edge-0", 0).permutation(8).tolist() == [6, 5, 4, 0, 7, 1, 2, 3]
    assert chance.waiting_time(Waiting(distribution="exponential", mean_s=1.0), 1, "edge-0", 3) == 0.0015708322674866872


def test_uniform_draws_fill_the_unit_interval_evenly():
    """In [0, 1), each tenth with a tenth of the draws, within five standard deviations."""
    draws = np.array([chance.uniform(7, "test", k=k) for k in range(DRAWS)])

    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    tenths = np.histogram(draws, 10, (0, 1))[0]
    assert abs(tenths - DRAWS / 10).max() < 5 * (DRAWS * 0.1 * 0.9) ** 0.5


@pytest.mark.parametrize("mean_s", [0.02, 3.0])
def test_exponential_pauses_have_their_mean_and_their_spread(mean_s):
    """The standard deviation of an exponential is its mean; five standard errors are allowed."""
    waiting = Waiting(distribution="exponential", mean_s=mean_s)
    pauses_s = np.array([chance.waiting_time(waiting, 7, "edge-0", k) for k in range(DRAWS)])

    assert pauses_s.min() >= 0.0
    assert pauses_s.mean() == pytest.approx(mean_s, rel=5 / DRAWS**0.5)
    assert pauses_s.std() == pytest.approx(mean_s, rel=5 * 2 / DRAWS**0.5)


def test_uniform_pauses_stay_between_their_ends():
    """And come close to both."""
    waiting = Waiting(distribution="uniform", low_s=0.5, high_s=1.5)
    pauses_s = np.array([chance.waiting_time(waiting, 7, "edge-0", k) for k in range(1000)])

    assert pauses_s.min() >= 0.5
    assert pauses_s.max() < 1.5
    assert np.ptp(pauses_s) > 0.95


def test_a_constant_pause_is_constant():
    """Zero by default: a device that does not wait."""
    assert {chance.waiting_time(Waiting(low_s=0.25), 7, "edge-0", k) for k in range(5)} == {0.25}
    assert chance.waiting_time(Waiting(), 7, "edge-0", 0) == 0.0
