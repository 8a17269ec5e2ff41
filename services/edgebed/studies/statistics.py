"""Statistics over seeds: Student's t interval, of values, or of differences or ratios between trials of the same seeds.

With three to ten seeds a t interval covers what it promises; a bootstrap of so few values does not. One seed gives no
interval at all, and none is made up.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from statistics import mean as exact_mean
from statistics import stdev

import msgspec
import numpy as np

CONFIDENCE = 0.95
SCATTERS = 4000
POWER = 0.8
"""Probability with which a difference is found that is called detectable: in eight of ten studies."""
PRECISION = 1e-9
"""How exactly a detectable difference is found, as a share of the half-width."""


class ConfidenceInterval(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over seeds and where it may lie; `low` and `high` are None where there is only one seed."""

    mean: float
    low: float | None = None
    high: float | None = None
    seeds: int = 1

    @property
    def ends(self) -> tuple[float, float]:
        """Between which the mean may lie; with one seed, its value."""
        return (self.mean if self.low is None else self.low), (self.mean if self.high is None else self.high)

    def excludes(self, value: float) -> bool:
        """Whether the interval is known and `value` lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> ConfidenceInterval:
    """The mean of one value for each seed, with Student's t interval, if all are finite; ValueError without a value."""
    if not len(values):
        raise ValueError("no value to take the mean of")
    if not all(map(math.isfinite, values)):
        return ConfidenceInterval(mean=math.nan, seeds=len(values))
    mean = exact_mean([float(value) for value in values])  # equal values have exactly that mean, and no spread
    count = len(values)
    if count == 1:
        return ConfidenceInterval(mean=mean)
    half = t_quantile((1 + confidence) / 2, count - 1) * stdev(map(float, values)) / count**0.5
    return ConfidenceInterval(mean=mean, low=mean - half, high=mean + half, seeds=count)


def predicted(found: ConfidenceInterval, runs: int) -> ConfidenceInterval:
    """Where the mean of so many further runs is to be expected, which scatter as those behind `found` do."""
    wider = math.sqrt(1 + found.seeds / runs)
    low, high = found.ends
    return msgspec.structs.replace(
        found, low=found.mean - wider * (found.mean - low), high=found.mean + wider * (high - found.mean)
    )


def ratio_of_means(
    values: Sequence[float], others: Sequence[float], confidence: float = CONFIDENCE
) -> ConfidenceInterval | None:
    """The mean of `values` over that of `others`, which are paired, with Fieller's interval.

    Fieller 1954, Some problems in interval estimation. None with fewer than two pairs, or where the mean of `others`
    is not told from zero, for then the ratio may be anything.
    """
    count = len(values)
    if count < 2:
        return None
    x, y = np.asarray(values, dtype=float), np.asarray(others, dtype=float)
    (xx, xy), (_, yy) = np.cov(x, y) / count * t_quantile((1 + confidence) / 2, count - 1) ** 2
    a, b, c = y.mean() ** 2 - yy, x.mean() * y.mean() - xy, x.mean() ** 2 - xx
    if a <= 0:
        return None
    half = math.sqrt(max(0.0, b * b - a * c))
    return ConfidenceInterval(
        mean=float(x.mean() / y.mean()), low=float((b - half) / a), high=float((b + half) / a), seeds=count
    )


def t_quantile(probability: float, freedom: int) -> float:
    """The value that Student's t of so many degrees of freedom stays below with this probability."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(freedom, probability))


def t_probability(value: float, freedom: int) -> float:
    """The probability with which Student's t stays below a value."""
    from scipy.special import stdtr

    return float(stdtr(freedom, value))


def share_of(count: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Where the probability of what was seen so many times may lie, from 0 to 1.

    Clopper, Pearson 1934, The use of confidence or fiducial limits illustrated in the case of the binomial.
    """
    from scipy.special import betaincinv

    error = (1 - confidence) / 2
    low = float(betaincinv(count, of - count + 1, error)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - error)) if count < of else 1.0
    return low, high


def detectable(found: ConfidenceInterval) -> float | None:
    """The difference that a test with this many seeds, scattered as here, would find in eight of ten studies.

    The difference is from zero, or whatever value the interval is tested against, in its unit. None with one seed. The
    scatter is itself an estimate, with few seeds a rough one.
    """
    if found.low is None or found.high is None:
        return None
    return (found.high - found.low) / 2 * _detectable_halves(found.seeds)


def detectable_ratio(found: ConfidenceInterval) -> float | None:
    """The ratio, above 1, that a test would find in eight of ten studies; `found` is from `paired_ratio`."""
    if found.low is None or found.high is None or min(found.low, found.high) <= 0:
        return None
    return math.exp(math.log(found.high / found.low) / 2 * _detectable_halves(found.seeds))


@functools.cache
def _detectable_halves(seeds: int) -> float:
    """How many half-widths of the interval the mean must be away for a two-sided t test to see it so often."""
    from scipy.special import gammaincinv, ndtr

    freedom = seeds - 1
    critical = t_quantile((1 + CONFIDENCE) / 2, freedom)
    # the noncentral t by its definition, over scatters equally likely: scipy's own is NaN for some of these
    scatters = gammaincinv(freedom / 2, (np.arange(SCATTERS) + 0.5) / SCATTERS) * 2 / freedom
    edges = critical * np.sqrt(scatters)
    low, high = 0.0, 10 * critical
    while high - low > PRECISION * critical:
        away = (low + high) / 2
        is_enough = (ndtr(away - edges) + ndtr(-edges - away)).mean() >= POWER
        low, high = (low, away) if is_enough else (away, high)
    return high / critical


def paired(
    values: Mapping[int, float], baseline: Mapping[int, float], confidence: float = CONFIDENCE
) -> ConfidenceInterval | None:
    """The interval of `values` minus `baseline`, both by seed, over the seeds that both have; None if there is none."""
    seeds = sorted(values.keys() & baseline.keys())
    return interval([values[seed] - baseline[seed] for seed in seeds], confidence) if seeds else None


def paired_ratio(
    values: Mapping[int, float], baseline: Mapping[int, float], confidence: float = CONFIDENCE
) -> ConfidenceInterval | None:
    """The geometric mean of `values` over `baseline`, by seed, with the interval of its logarithm.

    So twice and half are equally far from 1, and which of the two is the baseline makes no difference. None without a
    seed that both have, or where one of the values compared is not above 0.
    """
    seeds = values.keys() & baseline.keys()
    if any(min(values[seed], baseline[seed]) <= 0 for seed in seeds):
        return None
    logarithms, others = ({seed: math.log(each[seed]) for seed in seeds} for each in (values, baseline))
    found = paired(logarithms, others, confidence)
    if found is None:
        return None
    low, high = (None if end is None else math.exp(end) for end in (found.low, found.high))
    return ConfidenceInterval(mean=math.exp(found.mean), low=low, high=high, seeds=found.seeds)
