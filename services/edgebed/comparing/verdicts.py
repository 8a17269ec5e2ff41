"""Whether a measurement confirms what a paper claims: a claim and one value for each seed -> a verdict; pure.

An interval over seeds decides where there is one, so that a verdict is more than luck; one seed can only say where its
value is. Where no seed gives a number (an accuracy that was never reached), a run of the paper's size contradicts a
number; a smaller one may just have ended too early, and says nothing. So may a smaller run whose accuracy is too low.
"""

import math
from collections.abc import Mapping
from typing import Literal

from edgebed.comparing.statistics import Interval, interval
from edgebed.papers.paper import AtLeast, Claim, Near, Never, Sign

Verdict = Literal["reproduced", "not distinguishable", "differs"]


def judge(
    claim: Claim | None, values: Mapping[int, float | None], *, full_size: bool = True, grows: bool = False
) -> tuple[Interval | None, Verdict | None]:
    """The interval over the seeds that gave a number, and the verdict; None where nothing is claimed or measured.

    `values` are by seed, in the unit of the claim; None and what is not finite is no number. `full_size` says whether
    it was measured over as many updates as in the paper, `grows` whether it is the higher the more there are.
    """
    numbers = [value for value in values.values() if value is not None and math.isfinite(value)]
    measured = interval(numbers) if numbers else None
    if claim is None or not values:
        return measured, None
    if isinstance(claim, Never):
        return measured, _never(len(numbers), len(values), full_size=full_size)
    if measured is None:
        return None, "differs" if full_size else "not distinguishable"
    if len(numbers) < len(values):
        return measured, "not distinguishable"  # the seeds that reached it are no fair sample
    verdict = _compare(claim, measured)
    if verdict == "differs" and grows and not full_size and _is_below(claim, measured):
        return measured, "not distinguishable"
    return measured, verdict


def _compare(claim: Near | Sign | AtLeast, measured: Interval) -> Verdict:
    low, high = ends(measured)
    if isinstance(claim, Near):
        return _within(low, high, claim.value - claim.tolerance, claim.value + claim.tolerance)
    if isinstance(claim, AtLeast):
        return _within(low, high, claim.value, math.inf)
    if low <= 0 <= high or (measured.low is None and abs(measured.mean) < claim.one_seed):
        return "not distinguishable"
    return "reproduced" if measured.mean * claim.sign > 0 else "differs"


def _within(low: float, high: float, least: float, most: float) -> Verdict:
    """Whether [low, high] lies within [least, most], outside of it, or neither."""
    if least <= low and high <= most:
        return "reproduced"
    return "differs" if high < least or most < low else "not distinguishable"


def _is_below(claim: Near | Sign | AtLeast, measured: Interval) -> bool:
    """Whether a value is lower than claimed; a sign claims no value."""
    return not isinstance(claim, Sign) and measured.mean < claim.value


def _never(reached: int, seeds: int, *, full_size: bool) -> Verdict:
    if reached == seeds:
        return "differs"
    return "reproduced" if reached == 0 and full_size else "not distinguishable"


def ends(measured: Interval) -> tuple[float, float]:
    """Where the mean may lie; of one seed, where it is."""
    low = measured.mean if measured.low is None else measured.low
    high = measured.mean if measured.high is None else measured.high
    return low, high
