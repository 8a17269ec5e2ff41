"""Where two methods take as long: exact where time is bytes over a rate and computing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.studies.sweep.break_even import BreakEven, break_even, undecided

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


RUN = [1.0, 10.0, 100.0]


def timed(leads: list[float], slope: float) -> tuple[list[dict[int, float]], list[dict[int, float]]]:
    """Times at RUN: the first method's are so many powers of e longer, by seed, and more so at higher rates."""
    first = [{k: float(np.exp(lead + slope * np.log(rate / 10))) for k, lead in enumerate(leads)} for rate in RUN]
    return first, [dict.fromkeys(range(len(leads)), 1.0)] * len(RUN)


def test_a_break_even_rate_is_as_uncertain_as_the_seeds_make_it():
    """Leads of +-0.1 about zero at 10, by a t test, are told apart where the line has gone as far as its half-width."""
    leads = [-0.1, 0.0, 0.1]
    half = 4.303 * 0.1 / 3**0.5
    low, high = undecided(RUN, *timed(leads, slope=0.5), 10.0)
    assert low == pytest.approx(10 * np.exp(-half / 0.5), rel=0.06)
    assert high == pytest.approx(10 * np.exp(half / 0.5), rel=0.06)


def test_methods_that_may_break_even_anywhere_may_do_so_beyond_what_was_run():
    """The interval then ends at the first and the last rate."""
    assert undecided(RUN, *timed([-1.0, 0.0, 1.0], slope=0.1), 10.0) == pytest.approx((1.0, 100.0))


def test_one_seed_has_no_interval():
    """Nor have two of which one failed at a rate."""
    first, second = timed([0.1], slope=0.5)
    assert undecided(RUN, first, second, 10.0) is None
    first, second = timed([-0.1, 0.1], slope=0.5)
    assert undecided(RUN, [first[0], {0: first[1][0]}, first[2]], second, 10.0) is None
