"""Where two methods take as long: exact where time is bytes over a rate and computing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.studies.sweep.break_even import BreakEven, break_even

RATES = (1e6, 4e6, 16e6, 64e6)


def test_bytes_against_computing_cross_once():
    """80 Mbit sent whole, or 8 s of computing whatever the rate: as long at 10 mbit."""
    whole = [80e6 / rate for rate in RATES]
    (found,) = break_even(RATES, ("whole", whole), ("compressed", [8.0] * 4))

    assert found == BreakEven(pytest.approx(10e6), below="compressed", above="whole")


@given(st.lists(st.floats(0.1, 100.0), min_size=4, max_size=4))
def test_one_that_is_always_better_is_never_met(times):
    """By a tenth, everywhere."""
    assert break_even(RATES, ("a", times), ("b", [1.1 * each for each in times])) == []


def test_where_one_does_not_get_there_nothing_is_said():
    """Between rates where both do, something is."""
    assert break_even(RATES, ("a", [None, None, 2.0, 1.0]), ("b", [3.0, 3.0, 3.0, 3.0])) == []
    assert break_even(RATES, ("a", [9.0, None, 1.0, None]), ("b", [3.0] * 4))[0].below == "b"


def test_equal_at_a_measured_rate_is_met_there_or_passed_by():
    """Better on both sides of it: no crossing; better on one: there."""
    assert break_even(RATES[:3], ("a", [2.0, 3.0, 2.0]), ("b", [3.0] * 3)) == []
    (found,) = break_even(RATES[:3], ("a", [2.0, 3.0, 4.5]), ("b", [3.0] * 3))
    assert (found.below, found.above) == ("a", "b")
    assert found.rate == pytest.approx(RATES[1])
    (found,) = break_even(RATES, ("a", [2.0, 3.0, 3.0, 4.5]), ("b", [3.0] * 4))
    assert found.rate == pytest.approx(RATES[1])
    assert break_even(RATES, ("a", [3.0, 3.0, 2.0, 2.0]), ("b", [3.0] * 4)) == []
