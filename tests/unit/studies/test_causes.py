"""How much of a difference one thing that was switched accounts for, and when that counts as its cause."""

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.studies.papers.paper import AtLeast, AtMost, Cause, Claim, Near, Never, Sign, Unit
from edgebed.studies.reproduction.causes import MET, CauseResult, Found, caused
from edgebed.studies.reproduction.findings import Finding
from edgebed.studies.statistics import ConfidenceInterval

WHY = Cause("The rate.", row="slower")
NEAR = Near(value=100.0, tolerance=1.0)
WITHOUT = (50.0, 51.0, 49.0, 50.5)


def found(
    *values: float | None,
    later: Sequence[float | None] = (),
    finding: Finding | None = "differs",
    needs_seeds: bool = True,
    is_short: bool = False,
) -> Found:
    """What was measured with seeds 1, 2, ..."""
    return Found(dict(enumerate(values, start=1)), later, finding, needs_seeds, is_short)


def share_of(
    without: Found | Sequence[float],
    switched: Found | Sequence[float] | None,
    claim: Claim = NEAR,
    unit: Unit = "%",
    cause: Cause = WHY,
) -> CauseResult:
    """The share of the difference that the switch accounts for."""
    one, other = (each if each is None or isinstance(each, Found) else found(*each) for each in (without, switched))
    assert one is not None
    return caused(cause, claim, unit, one, other)


@pytest.mark.parametrize(
    "claim", [NEAR, Sign(sign=1, value=100.0), AtLeast(value=100.0), AtMost(value=107.0, published=100.0)]
)
def test_a_switch_that_gives_the_papers_value_accounts_for_all_of_the_difference(claim: Claim) -> None:
    """In each seed, so that its interval has no width, however far the seeds lie apart."""
    result = share_of(WITHOUT, (100.0,) * 4, claim)

    assert result.share == ConfidenceInterval(mean=1.0, low=1.0, high=1.0, seeds=4)
    assert (result.counts, result.why_not) == (True, "")
    assert (result.text, result.row) == ("The rate.", "slower")


def test_a_switch_that_changes_nothing_accounts_for_nothing() -> None:
    """And one that leads away from the paper's value for less than that."""
    nothing = share_of(WITHOUT, WITHOUT)
    away = share_of(WITHOUT, [value - 25 for value in WITHOUT])

    assert nothing.share == ConfidenceInterval(mean=0.0, low=0.0, high=0.0, seeds=4)
    assert away.share is not None
    assert away.share.mean == pytest.approx(-0.5, abs=0.01)
    assert {nothing.why_not, away.why_not} == {"its share may be half of the difference or less"}


@given(st.floats(-0.5, 2.0))
def test_a_cause_counts_where_less_than_half_of_the_difference_is_left_with_it(part: float) -> None:
    """On either side of the paper's value."""
    result = share_of(WITHOUT, [value + part * (100 - value) for value in WITHOUT])

    assert result.share is not None
    assert result.share.mean == pytest.approx(part, abs=1e-9)
    assert result.counts == (0.5 < part < 1.5) or min(abs(part - 0.5), abs(part - 1.5)) < 1e-9


@pytest.mark.parametrize(
    ("switched", "why_not"),
    [
        ((90.0, 90.5, 89.5, 90.0), ""),
        ((70.0, 95.0, 72.0, 90.0), "its share may be half of the difference or less"),
        ((105.0, 135.0, 95.0, 140.0), "with it the difference may be half as large on the other side, or larger"),
    ],
)
def test_the_whole_interval_of_a_share_decides(switched: Sequence[float], why_not: str) -> None:
    """Its mean is above one half in each of these, and below one and a half."""
    result = share_of(WITHOUT, switched)

    assert result.share is not None
    assert 0.5 < result.share.mean < 1.5
    assert (result.why_not, result.counts) == (why_not, not why_not)


def test_of_ratios_half_and_twice_are_equally_far() -> None:
    """From 2 to 32 it is half of the way to 8; from 2 to 32 points it is a fifth."""
    for unit in ("bytes", "updates", "updates/s", "messages", "x", "s"):
        result = share_of((2.0,) * 3, (8.0,) * 3, Near(value=32.0, tolerance=1.0), unit)
        assert result.share is not None
        assert result.share.mean == pytest.approx(0.5)
    for unit in ("%", "points", ""):
        result = share_of((2.0,) * 3, (8.0,) * 3, Near(value=32.0, tolerance=1.0), unit)
        assert result.share is not None
        assert result.share.mean == pytest.approx(0.2)


def test_what_is_not_above_zero_is_no_ratio() -> None:
    """Neither with the switch nor without, and no ratio is claimed to be."""
    for without, switched, aim in (((0.0, 2.0), (3.0, 3.0), 4.0), ((2.0, 2.0), (-3.0, 3.0), 4.0), ((2, 2), (3, 3), 0)):
        result = share_of(without, switched, Near(value=aim, tolerance=0.1), "x")
        assert (result.share, result.counts) == (None, False)


