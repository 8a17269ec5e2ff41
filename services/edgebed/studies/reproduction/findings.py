"""Whether a measurement confirms what a paper claims: a claim and one value for each seed -> a finding; pure.

An interval over seeds decides, once all seeds are there that were stated beforehand. Where chance has no part, one
value decides. A value is known no finer than it was measured: `resolution` widens the interval. A paper's value
scatters as ours do: what lies outside of a claim's tolerance differs only if the mean of as many further runs as the
paper's is not to be expected at the paper's value either.

A run shorter than the paper's decides little of a measure that changes with the length of the training, however narrow
the interval: inside what would confirm the claim it is so *so far*, and so it is outside, unless longer training can
only lead further from the claim, or deeper into it, or the finding is the same on all that the measure may come to
(extrapolation.py).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from edgebed.studies.papers.paper import AtLeast, AtMost, Near, Never, Row, Sign
from edgebed.studies.reproduction.extrapolation import over_lengths
from edgebed.studies.statistics import CONFIDENCE, ConfidenceInterval, interval, predicted

Finding = Literal[
    "reproduced", "in direction", "differs", "equal", "not distinguishable", "so far inside", "so far outside",
    "consistent", "not consistent",
]  # fmt: skip
"""Findings on a row. A row that no publication stands behind, or that follows by arithmetic, is `consistent` or not."""
ComparedSize = Literal["smaller", "larger", "not told"]
"""The size of an effect whose direction is the claimed one, against the paper's."""
OF_ITSELF: Mapping[Finding, Finding] = {"reproduced": "consistent", "differs": "not consistent"}
HIGHEST = 100.0
"""The highest accuracy, in per cent."""
SIGN_HOLDS: tuple[Finding, ...] = ("reproduced", "in direction")
Between = tuple[float, float]
Compared = Near | Sign | AtLeast | AtMost
Found = tuple[Finding, ComparedSize | None]


class Judged(NamedTuple):
    """A row's interval and what was found."""

    measured: ConfidenceInterval | None
    """Mean and interval over the seeds that gave a number, at 95 %."""
    finding: Finding | None
    """None where nothing is claimed or decided."""
    size: ComparedSize | None = None
    """How the size of an effect compares that was found in direction alone."""
    to_full_size: ConfidenceInterval | None = None
    """What holds the mean at every length from the one that was run to the paper's; None: that is not known."""


def judge(
    row: Row,
    values: Mapping[int, float | None],
    *,
    seeds: int = 1,
    runs: int = 1,
    full_size: bool = True,
    resolution: float = 0.0,
    later: Sequence[float | None] = (),
    confidence: float = CONFIDENCE,
) -> Judged:
    """The interval over the seeds that gave a number, and the finding.

    `values` are by seed, in the unit of the claim; None and what is not finite is no number. `seeds` is how many were
    stated, `runs` how many the paper's value is the mean of. `full_size` says whether it was measured over as many
    updates as in the paper, `resolution` how far beside a value the true one may lie. `later` is what each value may
    come to with the paper's updates. An interval of this `confidence` decides.
    """
    numbers = [value for value in values.values() if value is not None and math.isfinite(value)]
    measured = interval(numbers) if numbers else None
    to_full_size = over_lengths(list(values.values()), later)
    if row.claim is None or not values or (row.needs_seeds and len(values) < max(seeds, 2)):
        return Judged(measured, None, None, to_full_size)
    is_short = not full_size and row.over_updates != "steady"
    size: ComparedSize | None = None
    if isinstance(row.claim, Never):
        found = _never(len(numbers), len(values), full_size=full_size)
    elif measured is None:
        found = "differs" if full_size else "so far outside"
    elif len(numbers) < len(values):
        found = "not distinguishable"  # the seeds that got there are no fair sample
    else:
        now = interval(numbers, confidence)
        found, size = _compare(row.claim, [now], resolution, runs)
        if is_short and not _growing_settles(row, found, measured.mean):
            known = [value for value in later if value is not None]
            then = interval(known, confidence) if len(known) == len(values) else None
            found, size = _over_lengths(row.claim, now, then, resolution, runs)
    return Judged(measured, found if row.counts else OF_ITSELF.get(found, found), size, to_full_size)


def _over_lengths(
    claim: Compared, now: ConfidenceInterval, then: ConfidenceInterval | None, resolution: float, runs: int
) -> Found:
    """What is found of a short run: final where it is the same now, in the end, and over all that lies between."""
    first = _compare(claim, [now], resolution, runs)
    if then is None:
        return _so_far(first[0]), None
    found = [first, _compare(claim, [then], resolution, runs), _compare(claim, [now, then], resolution, runs)]
    if len(set(found)) == 1:
        return first
    if all(finding in SIGN_HOLDS for finding, _ in found):
        return "in direction", "not told"
    return _so_far(first[0]), None


def _so_far(found: Finding) -> Finding:
    """The finding on a run shorter than the paper's, from the same measurement on a whole training."""
    short: Mapping[Finding, Finding] = {
        "reproduced": "so far inside",
        "in direction": "so far inside",
        "differs": "so far outside",
        "equal": "not distinguishable",
    }
    return short.get(found, found)


def _compare(claim: Compared, found: Sequence[ConfidenceInterval], resolution: float, runs: int) -> Found:
    """What intervals, and all that lies between them, say of a claim whose value is the mean of so many runs."""
    between = _hull(found, resolution)
    expected = _hull([predicted(each, runs) for each in found], resolution)
    match claim:
        case Near():
            near = _within(between, claim.value - claim.tolerance, claim.value + claim.tolerance)
            is_expected = claim.published and expected[0] <= claim.value <= expected[1]
            return ("not distinguishable" if near == "differs" and is_expected else near), None
        case AtLeast():
            return _within(between, claim.value, math.inf), None
        case AtMost():
            return _within(between, -math.inf, claim.value), None
        case Sign():
            return _signed(claim, between, expected)


def _signed(claim: Sign, between: Between, expected: Between) -> tuple[Finding, ComparedSize | None]:
    """The direction of an effect, and its size."""
    low, high = between
    if -claim.margin < low and high < claim.margin:
        return "equal", None
    if low <= 0 <= high:
        return "not distinguishable", None
    if low * claim.sign < 0:
        return "differs", None
    if claim.value is None or claim.sizes is None:
        return "reproduced", None
    least, most = claim.sizes
    if least <= low and high <= most:
        return "reproduced", None
    if expected[0] <= claim.value <= expected[1]:
        return "in direction", "not told"
    is_smaller = abs(low + high) / 2 < abs(claim.value)
    return "in direction", "smaller" if is_smaller else "larger"


def _hull(found: Sequence[ConfidenceInterval], by: float) -> Between:
    """What holds all the intervals, widened."""
    return min(each.ends[0] for each in found) - by, max(each.ends[1] for each in found) + by


def _within(between: Between, least: float, most: float) -> Finding:
    """Whether [low, high] lies within [least, most], outside of it, or neither."""
    low, high = between
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
