"""Statistics over seeds: Student's t interval, of values, or of differences or ratios between trials of the same seeds.

With three to ten seeds a t interval covers what it promises; a bootstrap of so few values does not. One seed gives no
interval at all, and none is made up.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import mean as exact_mean
from statistics import stdev

import msgspec

CONFIDENCE = 0.95


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over seeds and where it may lie; `low` and `high` are None where there is only one seed."""

    mean: float
    low: float | None = None
    high: float | None = None
    seeds: int = 1

    def excludes(self, value: float) -> bool:
        """Whether the interval is known and `value` lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The mean of one value for each seed, with Student's t interval; ValueError without a value."""
    if not len(values):
        raise ValueError("no value to take the mean of")
    mean = exact_mean([float(value) for value in values])  # equal values have exactly that mean, and no spread
    count = len(values)
    if count == 1:
        return Interval(mean=mean)
    from scipy import stats  # takes a second or two to import

    half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * stdev(map(float, values)) / count**0.5
    return Interval(mean=mean, low=mean - half, high=mean + half, seeds=count)


def paired(
    values: Mapping[int, float], baseline: Mapping[int, float], confidence: float = CONFIDENCE
) -> Interval | None:
    """The interval of `values` minus `baseline`, both by seed, over the seeds that both have; None if there is none."""
    seeds = sorted(values.keys() & baseline.keys())
    return interval([values[seed] - baseline[seed] for seed in seeds], confidence) if seeds else None


def paired_ratio(
    values: Mapping[int, float], baseline: Mapping[int, float], confidence: float = CONFIDENCE
) -> Interval | None:
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
    return Interval(mean=math.exp(found.mean), low=low, high=high, seeds=found.seeds)
