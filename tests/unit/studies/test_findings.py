"""Claims against measurements: what confirms one, what contradicts it, and what does neither."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.studies.papers.paper import AtLeast, Near, Never, Row, Sign
from edgebed.studies.reproduction.findings import judge

numbers = st.floats(-1e6, 1e6)
by_seed = st.dictionaries(st.integers(1, 9), numbers, min_size=2, max_size=6)
claims = st.one_of(
    st.builds(Near, value=numbers, tolerance=st.floats(0, 1e3)),
    st.builds(Sign, sign=st.sampled_from((-1, 1))),
    st.builds(AtLeast, value=numbers),
    st.builds(Never),
)
OPPOSITE = {"reproduced": "differs", "differs": "reproduced", "not distinguishable": "not distinguishable"}


def row(claim, **settings):
    """Of one cell, in a unit whose values do not depend on how long it is trained."""
    return Row(**{"what": "", "cells": ("a",), "measure": lambda _: None, "unit": "x", "claim": claim} | settings)


def finding(claim, *values, full_size=True, resolution=0.0, **settings):
    """Of seeds 1, 2, ..."""
    by_seed = dict(enumerate(values, start=1))
    return judge(row(claim, **settings), by_seed, full_size=full_size, resolution=resolution)[1]


def test_near_looks_at_where_the_interval_ends() -> None:
    """Within the tolerance, outside of it, or across its border."""
    claim = Near(value=98.5, tolerance=0.5)

    assert finding(claim, 98.4, 98.5, 98.6) == "reproduced"
    assert finding(claim, 95.0, 95.1, 94.9) == "differs"
    assert finding(claim, 97.5, 98.5, 99.5) == "not distinguishable"


def test_a_sign_needs_an_interval_beyond_zero() -> None:
    """On either side."""
    claim = Sign(sign=1, value=0.2)

    assert finding(claim, 0.2, 0.21, 0.19) == "reproduced"
    assert finding(claim, -0.2, -0.21, -0.19) == "differs"
    assert finding(claim, 0.5, -0.1, 0.1) == "not distinguishable"


def test_a_difference_within_the_margin_is_none() -> None:
    """By an interval that holds zero; of a run that is too short nothing follows."""
    claim = Sign(sign=1, value=0.2, margin=0.1)

    assert finding(claim, 0.01, -0.02, 0.0) == "equal"
    assert finding(claim, 0.05, 0.051, 0.052) == "reproduced"
    assert finding(claim, -0.05, -0.051, -0.052) == "differs"
    assert finding(claim, 0.1, -0.02, 0.0) == "not distinguishable"
    assert finding(claim, 0.01, -0.02, 0.0, full_size=False, unit="points") == "not distinguishable"


def test_at_least_has_one_border() -> None:
    """Above it, below it, or across it."""
    claim = AtLeast(value=98.5)

    assert finding(claim, 98.6, 98.7) == "not distinguishable"  # two seeds have a wide interval
    assert finding(claim, 98.6, 98.61, 98.6) == "reproduced"
    assert finding(claim, 98.4, 98.41, 98.4) == "differs"


@pytest.mark.parametrize("claim", [Near(value=5, tolerance=1), AtLeast(value=1), Sign(sign=1), Never()])
@pytest.mark.parametrize("value", [5.0, -5.0, None])
def test_one_seed_decides_nothing_that_seeds_decide(claim, value) -> None:
    """Its value is shown; where chance has no part, and in a row that needs no run, it is enough."""
    measured, found = judge(row(claim), {1: value})

    assert found is None
    assert (measured and measured.mean) == value
    assert finding(claim, value, exact=True) in ("reproduced", "differs")
    assert finding(claim, value, cells=()) in ("reproduced", "differs")


def test_never_is_shown_by_runs_of_the_papers_size_alone() -> None:
    """A smaller run may have ended before it was reached; that it was reached contradicts at any size."""
    assert finding(Never(), None, None) == "reproduced"
    assert finding(Never(), None, None, full_size=False) == "so far inside"
    assert finding(Never(), None, 7.0) == "not distinguishable"
    assert finding(Never(), 8.0, 7.0) == "differs"
    assert finding(Never(), 8.0, 7.0, full_size=False) == "differs"


@pytest.mark.parametrize("claim", [Near(value=98.5, tolerance=0.5), AtLeast(value=98.0)])
def test_a_shorter_run_settles_of_an_accuracy_only_what_growing_cannot_undo(claim) -> None:
    """Inside a band it may leave it, below it may come in; above a band it stays, as it does above a least value."""

    def of_a_fifth(*values, unit="%"):
        return finding(claim, *values, full_size=False, unit=unit)

    is_band = isinstance(claim, Near)
    assert of_a_fifth(95.0, 95.1, 94.9) == "so far outside"
    assert of_a_fifth(95.0, 95.1, 94.9, unit="x") == finding(claim, 95.0, 95.1, 94.9, unit="%") == "differs"
    assert of_a_fifth(98.5, 98.51, 98.49) == ("so far inside" if is_band else "reproduced")
    assert of_a_fifth(99.5, 99.51, 99.49) == ("differs" if is_band else "reproduced")
    assert of_a_fifth(98.0, 99.0, 97.0) == "not distinguishable"


def test_an_accuracy_in_a_band_up_to_all_stays_there() -> None:
    """There is nothing above 100 %; of what is no accuracy there is."""
    claim = Near(value=99.2, tolerance=0.8)
    assert finding(claim, 99.5, 99.51, 99.49, full_size=False, unit="%") == "reproduced"
    assert finding(claim, 98.3, 98.31, 98.29, full_size=False, unit="%") == "so far outside"
    assert finding(claim, 99.5, 99.51, 99.49, full_size=False, unit="points") == "so far inside"


def test_an_order_of_two_may_turn_as_training_goes_on() -> None:
    """So a shorter run shows it, and its contrary, so far."""
    assert finding(Sign(sign=1), 0.2, 0.21, 0.19, unit="points", full_size=False) == "so far inside"
    assert finding(Sign(sign=1), -0.2, -0.21, -0.19, unit="points", full_size=False) == "so far outside"
    assert finding(Sign(sign=1), 0.5, -0.1, 0.1, unit="points", full_size=False) == "not distinguishable"
    assert finding(Sign(sign=1), 0.2, 0.21, 0.19, unit="x", full_size=False) == "reproduced"


def test_what_evaluations_cannot_tell_is_not_told() -> None:
    """Both reached it at the second evaluation: their ratio is anything from 0 to 2, and no contradiction of 2."""
    claim = Near(value=2, tolerance=0.5)

    assert finding(claim, 1.0, 1.0, 1.0) == "differs"
    assert finding(claim, 1.0, 1.0, 1.0, resolution=1.0) == "not distinguishable"
    assert finding(claim, 2.0, 2.0, 2.0, resolution=0.4) == "reproduced"
    assert finding(claim, 2.0, 2.0, 2.0, resolution=0.6) == "not distinguishable"


def test_what_follows_by_arithmetic_confirms_nothing() -> None:
    """Nor does agreement with a value that this project worked out itself."""
    own = Near(value=302, tolerance=15, published=False)

    assert finding(Near(value=4, tolerance=0.2), 4.0, cells=(), arithmetic=True) == "consistent"
    assert finding(own, 302.0, cells=()) == "consistent"
    assert finding(own, 380.0, cells=()) == "not consistent"
    assert finding(dataclasses.replace(own, published=True), 302.0, cells=()) == "reproduced"


@pytest.mark.parametrize("claim", [Near(value=1, tolerance=1), AtLeast(value=0), Sign(sign=1)])
def test_what_was_never_reached_confirms_no_number(claim) -> None:
    """It contradicts it where the run was long enough; seeds that reached it alone are no fair sample."""
    assert finding(claim, None, None) == "differs"
    assert finding(claim, math.nan, None) == "differs"
    assert finding(claim, None, None, full_size=False) == "so far outside"
    assert finding(claim, 1.0, None, 1.0) == "not distinguishable"


def test_without_a_claim_or_a_run_nothing_is_found() -> None:
    """The measurement stands alone."""
    assert judge(row(None), {1: 4.0, 2: 4.0})[1] is None
    assert judge(row(AtLeast(value=0)), {}) == (None, None)


@given(by_seed, numbers, st.floats(0, 1e3))
def test_a_wider_tolerance_never_takes_a_confirmation_away(values, value, tolerance) -> None:
    """Nor does it make a contradiction of what was none."""
    rank = {"differs": 0, "not distinguishable": 1, "reproduced": 2}
    _, narrow = judge(row(Near(value=value, tolerance=tolerance)), values)
    _, wide = judge(row(Near(value=value, tolerance=2 * tolerance + 1)), values)

    assert rank[wide] >= rank[narrow]


@given(by_seed, claims, st.floats(0, 1e3))
def test_coarser_evaluations_never_decide_more(values, claim, resolution) -> None:
    """What they leave decided was decided the same way before."""
    fine = judge(row(claim), values)[1]

    assert judge(row(claim), values, resolution=resolution)[1] in (fine, "not distinguishable")


@given(by_seed, st.sampled_from((-1, 1)))
def test_opposite_signs_get_opposite_findings(values, sign) -> None:
    """No measurement confirms both."""
    _, one = judge(row(Sign(sign=sign)), values)
    _, other = judge(row(Sign(sign=-sign)), values)

    assert other == OPPOSITE[one]


@given(by_seed, claims, st.booleans())
def test_seeds_have_no_order(values, claim, full_size) -> None:
    """Which of them was run first changes no finding."""
    turned = dict(reversed(values.items()))

    found = [judge(row(claim), each, full_size=full_size)[1] for each in (values, turned)]
    assert found[0] == found[1]


@given(numbers, st.integers(2, 6), claims)
def test_seeds_that_agree_say_what_an_exact_value_says(value, count, claim) -> None:
    """An interval of no width is its mean."""
    several = judge(row(claim), dict.fromkeys(range(1, count + 1), value))[1]

    assert several == judge(row(claim, exact=True), {1: value})[1]
