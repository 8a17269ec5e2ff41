"""Statistics of a ranking study: Kendall's tau-b over pairs, intervals by bootstrap over scenarios, equivalence tests.

What belongs to one scenario is not independent, so bootstraps draw whole scenarios. Pure.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import msgspec
import numpy as np

from edgebed.core import chance
from edgebed.studies.statistics import CONFIDENCE, interval, t_probability, t_quantile

T = TypeVar("T")
RESAMPLES = 2000
TEST_LEVEL = 0.05
"""Probability with which a test calls equivalent what is as far apart as the margin."""
HIGH_SHARE = 0.95
"""Share of the errors that lie below the high one that is told beside the median."""

Equivalent = Literal["equivalent", "beyond the margin", "open"]


class Tau(msgspec.Struct, frozen=True, kw_only=True):
    """Kendall's tau-b over pairs whose live order is known, with its interval; None where there is no pair."""

    tau: float | None
    low: float | None = None
    high: float | None = None
    pairs: int
    """Pairs whose live order is known."""
    turned: int = 0
    """Pairs that the simulation has the other way round."""
    tied: int = 0
    """Pairs that the simulation does not tell apart at all."""


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of errors over all places, each end of an interval by bootstrap over scenarios."""

    median: float
    median_low: float
    median_high: float
    p95: float
    """What 95 % of the errors are at most."""
    p95_low: float
    p95_high: float
    largest: float
    places: int
    """Number of errors."""


class Equivalence(msgspec.Struct, frozen=True, kw_only=True):
    """Two one-sided t tests of a mean difference against a margin."""

    mean: float
    low: float | None
    """Lower end of the interval that the tests come to, of 1 - 2 TEST_LEVEL; None with a single value."""
    high: float | None
    margin: float
    p: float | None
    """The larger of the two probabilities of a mean so far inside, were it at the margin."""
    verdict: Equivalent


def tau_b(signs: Sequence[int]) -> float | None:
    """Kendall's tau-b of pairs whose live order is known; each sign: 1 in the same order, -1 turned, 0 tied here.

    (C - D) / sqrt(n (n - T)): of n pairs none is tied live, T are tied in the simulation. None without a pair.
    """
    if not signs:
        return None
    untied = sum(sign != 0 for sign in signs)
    return sum(signs) / math.sqrt(len(signs) * untied) if untied else 0.0


def pooled_tau(by_scenario: Sequence[Sequence[int]]) -> Tau:
    """Tau of the pairs of all scenarios together, with a 95 % interval.

    The interval goes as far as the wider of two at either end: of the bootstrap over scenarios, which knows that pairs
    of one scenario go together; and of the exact one of a share (Clopper and Pearson), which knows that few pairs show
    little though none of them is turned.
    """
    signs = [sign for each in by_scenario for sign in each]
    found = tau_b(signs)
    if found is None:
        return Tau(tau=None, pairs=0)
    with_pairs = [each for each in by_scenario if each]
    ((low, high),) = bootstrap(with_pairs, lambda chosen: [tau_b([sign for each in chosen for sign in each]) or 0.0])
    wrong = sum(sign <= 0 for sign in signs)
    exact_low, exact_high = (1 - 2 * end for end in reversed(share_interval(wrong, len(signs))))
    return Tau(
        tau=found,
        low=min(low, exact_low),
        high=max(high, exact_high),
        pairs=len(signs),
        turned=sum(sign < 0 for sign in signs),
        tied=sum(sign == 0 for sign in signs),
    )


def share_interval(count: int, total: int) -> tuple[float, float]:
    """The exact 95 % interval of a share of which `count` of `total` were seen (Clopper and Pearson)."""
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(count, total - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - tail)) if count < total else 1.0
    return low, high


def error_of(by_scenario: Sequence[Sequence[float]]) -> Error | None:
    """Median, 95th percentile and largest of the sizes of these errors; None where there is none."""
    sizes = [np.abs(np.asarray(each)) for each in by_scenario if len(each)]
    if not sizes:
        return None
    shares = (0.5, HIGH_SHARE)
    ends = bootstrap(sizes, lambda chosen: np.quantile(np.concatenate(chosen), shares).tolist())
    (median_low, median_high), (p95_low, p95_high) = ends
    together = np.concatenate(sizes)
    median, p95 = np.quantile(together, shares).tolist()
    return Error(
        median=median,
        median_low=median_low,
        median_high=median_high,
        p95=p95,
        p95_low=p95_low,
        p95_high=p95_high,
        largest=float(together.max()),
        places=len(together),
    )


def equivalence(differences: Sequence[float], margin: float) -> Equivalence:
    """Whether the mean difference is within the margin (TOST: Schuirmann 1987); ValueError without a difference.

    Equivalent where both one-sided t tests reject at TEST_LEVEL, which is where the interval of 1 - 2 TEST_LEVEL lies
    within the margin; beyond it where that interval lies outside; else open, as with a single difference.
    """
    found = interval(differences, 1 - 2 * TEST_LEVEL)
    if found.low is None or found.high is None:
        return Equivalence(mean=found.mean, low=None, high=None, margin=margin, p=None, verdict="open")
    verdict: Equivalent = "open"
    if -margin < found.low and found.high < margin:
        verdict = "equivalent"
    elif found.low > margin or found.high < -margin:
        verdict = "beyond the margin"
    return Equivalence(
        mean=found.mean,
        low=found.low,
        high=found.high,
        margin=margin,
        p=_p(found.mean, found.high - found.mean, found.seeds, margin),
        verdict=verdict,
    )


def _p(mean: float, half: float, count: int, margin: float) -> float:
    room = margin - abs(mean)
    if half <= 0:
        return 0.0 if room > 0 else 1.0
    error = half / t_quantile(1 - TEST_LEVEL, count - 1)
    return t_probability(-room / error, count - 1)


def bootstrap(groups: Sequence[T], measure: Callable[[list[T]], Sequence[float]]) -> list[tuple[float, float]]:
    """The 95 % percentile interval of each number that `measure` takes of groups, which are drawn with replacement.

    The draws are the same at every call.
    """
    draw = chance.generator(0, "bootstrap", k=len(groups))
    places = draw.integers(0, len(groups), (RESAMPLES, len(groups)))
    found = np.array([measure([groups[place] for place in row]) for row in places.tolist()])
    tail = (1 - CONFIDENCE) / 2
    return [(float(low), float(high)) for low, high in np.quantile(found, (tail, 1 - tail), axis=0).T]
