"""How examples are cut into mini-batches: a stream without end, or epoch by epoch."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.batches import Cut, batches_of


def batches(cut: Cut, count: int, epochs: int) -> list[list[int]]:
    """Examples of the first mini-batches, where the order of each epoch is drawn."""
    orders = [np.random.default_rng(epoch).permutation(cut.examples) for epoch in range(epochs + 1)]
    return [[int(each) for e, start, end in cut.pieces(k) for each in orders[e][start:end]] for k in range(count)]


@given(examples=st.integers(1, 40), size=st.integers(1, 50), epochs=st.integers(1, 4))
def test_epoch_by_epoch_each_begins_a_mini_batch_and_its_last_one_has_what_is_left(examples, size, epochs):
    """Each epoch has every example once, in ceil(n / B) mini-batches, which are whole but for the last."""
    cut = Cut(examples, size, by_epoch=True)
    found = batches(cut, epochs * cut.an_epoch, epochs)

    assert cut.an_epoch == -(-examples // size)
    for epoch in range(epochs):
        of_epoch = found[epoch * cut.an_epoch : (epoch + 1) * cut.an_epoch]
        assert sorted(chain(*of_epoch)) == list(range(examples))
        assert {len(each) for each in of_epoch[:-1]} <= {size}
        assert 0 < len(of_epoch[-1]) <= size
    assert sum(map(len, found)) == pytest.approx(len(found) * cut.mean_size)


@given(examples=st.integers(1, 40), size=st.integers(1, 50), count=st.integers(1, 60))
def test_a_stream_has_mini_batches_of_one_size_with_no_example_twice_but_across_epochs(examples, size, count):
    """Laid end to end they are epochs laid end to end; of fewer examples than B each has all."""
    cut = Cut(examples, size)
    found = batches(cut, count, count)
    shown = [*chain(*found)]

    assert {len(each) for each in found} == {min(examples, size)} == {cut.mean_size}
    for start in range(0, len(shown), examples):
        epoch = shown[start : start + examples]
        assert len(set(epoch)) == len(epoch)


@pytest.mark.parametrize(("examples", "size", "count"), [(1, 10, 1), (10, 10, 1), (11, 10, 2), (600, 10, 60)])
def test_mini_batches_of_an_epoch_are_counted_up(examples, size, count):
    """A last one that is smaller counts."""
    assert batches_of(examples, size) == count
