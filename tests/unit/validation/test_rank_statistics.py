"""Kendall's tau, its interval, and equivalence tests: against scipy where it has them, against laws where not."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from validation.ranking.rank_statistics import (
    equivalence,
    error_of,
    pooled_tau,
    share_interval,
    tau_b,
)

SIGNS = st.lists(st.lists(st.sampled_from((-1, 0, 1)), max_size=6), min_size=1, max_size=8)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=8).filter(lambda ranks: len(set(ranks)) > 1))
def test_tau_is_that_of_scipy(modelled: list[int]) -> None:
    """For items whose order is known without ties, ranked by a model that may tie some."""
    signs = [int(np.sign(after - before)) for before, after in itertools.combinations(modelled, 2)]
    assert tau_b(signs) == pytest.approx(stats.kendalltau(range(len(modelled)), modelled).statistic)


def test_without_a_pair_there_is_no_tau() -> None:
    """Of pairs that are all tied it is 0."""
    assert tau_b([]) is None
    assert pooled_tau([[], []]).tau is None
    assert tau_b([0, 0]) == 0.0


@given(SIGNS.filter(any))
def test_tau_lies_in_its_interval(groups: list[list[int]]) -> None:
    """Whatever pairs are turned; what is pooled counts all of them."""
    found = pooled_tau(groups)
    assert -1 <= found.low <= found.tau + 1e-12
    assert found.tau - 1e-12 <= found.high <= 1
    assert found.pairs == sum(map(len, groups))


def test_few_pairs_show_little_though_none_is_turned() -> None:
    """Three of three in order say no more than that 70.8 % may be the other way round; of three hundred, that 1.2 %."""
    few, many = pooled_tau([[1, 1, 1]]), pooled_tau([[1, 1, 1]] * 100)
    assert (few.tau, few.high, many.tau, many.high) == (1, 1, 1, 1)
    assert few.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 3)))
    assert many.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 300)))


def test_pairs_of_a_scenario_go_together() -> None:
    """Where whole scenarios are turned, the interval is wider than where as many pairs are turned here and there."""
    together = pooled_tau([[-1] * 10] * 2 + [[1] * 10] * 18)
    apart = pooled_tau([[-1] + [1] * 9] * 20)
    assert together.tau == apart.tau == pytest.approx(0.8)
    assert together.low < apart.low - 0.1


@given(st.integers(0, 12), st.integers(1, 12))
def test_the_interval_of_a_share_is_the_exact_one(count: int, more: int) -> None:
    """As scipy has it."""
    exact = stats.binomtest(count, count + more).proportion_ci(0.95, "exact")
    assert share_interval(count, count + more) == pytest.approx((exact.low, exact.high))


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=10).filter(lambda v: np.std(v) > 1e-3), st.floats(0.1, 12))
def test_equivalence_is_two_one_sided_t_tests(values: list[float], margin: float) -> None:
    """Its p is the larger of scipy's two, and it is equivalent where that is below 5 %."""
    found = equivalence(values, margin)
    above = stats.ttest_1samp(values, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(values, margin, alternative="less").pvalue
    assert found.p == pytest.approx(max(above, below), abs=1e-9)
    if abs(found.p - 0.05) > 1e-6:
        assert (found.verdict == "equivalent") == (found.p < 0.05)


def test_what_is_equivalent_what_is_beyond_and_what_is_open() -> None:
    """By where the interval lies; equal differences have no spread, and one difference shows nothing."""
    assert equivalence([0.01, 0.02, 0.015], 0.05).verdict == "equivalent"
    assert equivalence([0.11, 0.12, 0.115], 0.05).verdict == "beyond the margin"
    assert equivalence([-0.11, -0.12, -0.115], 0.05).verdict == "beyond the margin"
    assert equivalence([-0.05, 0.07, 0.01], 0.05).verdict == "open"
    assert equivalence([0.01], 0.05).verdict == "open"
    assert (equivalence([0.01, 0.01], 0.05).verdict, equivalence([0.01, 0.01], 0.05).p) == ("equivalent", 0.0)


def test_a_test_is_wrong_as_seldom_as_it_says() -> None:
    """Of 2,000 samples that are as far off as the margin, 5 % are called equivalent, within chance (3 sigma)."""
    draw = np.random.default_rng(3)
    called = [equivalence(draw.normal(0.05, 0.01, 5).tolist(), 0.05).verdict == "equivalent" for _ in range(2000)]
    assert np.mean(called) == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / 2000))


def test_errors_are_sizes_and_their_interval_is_over_scenarios() -> None:
    """Signs do not matter; a scenario that is wrong as a whole makes the interval wide."""
    found = error_of([[-0.01, 0.01]] * 9 + [[0.5, -0.5]])
    assert (found.median, found.largest, found.places) == (0.01, 0.5, 20)
    assert found.median_low <= found.median <= found.median_high
    assert found.p95_high == 0.5
    assert found.p95_low == pytest.approx(0.01)
    assert error_of([[], []]) is None
