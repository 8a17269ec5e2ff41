"""Claims against measurements: what confirms one, what contradicts it, and what does neither."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.comparing.findings import judge
from edgebed.papers.paper import AtLeast, Near, Never, Sign

numbers = st.floats(-1e6, 1e6)
by_seed = st.dictionaries(st.integers(1, 9), numbers, min_size=1, max_size=6)
claims = st.one_of(
    st.builds(Near, value=numbers, tolerance=st.floats(0, 1e3)),
    st.builds(Sign, sign=st.sampled_from((-1, 1)), one_seed=st.floats(0, 10)),
    st.builds(AtLeast, value=numbers),
    st.builds(Never),
)
OPPOSITE = {"reproduced": "differs", "differs": "reproduced", "not distinguishable": "not distinguishable"}


def verdict(claim, *values, full_size=True):
    """Of seeds 1, 2, ..."""
    return judge(claim, dict(enumerate(values, start=1)), full_size=full_size)[1]


def test_near_looks_at_where_the_interval_ends() -> None:
    """Within the tolerance, outside of it, or across its border."""
    claim = Near(value=98.5, tolerance=0.5)

    assert verdict(claim, 98.4, 98.5, 98.6) == "reproduced"
    assert verdict(claim, 95.0, 95.1, 94.9) == "differs"
    assert verdict(claim, 97.5, 98.5, 99.5) == "not distinguishable"
    assert verdict(claim, 98.0) == "reproduced"
    assert verdict(claim, 97.9) == "differs"


def test_a_sign_needs_an_interval_beyond_zero() -> None:
    """One seed needs a value beyond what one seed can show."""
    claim = Sign(sign=1, value=0.2, one_seed=0.5)

    assert verdict(claim, 0.2, 0.21, 0.19) == "reproduced"
    assert verdict(claim, -0.2, -0.21, -0.19) == "differs"
    assert verdict(claim, 0.5, -0.1, 0.1) == "not distinguishable"
    assert verdict(claim, 0.49) == "not distinguishable"
    assert verdict(claim, 0.5) == "reproduced"
    assert verdict(claim, -0.5) == "differs"


def test_at_least_has_one_border() -> None:
    """Above it, below it, or across it."""
    claim = AtLeast(value=98.5)

    assert verdict(claim, 98.6, 98.7) == "not distinguishable"  # two seeds have a wide interval
    assert verdict(claim, 98.6, 98.61, 98.6) == "reproduced"
    assert verdict(claim, 98.5) == "reproduced"
    assert verdict(claim, 98.4) == "differs"


def test_never_is_shown_by_runs_of_the_papers_size_alone() -> None:
    """A smaller run may have ended before it was reached; that it was reached contradicts at any size."""
    assert verdict(Never(), None, None) == "reproduced"
    assert verdict(Never(), None, None, full_size=False) == "not distinguishable"
    assert verdict(Never(), None, 7.0) == "not distinguishable"
    assert verdict(Never(), 8.0, 7.0) == "differs"
    assert verdict(Never(), 8.0, 7.0, full_size=False) == "differs"


@pytest.mark.parametrize("claim", [Near(value=98.5, tolerance=0.5), AtLeast(value=98.0)])
def test_a_low_accuracy_of_a_smaller_run_contradicts_nothing(claim) -> None:
    """It may have ended too early; one that is too high contradicts at any size, and so does what does not grow."""

    def of_a_fifth(*values, grows=True):
        return judge(claim, dict(enumerate(values, start=1)), full_size=False, grows=grows)[1]

    assert of_a_fifth(95.0, 95.1, 94.9) == of_a_fifth(97.0) == "not distinguishable"
    assert of_a_fifth(95.0, 95.1, 94.9, grows=False) == verdict(claim, 95.0, 95.1, 94.9) == "differs"
    assert of_a_fifth(98.5) == "reproduced"
    assert of_a_fifth(99.5) == ("differs" if isinstance(claim, Near) else "reproduced")


@pytest.mark.parametrize("claim", [Near(value=1, tolerance=1), AtLeast(value=0), Sign(sign=1)])
def test_what_was_never_reached_confirms_no_number(claim) -> None:
    """It contradicts it where the run was long enough; seeds that reached it alone are no fair sample."""
    assert verdict(claim, None, None) == "differs"
    assert verdict(claim, math.nan) == "differs"
    assert verdict(claim, None, full_size=False) == "not distinguishable"
    assert verdict(claim, 1.0, None, 1.0) == "not distinguishable"


def test_without_a_claim_or_a_run_there_is_no_verdict() -> None:
    """The measurement stands alone."""
    assert judge(None, {1: 4.0}) == (judge(AtLeast(value=0), {1: 4.0})[0], None)
    assert judge(AtLeast(value=0), {}) == (None, None)


@given(by_seed, numbers, st.floats(0, 1e3))
def test_a_wider_tolerance_never_takes_a_confirmation_away(values, value, tolerance) -> None:
    """Nor does it make a contradiction of what was none."""
    rank = {"differs": 0, "not distinguishable": 1, "reproduced": 2}
    _, narrow = judge(Near(value=value, tolerance=tolerance), values)
    _, wide = judge(Near(value=value, tolerance=2 * tolerance + 1), values)

    assert rank[wide] >= rank[narrow]


@given(by_seed, st.sampled_from((-1, 1)))
def test_opposite_signs_get_opposite_verdicts(values, sign) -> None:
    """No measurement confirms both."""
    _, one = judge(Sign(sign=sign), values)
    _, other = judge(Sign(sign=-sign), values)

    assert other == OPPOSITE[one]


@given(by_seed, claims, st.booleans())
def test_seeds_have_no_order(values, claim, full_size) -> None:
    """Which of them was run first changes no verdict."""
    turned = dict(reversed(values.items()))

    assert judge(claim, values, full_size=full_size)[1] == judge(claim, turned, full_size=full_size)[1]


@given(numbers, st.integers(2, 6), claims)
def test_seeds_that_agree_say_what_one_says(value, count, claim) -> None:
    """An interval of no width is its mean; only a sign is shown better by several seeds than by one."""
    _, several = judge(claim, dict.fromkeys(range(1, count + 1), value))
    _, one = judge(claim, {1: value})

    assert several == one or (isinstance(claim, Sign) and one == "not distinguishable")
