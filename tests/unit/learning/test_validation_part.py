"""The validation part: what is held out of the training examples, and of whom."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebed.learning.data_sets.validation import set_apart

CLIENTS = st.lists(st.integers(0, 5), min_size=1, max_size=80).map(lambda each: np.array(each, np.int64))
SHARES = st.floats(0.01, 0.99)


@given(CLIENTS, SHARES, st.integers(0, 9), st.data())
def test_each_client_keeps_some_examples_and_gives_its_share_of_the_others(clients, share, seed, data):
    """No example is in both parts, none is lost, and a client is cut whatever the others have."""
    places = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(clients), max_size=len(clients))))

    found = set_apart(places, clients, share, seed)

    np.testing.assert_array_equal(np.sort(np.concatenate([found.training, found.validation])), places)
    kept = 0
    for client in set(clients[places].tolist()):
        own = places[clients[places] == client]
        held = np.intersect1d(own, found.validation)
        alone = set_apart(own, clients, share, seed)
        np.testing.assert_array_equal(held, alone.validation)
        kept += not len(held)
        assert abs(len(held) - share * len(own)) <= 0.5 + 1e-9 or not len(held)
        assert 0 <= len(held) < len(own)
    assert found.kept == kept


def test_nobodys_examples_are_drawn_from_all_together():
    """By the seed: another one draws others."""
    places = np.arange(10, 110)
    first, again, other = (set_apart(places, None, 0.1, seed) for seed in (1, 1, 2))

    assert (len(first.validation), len(first.training), first.kept) == (10, 90, 0)
    np.testing.assert_array_equal(first.validation, again.validation)
    assert first.validation.tolist() != other.validation.tolist()


def test_a_client_that_is_too_small_keeps_its_examples():
    """Of four examples a tenth is none, and of one a half would be all."""
    few = set_apart(np.arange(24), np.repeat([0, 1], [4, 20]), 0.1, 1)
    one = set_apart(np.arange(3), np.array([0, 1, 1]), 0.5, 1)

    assert (few.kept, len(few.validation)) == (1, 2)
    assert (one.kept, one.validation.min() > 0) == (1, True)
