"""Student's t interval over seeds: it covers what it promises, and pairing takes out what seeds have in common."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edgebed.studies.statistics import (
    CONFIDENCE,
    ConfidenceInterval,
    detectable,
    detectable_ratio,
    interval,
    paired,
    paired_ratio,
    predicted,
    ratio_of_means,
    share_of,
)

VALUES = st.lists(st.floats(-100, 100), min_size=2, max_size=12)
POSITIVE = st.dictionaries(st.integers(1, 20), st.floats(0.01, 1e9), min_size=2, max_size=12)
DRAWS = 2000
WITHIN_CHANCE = 3 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DRAWS)
"""Of so many samples, three standard deviations of the share of those that an interval covers."""


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_the_interval_covers_the_true_mean_as_often_as_it_says(seeds):
    """Of 2,000 samples of a normal distribution 95 % give an interval that holds its mean, within chance (3 sigma)."""
    draw = np.random.default_rng(seeds)
    found = [interval(draw.normal(98.6, 0.2, seeds).tolist()) for _ in range(DRAWS)]
    covered = sum(each.low <= 98.6 <= each.high for each in found) / DRAWS
    assert covered == pytest.approx(CONFIDENCE, abs=WITHIN_CHANCE)


def test_a_known_interval():
    """Three values against the table's quantile of two degrees of freedom, 4.303."""
    found = interval([1.0, 2.0, 3.0])
    half = 4.3026527 / math.sqrt(3)
    assert (found.mean, found.low, found.high) == pytest.approx((2.0, 2.0 - half, 2.0 + half))
    assert found.seeds == 3


@given(VALUES)
def test_the_mean_lies_in_the_middle(values):
    """The interval is symmetric around the mean of the values."""
    found = interval(values)
    assert found.low <= found.mean <= found.high
    assert found.mean - found.low == pytest.approx(found.high - found.mean, abs=1e-9)


@given(VALUES, st.floats(0.5, 0.94))
def test_less_confidence_is_a_narrower_interval(values, confidence):
    """What is to be covered less often may be narrower."""
    wide, narrow = interval(values), interval(values, confidence)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


@given(st.floats(-1e9, 1e9), st.integers(2, 12))
def test_equal_values_have_no_spread(value, seeds):
    """To the last bit, so that nothing is told apart by rounding."""
    assert interval([value] * seeds) == ConfidenceInterval(mean=value, low=value, high=value, seeds=seeds)


def test_one_seed_has_no_interval():
    """Nothing is made up, and no value is excluded."""
    assert interval([0.98]) == ConfidenceInterval(mean=0.98)
    assert not interval([0.98]).excludes(0.0)


def test_no_value_has_no_mean():
    """It is a mistake to ask for it."""
    with pytest.raises(ValueError, match="no value"):
        interval([])


def test_what_lies_outside_is_excluded():
    """Both ends belong to the interval."""
    known = ConfidenceInterval(mean=0.5, low=0.0, high=1.0, seeds=3)
    assert [known.excludes(value) for value in (-0.1, 0.0, 0.5, 1.0, 1.1)] == [True, False, False, False, True]


@given(st.dictionaries(st.integers(1, 20), st.floats(-100, 100), min_size=2, max_size=12), st.floats(-5, 5))
def test_pairing_takes_out_what_seeds_have_in_common(baseline, shift):
    """Whatever the spread over seeds: the same shift in each is found without any uncertainty."""
    found = paired({seed: value + shift for seed, value in baseline.items()}, baseline)
    assert (found.low, found.mean, found.high) == pytest.approx((shift, shift, shift), abs=1e-9)


@given(
    st.dictionaries(st.integers(1, 8), st.floats(-100, 100), max_size=6),
    st.dictionaries(st.integers(1, 8), st.floats(-100, 100), max_size=6),
)
def test_only_common_seeds_are_compared(values, baseline):
    """The others change nothing; without a common one there is no difference."""
    common = values.keys() & baseline.keys()
    found = paired(values, baseline)
    assert (found.seeds if found else 0) == len(common)
    if found:
        assert found.mean == pytest.approx(np.mean([values[seed] - baseline[seed] for seed in common]), abs=1e-9)


