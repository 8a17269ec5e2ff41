"""Laws of cutting the examples of clients into a training, a validation and a test part."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.learning.data_sets.parts import Shares, cut, places

GROUPS = st.lists(st.integers(0, 4), min_size=1, max_size=120).map(lambda values: np.array(values, np.int64))
SHARES = st.tuples(st.floats(0.0, 0.4), st.floats(0.05, 0.5)).map(lambda two: Shares(validation=two[0], test=two[1]))


@given(GROUPS, SHARES)
def test_parts_are_a_partition_in_time(groups, shares):
    """Each example is in one part, and in each group training comes before validation, and that before the test."""
    parts = places(groups, shares)

    assert np.sort(np.concatenate(parts)).tolist() == list(range(len(groups)))
    for group in np.unique(groups):
        in_order = np.concatenate([part[groups[part] == group] for part in parts])
        assert in_order.tolist() == np.flatnonzero(groups == group).tolist()


@given(GROUPS, SHARES)
def test_shares_hold_for_each_group(groups, shares):
    """Rounded to whole examples."""
    parts = places(groups, shares)

    for group in np.unique(groups):
        size = (groups == group).sum()
        assert (groups[parts.test] == group).sum() == round(shares.test * size)
        assert (groups[parts.validation] == group).sum() <= round(shares.validation * size)


@given(GROUPS, SHARES, st.integers(1, 5))
def test_blocks_stay_together(groups, shares, size):
    """Such as the recordings of one session."""
    blocks = np.arange(len(groups)) // size
    parts = places(groups, shares, blocks)

    kept = [{(groups[place], blocks[place]) for place in part} for part in parts]
    assert not kept[0] & kept[1]
    assert not kept[0] & kept[2]
    assert not kept[1] & kept[2]


@given(st.integers(2, 200), SHARES, st.integers(1, 3))
def test_a_gap_keeps_neighbours_apart(size, shares, gap):
    """No example of a part is within the gap of one of a later part, and nothing else is left out."""
    parts = [part for part in places(np.zeros(size, np.int64), shares, gap=gap) if len(part)]

    for earlier, later in itertools.pairwise(parts):
        assert later.min() - earlier.max() > gap
    assert sum(map(len, parts)) >= size - 2 * gap
    assert parts[-1].max() == size - 1


def test_a_cut_is_where_it_is_said():
    """A tenth and a fifth of ten."""
    parts = cut(np.arange(10), Shares())

    assert [part.tolist() for part in parts] == [[0, 1, 2, 3, 4, 5, 6], [7], [8, 9]]


@pytest.mark.parametrize(
    ("validation", "test", "told"),
    [(-0.1, 0.2, "validation"), (0.1, 0.0, "test"), (0.5, 0.5, "leave nothing"), (0.0, 1.0, "test")],
)
def test_impossible_shares_are_refused(validation, test, told):
    """With the one that is."""
    with pytest.raises(ValueError, match=told):
        Shares(validation=validation, test=test)