def test_seeds_that_one_of_both_lacks_have_no_part() -> None:
    """Or in which one of them gave no number; of one seed that is left nobody knows how sure its share is."""
    with_others = Found({3: 100.0, 9: 7.0, 1: 100.0, 4: None, 5: 7.0, 2: 100.0}, (), "reproduced", True, False)
    both = share_of(found(*WITHOUT, None, 1.0, 2.0), with_others)
    one = share_of(found(50.0, None), found(100.0, 100.0))
    none = share_of(found(50.0, None), found(None, 100.0))

    assert both.share is not None
    assert (both.share.seeds, both.share.ends, both.counts) == (3, (1.0, 1.0), True)
    assert one.share == ConfidenceInterval(mean=1.0)
    assert none.share is None
    assert (one.why_not, none.why_not) == ("too few seeds have both", "no share can be told from these seeds")


def test_a_share_of_what_needs_no_seeds_counts_without_an_interval() -> None:
    """Of rows without cells, both: above one half, and not beyond one and a half. Where one needs seeds it does not."""
    computed = found(2.0, needs_seeds=False)

    for value, why_not in (
        (30.0, ""),
        (7.0, "its share may be half of the difference or less"),
        (129.0, "with it the difference may be half as large on the other side, or larger"),
    ):
        result = share_of(computed, found(value, needs_seeds=False), Near(value=32.0, tolerance=1.0), "x")
        assert (result.share and result.share.low, result.why_not) == (None, why_not)
    for needs in ((True, False), (False, True)):
        one, other = (found(value, needs_seeds=each) for value, each in zip((2.0, 30.0), needs, strict=True))
        assert share_of(one, other, Near(value=32.0, tolerance=1.0), "x").why_not == "too few seeds have both"


@pytest.mark.parametrize("claim", [Never(), Sign(sign=-1)])
def test_a_claim_without_a_value_is_accounted_for_by_a_switch_that_meets_it(claim: Claim) -> None:
    """As *never* is where it is not reached with the switch; no share is made up."""
    for finding in ("reproduced", "in direction", "consistent"):
        met = share_of(found(*WITHOUT), found(None, None, None, None, finding=finding), claim)
        assert (met.share, met.why_not) == (None, "")
    for finding in ("differs", "equal", "not distinguishable", "so far inside", "not consistent", None):
        assert finding not in MET
        missed = share_of(found(*WITHOUT), found(None, None, None, None, finding=finding), claim)
        assert (missed.share, missed.why_not) == (None, "by its row the claim is not met")


def test_what_contradicts_the_papers_words_is_no_cause() -> None:
    """Whatever it accounts for, which is said all the same."""
    against = dataclasses.replace(WHY, against="with c = 0.001")
    result = share_of(WITHOUT, (100.0,) * 4, cause=against)
    met = share_of(found(*WITHOUT), found(None, None, finding="reproduced"), Never(), cause=against)

    assert result.share is not None
    assert result.share.mean == 1.0
    assert result.why_not == met.why_not == "it contradicts the paper's words: with c = 0.001"


def test_what_nobody_tried_is_no_cause() -> None:
    """No row is named, or it has not been run with any seed."""
    for switched in (None, ()):
        assert share_of(WITHOUT, switched) == CauseResult(text="The rate.", row="slower", why_not="it was not tried")


SHORT = "the runs are too short to tell what it is in the end"
LATER = (60.0, 61.0, 59.0, 60.5)
"""What the values without the switch come to in a whole training."""


@pytest.mark.parametrize(
    ("later", "why_not"),
    [
        ((95.0, 95.5, 94.5, 95.0), ""),
        ((75.0, 75.5, 74.5, 75.0), SHORT),
        ((130.0, 130.5, 129.5, 130.0), SHORT),
        ((80.0, 99.0, 70.0, 95.0), SHORT),
        ((95.0, None, 94.5, 95.0), SHORT),
        ((95.0, 95.5, 94.5), SHORT),
        ((), SHORT),
    ],
    ids=["most", "less than half", "beyond", "nobody knows how much", "one is none", "one is missing", "all are"],
)
def test_of_runs_that_are_too_short_most_must_be_left_in_the_end(later: Sequence[float | None], why_not: str) -> None:
    """By what they may come to, of which nothing may be missing; the share that is told is that of the runs."""
    switched = found(90.0, 90.5, 89.5, 90.0, later=later, is_short=True)
    result = share_of(found(*WITHOUT, later=LATER, is_short=True), switched)

    assert result.share is not None
    assert result.share.mean == pytest.approx(0.8, abs=0.01)
    assert result.why_not == why_not


def test_runs_of_which_one_kind_is_short_are_too_short() -> None:
    """The others are as long as the paper's, and come to nothing else."""
    whole, short = found(*WITHOUT), found(*WITHOUT, later=(90.0,) * 4, is_short=True)
    to, short_to = found(*(90.0,) * 4), found(*(90.0,) * 4, later=(60.0,) * 4, is_short=True)

    assert share_of(whole, to).counts
    assert share_of(short, to).why_not == SHORT
    assert share_of(whole, short_to).why_not == SHORT
    assert share_of(whole, found(*(90.0,) * 4, later=(95.0,) * 4, is_short=True)).counts