@given(POSITIVE, st.floats(0.001, 1000))
def test_a_common_factor_is_found_exactly(baseline, factor):
    """However far the seeds lie apart."""
    found = paired_ratio({seed: factor * value for seed, value in baseline.items()}, baseline)
    assert (found.low, found.mean, found.high) == pytest.approx((factor, factor, factor))


@given(POSITIVE, POSITIVE)
def test_a_ratio_does_not_care_which_is_the_baseline(values, baseline):
    """Turned round, it and its ends are the reciprocals."""
    found, turned = paired_ratio(values, baseline), paired_ratio(baseline, values)
    assert (found is None) == (turned is None) == (not values.keys() & baseline.keys())
    if found and found.seeds == 1:
        assert found.mean == pytest.approx(1 / turned.mean)
    elif found:
        assert math.log(found.mean) == pytest.approx(-math.log(turned.mean), abs=1e-9)
        assert math.log(found.low) == pytest.approx(-math.log(turned.high), abs=1e-9)


def test_what_is_nothing_has_no_ratio():
    """A value of 0 is neither a factor of anything nor has it a logarithm; a seed only one has does not matter."""
    assert paired_ratio({1: 0.0, 2: 3.0}, {1: 1.0, 2: 1.0}) is None
    assert paired_ratio({1: 2.0}, {1: 0.0}) is None
    assert paired_ratio({1: 2.0, 2: 0.0}, {1: 1.0}) == ConfidenceInterval(mean=2.0)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_what_is_detectable_is_found_in_eight_of_ten_studies(seeds):
    """Of normal scatter: a difference that large, tested with as many seeds."""
    values = np.random.default_rng(seeds).normal(size=seeds)
    found = interval(list(values))
    half = (found.high - found.low) / 2
    scatter = half * seeds**0.5 / stats.t.ppf(0.975, seeds - 1)

    draw = np.random.default_rng(7).normal(detectable(found) / scatter, 1, (20_000, seeds))
    t = draw.mean(axis=1) / (draw.std(axis=1, ddof=1) / seeds**0.5)
    assert (abs(t) > stats.t.ppf(0.975, seeds - 1)).mean() == pytest.approx(0.8, abs=0.01)


def test_one_seed_detects_nothing():
    """Nor does a ratio of one; of two, the same is said of a ratio as of its logarithm."""
    assert detectable(interval([3.0])) is None
    assert detectable_ratio(ConfidenceInterval(mean=2.0)) is None
    ratio = paired_ratio({1: 2.0, 2: 3.0}, {1: 1.0, 2: 1.0})
    assert math.log(detectable_ratio(ratio)) == pytest.approx(detectable(interval([math.log(2), math.log(3)])))


@pytest.mark.parametrize(("seeds", "runs"), [(3, 1), (5, 3), (4, 20)])
def test_the_mean_of_further_runs_lies_where_it_is_expected_as_often_as_it_says(seeds, runs):
    """Of 2,000 pairs of samples of one normal distribution, within chance (3 sigma)."""
    draw = np.random.default_rng(10 * seeds + runs)
    covered = 0
    for _ in range(DRAWS):
        ours, theirs = draw.normal(98.6, 0.2, seeds), draw.normal(98.6, 0.2, runs)
        expected = predicted(interval(ours.tolist()), runs)
        covered += expected.low <= theirs.mean() <= expected.high
    assert covered / DRAWS == pytest.approx(CONFIDENCE, abs=WITHIN_CHANCE)


def test_a_known_prediction():
    """The textbook's t s sqrt(1/n + 1/m), on both sides; one seed predicts nothing beside its value."""
    found = predicted(interval([1.0, 2.0, 3.0]), 2)
    half = 4.3026527 * math.sqrt(1 / 3 + 1 / 2)
    assert (found.mean, found.low, found.high) == pytest.approx((2.0, 2.0 - half, 2.0 + half))
    assert predicted(interval([2.0]), 1).ends == (2.0, 2.0)


