"""Break-even rates: where two methods take as long, so that one stops being the better one; pure.

Between two measured rates a time is taken to be a straight line in the logarithms of both: exact where bytes alone take
the time, or computing alone. A rate at which two break even is as uncertain as the seeds make it: they may do so at all
rates at which a t test over seeds does not tell their times apart.

Shapes: R rates, S seeds.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edgebed.studies.statistics import interval

STEPS = 50
"""Steps between two measured rates in which the ends of an interval are looked for."""


class BreakEven(NamedTuple):
    """A rate at which two methods take as long."""

    rate: float
    below: str
    """The method that is better at lower rates."""
    above: str


def break_even(
    rates: Sequence[float], first: tuple[str, Sequence[float | None]], second: tuple[str, Sequence[float | None]]
) -> list[BreakEven]:
    """Where two methods cross, from (R,) increasing rates and the time of each at them, None where it fails.

    Two that are equal at a measured rate break even there, if each is better on one side of it. Where only one gets
    there the rate is not known, as it may lie anywhere in between.
    """
    found = []
    (name, a), (other, b) = first, second
    points = [
        (math.log(rate), math.log(x) - math.log(y))
        for rate, x, y in zip(rates, a, b, strict=True)
        if x is not None and y is not None
    ]
    last: tuple[float, float] | None = None
    equal: float | None = None
    for place, lead in points:
        if lead == 0.0:
            equal = place if equal is None else equal
            continue
        if last is not None and lead * last[1] < 0.0:
            before, after = abs(last[1]), abs(lead)
            between = last[0] + (place - last[0]) * before / (before + after)
            rate = math.exp(between if equal is None else equal)
            found.append(BreakEven(rate, name if last[1] < 0.0 else other, other if last[1] < 0.0 else name))
        last, equal = (place, lead), None
    return found


def undecided(
    rates: Sequence[float], a: Sequence[Mapping[int, float]], b: Sequence[Mapping[int, float]], at: float
) -> tuple[float, float] | None:
    """The rates around `at` between which two methods may break even, by the time of each at (R,) rates, by seed.

    An end that is the lowest or the highest measured rate says that they may do so beyond it. None with fewer than two
    seeds that both have at every rate.
    """
    seeds = sorted(set.intersection(*(set(times) for times in (*a, *b))))
    if len(seeds) < 2:
        return None
    places = np.log(np.asarray(rates, dtype=float))
    leads = np.array([[math.log(x[seed] / y[seed]) for seed in seeds] for x, y in zip(a, b, strict=True)])  # (R, S)
    between = (np.linspace(*ends, STEPS) for ends in itertools.pairwise(places))
    grid = np.unique(np.concatenate([[math.log(at)], *between]))
    is_open = [
        not interval([float(np.interp(place, places, lead)) for lead in leads.T]).excludes(0.0) for place in grid
    ]
    low = high = int(np.searchsorted(grid, math.log(at)))
    while low > 0 and is_open[low - 1]:
        low -= 1
    while high < len(grid) - 1 and is_open[high + 1]:
        high += 1
    return math.exp(grid[low]), math.exp(grid[high])
