"""Claims against measurements: what confirms one, what contradicts it, and what does neither."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.studies.papers.paper import AtLeast, AtMost, Near, Never, Row, Sign
from edgebed.studies.reproduction.findings import judge

numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-6, 1e6)
by_seed = st.dictionaries(st.integers(1, 9), numbers, min_size=2, max_size=6)
margins = st.one_of(st.just(0.0), st.floats(0, 1e3))
signs = st.one_of(
    st.builds(Sign, sign=st.sampled_from((-1, 1)), margin=margins),
    st.builds(Sign, sign=st.just(1), value=positive, margin=margins),
    st.builds(Sign, sign=st.just(-1), value=positive.map(lambda size: -size), margin=margins),
)
claims = st.one_of(
    st.builds(Near, value=numbers, tolerance=st.floats(0, 1e3)),
    signs,
    st.builds(AtLeast, value=numbers),
    st.builds(AtMost, value=numbers, published=numbers),
    st.builds(Never),
)
OPPOSITE = {"reproduced": "differs", "differs": "reproduced", "not distinguishable": "not distinguishable"}
WEAKER = {
    "reproduced": ("reproduced", "in direction", "not distinguishable"),
    "in direction": ("in direction", "not distinguishable"),
    "differs": ("differs", "not distinguishable"),
    "equal": ("equal", "not distinguishable"),
    "not distinguishable": ("not distinguishable",),
}
"""What may be found of the same measurement where less of it can be told."""


def row(claim, **settings):
    """Of one cell, in a unit whose values do not depend on how long it is trained."""
    return Row(**{"what": "", "cells": ("a",), "measure": lambda _: None, "unit": "x", "claim": claim} | settings)


def judged(claim, *values, seeds=1, runs=1, full_size=True, resolution=0.0, **settings):
    """Of seeds 1, 2, ..."""
    by_seed = dict(enumerate(values, start=1))
    return judge(
        row(claim, **settings), by_seed, seeds=seeds, runs=runs, full_size=full_size, resolution=resolution
    )  # fmt: skip


def finding(claim, *values, **settings):
    """The finding alone."""
    return judged(claim, *values, **settings).finding


def sized(claim, *values, **settings):
    """The finding, and how the size of an effect compares."""
    found = judged(claim, *values, **settings)
    return found.finding, found.size


def test_near_looks_at_where_the_interval_ends() -> None:
    """Within the tolerance, outside of it, or across its border."""
    claim = Near(value=98.5, tolerance=0.5)

    assert finding(claim, 98.4, 98.5, 98.6) == "reproduced"
    assert finding(claim, 95.0, 95.1, 94.9) == "differs"
    assert finding(claim, 97.5, 98.5, 99.5) == "not distinguishable"


def test_a_sign_needs_an_interval_beyond_zero() -> None:
    """On either side."""
    claim = Sign(sign=1)

    assert finding(claim, 0.2, 0.21, 0.19) == "reproduced"
    assert finding(claim, -0.2, -0.21, -0.19) == "differs"
    assert finding(claim, 0.5, -0.1, 0.1) == "not distinguishable"


@pytest.mark.parametrize("sign", [1, -1])
def test_an_effect_of_a_size_is_reproduced_between_half_of_it_and_twice(sign) -> None:
    """With an interval beyond that it is found in direction alone, whichever sign it has."""
    claim = Sign(sign=sign, value=sign * 0.2)

    def found(*values):
        return sized(claim, *(sign * value for value in values))

    assert found(0.19, 0.2, 0.21) == ("reproduced", None)
    assert found(0.11, 0.111, 0.112) == ("reproduced", None)
    assert found(0.38, 0.381, 0.382) == ("reproduced", None)
    assert found(0.08, 0.081, 0.082) == ("in direction", "smaller")
    assert found(0.42, 0.421, 0.422) == ("in direction", "larger")
    assert found(-0.19, -0.2, -0.21) == ("differs", None)


def test_a_size_is_not_told_where_runs_like_these_may_have_the_papers_mean() -> None:
    """Which the mean of many runs would not be: then it is told, on whichever side the measured mean lies."""
    claim = Sign(sign=1, value=0.2)

    assert sized(claim, 0.14, 0.2, 0.26) == ("in direction", "not told")
    assert sized(claim, 0.09, 0.12, 0.15) == ("in direction", "not told")
    assert sized(claim, 0.09, 0.12, 0.15, runs=30) == ("in direction", "smaller")
    assert sized(claim, 0.3, 0.36, 0.42, runs=1) == ("in direction", "not told")
    assert sized(claim, 0.3, 0.36, 0.42, runs=30) == ("in direction", "larger")
    assert sized(claim, 0.08, 0.081, 0.082, resolution=0.03) == ("in direction", "smaller")
    assert sized(claim, 0.13, 0.131, 0.132, resolution=0.07) == ("in direction", "not told")


def test_a_papers_value_that_runs_like_these_may_have_contradicts_nothing() -> None:
    """Outside of the tolerance, its single run is to be expected all the same; the mean of three is not.

    What this project worked out itself scatters with no run of a paper's.
    """
    values = (97.14, 97.14, 97.5, 97.86, 97.86)
    claim = Near(value=98.5, tolerance=0.5)

    assert judged(claim, *values).measured.high < 98.0
    assert finding(claim, *values) == "not distinguishable"
    assert finding(claim, *values, runs=3) == "differs"
    assert finding(claim, *(197 - value for value in values)) == "not distinguishable"
    assert finding(claim, *(197 - value for value in values), runs=3) == "differs"
    assert finding(dataclasses.replace(claim, published=False), *values) == "not consistent"


def test_an_effect_that_is_said_to_be_little_has_one_border() -> None:
    """Below it, above it, or across it; which value the paper has makes no difference."""
    for published in (0.27, -5.0):
        claim = AtMost(value=0.5, published=published)

        assert finding(claim, 0.4, 0.41, 0.4) == "reproduced"
        assert finding(claim, -9.0, -9.1, -9.2) == "reproduced"
        assert finding(claim, 0.6, 0.61, 0.6) == "differs"
        assert finding(claim, 0.4, 0.6, 0.5) == "not distinguishable"
        assert finding(claim, 0.4, 0.41, 0.4, full_size=False, unit="points") == "so far inside"
        assert finding(claim, 0.6, 0.61, 0.6, full_size=False, unit="points") == "so far outside"


def test_with_fewer_seeds_than_were_stated_nothing_is_found() -> None:
    """However clear it looks; what was measured is there. More of them decide, and where none are needed one does."""
    for claim in (Near(value=5, tolerance=1), AtLeast(value=1), AtMost(value=9, published=5), Sign(sign=1), Never()):
        few = judged(claim, 5.0, 5.01, 5.0, seeds=4)

        assert (few.finding, few.size, few.measured.seeds) == (None, None, 3)
        decided = "differs" if isinstance(claim, Never) else "reproduced"
        for count in (4, 5):
            assert finding(claim, *[5.0, 5.01, 5.0, 5.0, 5.0][:count], seeds=4) == decided
        assert finding(claim, 5.0, exact=True, seeds=4) == finding(claim, 5.0, cells=(), seeds=4) == decided
    assert finding(AtLeast(value=1), None, None, seeds=3) is None


def test_a_difference_within_the_margin_is_none() -> None:
    """Whether it holds zero or not, so that a wider interval finds no more; in a run that is too short it is open."""
    claim = Sign(sign=1, margin=0.1)

    assert finding(claim, 0.01, -0.02, 0.0) == "equal"
    assert finding(claim, 0.05, 0.051, 0.052) == finding(claim, -0.05, -0.051, -0.052) == "equal"
    assert finding(claim, 0.15, 0.151, 0.152) == "reproduced"
    assert finding(claim, -0.15, -0.151, -0.152) == "differs"
    for values in ((0.1, -0.02, 0.0), (0.01, 0.05, 0.09), (-0.01, -0.05, -0.09)):
        assert finding(claim, *values) == "not distinguishable"
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
    measured, found, *_ = judge(row(claim), {1: value})

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
    large = Sign(sign=1, value=2.0)
    assert sized(large, 0.2, 0.21, 0.19, unit="points", full_size=False) == ("so far inside", None)
    assert sized(large, 0.2, 0.21, 0.19, unit="x", full_size=False) == ("in direction", "smaller")


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
    assert judge(row(None), {1: 4.0, 2: 4.0}).finding is None
    assert judge(row(AtLeast(value=0)), {}) == (None, None, None, None)


@given(by_seed, numbers, st.floats(0, 1e3))
def test_a_wider_tolerance_never_takes_a_confirmation_away(values, value, tolerance) -> None:
    """Nor does it make a contradiction of what was none."""
    rank = {"differs": 0, "not distinguishable": 1, "reproduced": 2}
    narrow = judge(row(Near(value=value, tolerance=tolerance)), values)
    wide = judge(row(Near(value=value, tolerance=2 * tolerance + 1)), values)

    assert rank[wide.finding] >= rank[narrow.finding]


@given(by_seed, claims, st.floats(0, 1e3))
def test_coarser_evaluations_never_decide_more(values, claim, resolution) -> None:
    """What they leave decided was decided the same way before, but for a size that is not told any more."""
    fine, coarse = judge(row(claim), values), judge(row(claim), values, resolution=resolution)

    assert coarse.finding in WEAKER[fine.finding]
    assert coarse.finding != fine.finding or coarse.size in (fine.size, "not told")


@given(by_seed, claims, st.integers(1, 20), st.floats(0.95, 0.999))
def test_a_surer_interval_never_decides_more(values, claim, runs, confidence) -> None:
    """So a correction for many tests takes findings away, and makes none: one within chance is none at 99.9 %."""
    close = [judge(row(Sign(sign=1)), {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.25}, confidence=each) for each in (0.95, 0.999)]
    assert [each.finding for each in close] == ["reproduced", "not distinguishable"]
    assert close[0].measured == close[1].measured
    at_95, surer = (judge(row(claim), values, runs=runs, confidence=each) for each in (0.95, confidence))

    assert surer.finding in WEAKER[at_95.finding]


@given(by_seed, claims, st.integers(1, 20))
def test_a_paper_of_more_runs_is_contradicted_the_sooner(values, claim, runs) -> None:
    """Its mean scatters less; what confirms it is the same."""
    one, several = (judge(row(claim), values, runs=each) for each in (1, runs))

    assert one.finding in WEAKER[several.finding]
    assert (one.finding == "reproduced") == (several.finding == "reproduced")
    assert several.size in (one.size, "smaller", "larger")


@given(by_seed, st.sampled_from((-1, 1)))
def test_opposite_signs_get_opposite_findings(values, sign) -> None:
    """No measurement confirms both."""
    one, other = (judge(row(Sign(sign=each)), values).finding for each in (sign, -sign))

    assert other == OPPOSITE[one]


@given(by_seed, signs, st.integers(1, 5))
def test_an_effect_turned_round_is_as_large(values, claim, runs) -> None:
    """The negative of a measurement says of the negative of a claim what it says of the claim."""
    turned = Sign(sign=-claim.sign, value=None if claim.value is None else -claim.value, margin=claim.margin)
    found = judge(row(claim), values, runs=runs)
    other = judge(row(turned), {seed: -value for seed, value in values.items()}, runs=runs)

    assert (other.finding, other.size) == (found.finding, found.size)


@given(by_seed, claims, st.booleans())
def test_seeds_have_no_order(values, claim, full_size) -> None:
    """Which of them was run first changes no finding."""
    turned = dict(reversed(values.items()))

    first, second = (judge(row(claim), each, full_size=full_size) for each in (values, turned))
    assert (first.finding, first.size) == (second.finding, second.size)


@given(numbers, st.integers(2, 6), claims)
def test_seeds_that_agree_say_what_an_exact_value_says(value, count, claim) -> None:
    """An interval of no width is its mean."""
    several = judge(row(claim), dict.fromkeys(range(1, count + 1), value))
    alone = judge(row(claim, exact=True), {1: value})

    assert (several.finding, several.size) == (alone.finding, alone.size)