@given(VALUES, st.integers(1, 9))
def test_more_runs_scatter_less_and_never_less_than_the_mean_is_known(values, runs):
    """The mean of very many is where the interval of the mean has it."""
    found = interval(values)
    one, few, many = (predicted(found, count) for count in (1, runs, 10**12))
    assert one.low <= few.low <= many.low <= found.low <= found.high <= many.high <= few.high <= one.high
    assert many.ends == pytest.approx(found.ends, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("common", [0.0, 0.9, -0.9])
def test_a_ratio_of_means_covers_the_true_one_as_often_as_it_says(common):
    """Of 2,000 samples of pairs whose scatter they have in common or not; the denominator is told from zero in each."""
    draw = np.random.default_rng(5)
    scatter = [[0.04, common * 0.04], [common * 0.04, 0.04]]
    found = [ratio_of_means(*draw.multivariate_normal([1.4, 2.0], scatter, 5).T) for _ in range(DRAWS)]
    assert None not in found
    covered = sum(each.low <= 0.7 <= each.high for each in found) / DRAWS
    assert covered == pytest.approx(CONFIDENCE, abs=WITHIN_CHANCE)


def test_a_denominator_that_is_not_told_from_zero_has_no_ratio():
    """It is where its own interval holds zero, and else there is one; with one pair nothing is told."""
    assert ratio_of_means([1.0, 2.0, 3.0], [-0.1, 2.0, 1.0]) is None
    assert ratio_of_means([1.0, 2.0, 3.0], [-1.0, -1.1, -0.9]) is not None
    assert ratio_of_means([1.0], [1.0]) is None
    assert ratio_of_means([], []) is None


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=2, max_size=8))
def test_there_is_a_ratio_exactly_where_the_denominator_is_told_from_zero(pairs):
    """By the interval of the same confidence, whose ends lie on one side then; the ratio lies in its own."""
    values, others = zip(*pairs, strict=True)
    below = interval(others)
    if min(map(abs, below.ends)) < 1e-6:
        return  # rounding decides
    found = ratio_of_means(values, others)
    assert (found is not None) == below.excludes(0.0)
    if found:
        assert found.low - 1e-9 <= found.mean <= found.high + 1e-9
        assert found.seeds == len(pairs)


@given(st.lists(st.floats(1, 100), min_size=2, max_size=8), st.floats(-3, 3))
def test_what_is_the_same_share_of_each_is_known_exactly(others, share):
    """However far they lie apart, as long as they are told from zero."""
    found = ratio_of_means([share * other for other in others], others)
    if found:
        assert (found.low, found.mean, found.high) == pytest.approx((share, share, share), abs=1e-4)
    exact = ratio_of_means([share * 2.0] * 3, [2.0] * 3)
    assert (exact.low, exact.mean, exact.high) == pytest.approx((share, share, share))


@given(VALUES)
def test_over_a_number_a_ratio_is_students_interval_of_it(values):
    """Where the denominator has no scatter."""
    found, wanted = ratio_of_means(values, [4.0] * len(values)), interval([value / 4 for value in values])
    assert (found.low, found.mean, found.high) == pytest.approx((wanted.low, wanted.mean, wanted.high), abs=1e-6)


@pytest.mark.parametrize(("count", "of"), [(0, 6), (1, 6), (3, 6), (6, 6), (1, 100), (0, 1)])
def test_a_share_lies_between_the_ends_of_clopper_and_pearson(count, of):
    """Scipy's exact interval; what was never seen may be none of all, and what always was all."""
    wanted = stats.binomtest(count, of).proportion_ci(CONFIDENCE, method="exact")
    assert share_of(count, of) == pytest.approx((wanted.low, wanted.high))
    assert share_of(of - count, of) == pytest.approx((1 - wanted.high, 1 - wanted.low))
    surer = share_of(count, of, 0.99)
    assert surer[0] <= wanted.low
    assert wanted.high <= surer[1]
