"""The busiest of a link: against what was asked at the time, and never by one look alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import LinkSchedule
from edgebed.emulation.witness.busiest import Busiest

MBIT = 1_000_000
BURST_BYTES = 1600


def busiest_of(link, windows):
    """Windows of (from, to, rate in bits a second)."""
    found = Busiest(LinkSchedule(link), "uplink")
    for since_s, until_s, bit_s in windows:
        found.add(since_s, until_s, round((until_s - since_s) * bit_s / 8))
    return found


@given(st.lists(st.floats(0.0, 1e9), max_size=20))
def test_it_is_the_third_highest_window(rates_bit_s):
    """So one or two looks that came late change nothing."""
    found = busiest_of(
        LinkPlan(uplink_bit_s=MBIT), [(2.0 * k, 2.0 * k + 2.0, rate) for k, rate in enumerate(rates_bit_s)]
    )

    if len(rates_bit_s) < 3:
        assert (found.bit_s, found.share) == (None, None)
    else:
        third = sorted(rates_bit_s)[-3]
        assert found.bit_s == pytest.approx(third, abs=4.0)
        assert found.share == pytest.approx(2 * third / (2 * MBIT + 8 * BURST_BYTES), abs=1e-4)


@given(st.integers(5_000, MBIT), st.floats(0.0, 0.3))
def test_what_a_link_as_asked_lets_through_is_no_more_than_it_may_carry(bit_s, since_s):
    """Whole packets, each as soon as the bucket has it: 20 kbit let four pass in some two seconds, which are 121 %."""
    times_s = [max(0.0, (1514 * k - BURST_BYTES) * 8 / bit_s) for k in range(1, 1 + 8 * bit_s // 12_000 + 4)]
    found = Busiest(LinkSchedule(LinkPlan(uplink_bit_s=bit_s)), "uplink")
    for window in range(5):
        begin_s = since_s + 2.0 * window
        found.add(begin_s, begin_s + 2.0, 1514 * sum(begin_s <= time_s < begin_s + 2.0 for time_s in times_s))

    assert found.share <= 1.0


def test_a_link_that_changes_is_compared_with_what_was_asked_at_the_time():
    """10 mbit for four seconds and 1 mbit then: 10 mbit are right at first and ten times too much later."""
    link = LinkPlan(uplink_bit_s=10 * MBIT, changes=(LinkChange(at_s=4.0, uplink_bit_s=1 * MBIT),))
    early, late = [(k, k + 1.0, 10 * MBIT) for k in range(4)], [(k, k + 1.0, 10 * MBIT) for k in range(4, 7)]

    assert busiest_of(link, early).share == pytest.approx(1.0, rel=0.01)
    assert busiest_of(link, early + late).share == pytest.approx(10.0, rel=0.02)
    assert busiest_of(link, [(3.0, 5.0, 5.5 * MBIT)] * 3).share == pytest.approx(1.0, rel=0.01)


def test_without_a_limit_there_is_a_rate_and_no_share():
    """Nothing was asked."""
    found = busiest_of(LinkPlan(), [(0.0, 2.0, MBIT)] * 3)

    assert (found.bit_s, found.share) == (MBIT, None)
