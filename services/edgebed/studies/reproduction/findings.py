"""Whether a measurement confirms what a paper claims: a claim and one value for each seed -> a finding; pure.

An interval over seeds decides. One seed alone decides nothing: its value is shown, without a finding. Where chance
has no part, a single value decides. A value is known no finer than it was measured: `resolution` widens the interval.

A run shorter than the paper's decides little of a measure that changes with the length of the training, however narrow
the interval: inside what would confirm the claim it is so *so far*, and so it is outside, unless longer training can
only lead further from the claim, or deeper into it, or the finding is the same on all that the measure may come to
(lengthening.py).
"""

import math
from collections.abc import Mapping
from typing import Literal

from edgebed.studies.papers.paper import AtLeast, Near, Never, Row, Sign
from edgebed.studies.statistics import ConfidenceInterval, interval

Finding = Literal[
    "reproduced", "differs", "equal", "not distinguishable", "so far inside", "so far outside",
    "consistent", "not consistent",
]  # fmt: skip
"""Findings on a row. A row that no publication stands behind, or that follows by arithmetic, is `consistent` or not."""
OF_ITSELF: Mapping[Finding, Finding] = {"reproduced": "consistent", "differs": "not consistent"}
SEEDS_MIN = 2
"""Number of seeds that an interval needs."""
HIGHEST = 100.0
"""The highest accuracy, in per cent."""


def judge(
    row: Row,
    values: Mapping[int, float | None],
    *,
    full_size: bool = True,
    resolution: float = 0.0,
    to_full_size: ConfidenceInterval | None = None,
) -> tuple[ConfidenceInterval | None, Finding | None]:
    """The interval over the seeds that gave a number, and the finding; None where nothing is claimed or decided.

    `values` are by seed, in the unit of the claim; None and what is not finite is no number. `full_size` says whether
    it was measured over as many updates as in the paper, `resolution` how far beside a value the true one may lie.
    `to_full_size` holds the mean at every length from the one that was run to the paper's.
    """
    numbers = [value for value in values.values() if value is not None and math.isfinite(value)]
    measured = interval(numbers) if numbers else None
    if row.claim is None or not values or (row.needs_seeds and len(values) < SEEDS_MIN):
        return measured, None
    is_short = not full_size and row.over_updates != "steady"
    if isinstance(row.claim, Never):
        found = _never(len(numbers), len(values), full_size=full_size)
    elif measured is None:
        found = "differs" if full_size else "so far outside"
    elif len(numbers) < len(values):
        found = "not distinguishable"  # the seeds that reached the accuracy are no fair sample
    else:
        found = _compare(row.claim, _widened(measured, resolution))
        if is_short and not _growing_settles(row, found, measured.mean):
            stays = to_full_size is not None and _compare(row.claim, _widened(to_full_size, resolution)) == found
            found = found if stays else so_far(found)
    return measured, found if row.counts else OF_ITSELF.get(found, found)


def can_decide(row: Row, value: float | None, later: float | None) -> bool:
    """Whether more seeds of runs shorter than the paper's may decide a row with a claim, by the value of one seed.

    `later` is what the value may come to with the paper's updates; None: that is not known. Where values between the
    two are found otherwise, the row stays open, however many seeds there are.
    """
    if row.claim is None or isinstance(row.claim, Never):
        return value is not None
    if row.over_updates == "steady" or value is None:
        return True
    found = _compare(row.claim, (value, value))
    if _growing_settles(row, found, value):
        return True
    return later is not None and _compare(row.claim, (min(value, later), max(value, later))) == found


def so_far(found: Finding) -> Finding:
    """The finding on a run shorter than the paper's, from the same measurement on a whole training."""
    short: Mapping[Finding, Finding] = {
        "reproduced": "so far inside",
        "differs": "so far outside",
        "equal": "not distinguishable",
    }
    return short.get(found, found)


def _widened(measured: ConfidenceInterval, by: float) -> tuple[float, float]:
    low, high = measured.ends
    return low - by, high + by


def _compare(claim: Near | Sign | AtLeast, between: tuple[float, float]) -> Finding:
    low, high = between
    if isinstance(claim, Near):
        return _within(low, high, claim.value - claim.tolerance, claim.value + claim.tolerance)
    if isinstance(claim, AtLeast):
        return _within(low, high, claim.value, math.inf)
    if low <= 0 <= high:
        return "equal" if -claim.margin < low and high < claim.margin else "not distinguishable"
    return "reproduced" if low * claim.sign > 0 else "differs"


def _within(low: float, high: float, least: float, most: float) -> Finding:
    """Whether [low, high] lies within [least, most], outside of it, or neither."""
    if least <= low and high <= most:
        return "reproduced"
    return "differs" if high < least or most < low else "not distinguishable"


def _growing_settles(row: Row, found: Finding, mean: float) -> bool:
    """Whether the measure grows and its finding is final.

    It is final above a band, above a least value, and inside a band that reaches up to 100 %.
    """
    if row.over_updates != "grows":
        return False
    if found == "differs":
        return isinstance(row.claim, Near) and mean > row.claim.value
    if found != "reproduced":
        return False
    return isinstance(row.claim, AtLeast) or (
        isinstance(row.claim, Near) and row.unit == "%" and row.claim.value + row.claim.tolerance >= HIGHEST
    )


def _never(reached: int, seeds: int, *, full_size: bool) -> Finding:
    if reached == seeds:
        return "differs"
    if reached:
        return "not distinguishable"
    return "reproduced" if full_size else "so far inside"
