"""Which method wins a point, by how much, and where two of them break even; pure.

Less is better: time, bytes or CPU seconds until a level was reached. Two methods are compared by the ratios of what
they need with the same seed: by their geometric mean and its interval, as in the tables of a comparison.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean, geometric_mean
from typing import NamedTuple

import msgspec

from edgebed.studies.statistics import detectable_ratio, paired_ratio
from edgebed.studies.sweep.break_even import BreakEven, break_even


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity over seeds, all of which reached the level."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of at least one value."""
        return cls(mean=sum(values) / len(values), low=min(values), high=max(values))


class Win(msgspec.Struct, frozen=True, kw_only=True):
    """The method that needs least at a point."""

    method: str
    mean: float
    second: str | None
    """The method that needs least of the others; None where no other reaches the level."""
    factor: float | None
    """How many times as much as the first the second needs, in the geometric mean over pairs of the same seed."""
    between: tuple[float, float] | None = None
    """Interval of that factor at 95 %, over seeds; None with one seed, and where it is alone."""
    is_decided: bool | None
    """Whether such an interval lies above 1 for each of the others; None as for `between`."""
    detectable: float | None
    """Factor between the two that would be found in eight of ten studies; None as for `between`."""
    is_coarse: bool
    """Whether the factor is smaller than what lies between two evaluations of either."""


class Crossing(NamedTuple):
    """Where two methods break even, and in which part of the sweep."""

    where: str
    """Values of the other axes; empty where there are none."""
    at: BreakEven


def win(needed: Mapping[str, Mapping[int, float]], spacing: Mapping[str, float]) -> Win | None:
    """The method that needs least, of equals the one that is named first; None where none reaches the level.

    `needed` is what each needs by seed, empty where it does not reach the level with all of them; `spacing` the
    share of that since the previous evaluation.
    """
    ranked = sorted((name for name, each in needed.items() if each), key=lambda name: _mean(needed[name]))
    if not ranked:
        return None
    name, *others = ranked
    mean = fmean(needed[name].values())
    if not others:
        return Win(method=name, mean=mean, second=None, factor=None, is_decided=None, detectable=None, is_coarse=False)
    second = others[0]
    ratio = paired_ratio(needed[second], needed[name])
    factor = ratio.mean if ratio else fmean(needed[second].values()) / mean if mean else None
    return Win(
        method=name,
        mean=mean,
        second=second,
        factor=factor,
        between=None if ratio is None or ratio.low is None or ratio.high is None else (ratio.low, ratio.high),
        is_decided=_is_decided(needed, name, others),
        detectable=None if ratio is None else detectable_ratio(ratio),
        is_coarse=factor is not None and factor - 1.0 < max(spacing.get(name, 0.0), spacing.get(second, 0.0)),
    )


def _mean(values: Mapping[int, float]) -> float:
    """The mean by which methods are ranked: geometric, as their ratios are, where all values are above 0."""
    return geometric_mean(values.values()) if min(values.values()) > 0.0 else fmean(values.values())


def _is_decided(needed: Mapping[str, Mapping[int, float]], name: str, others: Iterable[str]) -> bool | None:
    """Whether one needs less than each of the others; None where for some that is not known."""
    ratios = [paired_ratio(needed[other], needed[name]) for other in others]
    if any(ratio is None or ratio.low is None for ratio in ratios):
        return None
    return all(ratio is not None and ratio.mean > 1.0 and ratio.excludes(1.0) for ratio in ratios)


def crossings(
    rates_bit_s: Sequence[float], needed: Mapping[str, Mapping[str, Sequence[float | None]]]
) -> Iterator[Crossing]:
    """Where every pair of methods crosses; `needed`: by place and method, (R,) what it needs at each rate."""
    for where, by_method in needed.items():
        for first, second in combinations(by_method, 2):
            for at in break_even(rates_bit_s, (first, by_method[first]), (second, by_method[second])):
                yield Crossing(where, at)


def leads(at: BreakEven, rates_bit_s: Sequence[float], needed: Mapping[str, Sequence[float | None]]) -> bool:
    """Whether the two are first at the rates that were run on either side of where they break even."""
    firsts = [_first({method: values[k] for method, values in needed.items()}) for k in range(len(rates_bit_s))]
    below = [first for rate, first in zip(rates_bit_s, firsts, strict=True) if rate < at.rate]
    above = [first for rate, first in zip(rates_bit_s, firsts, strict=True) if rate > at.rate]
    return bool(below and above) and (below[-1], above[0]) == (at.below, at.above)


def is_coarse(
    at: BreakEven,
    rates_bit_s: Sequence[float],
    needed: Mapping[str, Sequence[float | None]],
    spacing: Mapping[str, Sequence[float]],
) -> bool:
    """Whether, at a rate next to where they break even, the two are closer than two evaluations of either.

    `spacing`: by method, (R,) the share of what it needs that passed since the previous evaluation.
    """
    pairs = [
        (rate, max(x, y) / min(x, y) - 1.0 < max(spacing[at.below][k], spacing[at.above][k]))
        for k, rate in enumerate(rates_bit_s)
        if (x := needed[at.below][k]) and (y := needed[at.above][k])
    ]
    below = [is_close for rate, is_close in pairs if rate <= at.rate]
    above = [is_close for rate, is_close in pairs if rate >= at.rate]
    return any((*below[-1:], *above[:1]))


def _first(values: Mapping[str, float | None]) -> str | None:
    return min(
        (method for method in values if values[method] is not None), key=lambda m: values[m] or 0.0, default=None
    )
