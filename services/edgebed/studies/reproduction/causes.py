"""How much of the difference between what was found and what a paper claims is due to one thing that was switched.

    share = (what it is with the switch - what it is without) / (what the paper has - what it is without)

of each seed, as a ratio of means over the seeds that both were run with, with Fieller's interval; of logarithms where
the unit is one of ratios. A cause counts where less than half of the difference is left with it, on either side: where
this interval lies above one half and below one and a half, in the runs that there are and, where those are shorter than
the paper's, by what they may come to in a training as long as the paper's (extrapolation.py). A claim without a value,
such as *never*, is accounted for by a switch with which it is reproduced.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from edgebed.studies.papers.paper import AtLeast, AtMost, Cause, Claim, Near, Sign, Unit
from edgebed.studies.reproduction.findings import Finding
from edgebed.studies.statistics import ConfidenceInterval, ratio_of_means

HALF = 0.5
Values = Mapping[int, float | None]
"""Values by seed; that of a row without cells is seed 1's."""
RATIOS: tuple[Unit, ...] = ("bytes", "updates", "updates/s", "messages", "x", "s")
"""Units of which half and twice are equally far."""
MET: tuple[Finding | None, ...] = ("reproduced", "in direction", "consistent")


class CauseResult(msgspec.Struct, frozen=True, kw_only=True):
    """A cause and how much of a difference it accounts for."""

    text: str
    row: str
    """The row in which the one thing is switched; empty: nobody tried."""
    share: ConfidenceInterval | None = None
    """The share of the difference, 1 for all of it; None where it is not known."""
    why_not: str = ""
    """Why it does not count, in a few words; empty: it does."""

    @property
    def counts(self) -> bool:
        """Whether most of the difference was shown to be due to it."""
        return not self.why_not


class Found(NamedTuple):
    """What was measured of a row."""

    values: Values
    later: Sequence[float | None]
    """What each value may come to with the paper's updates."""
    finding: Finding | None
    needs_seeds: bool
    is_short: bool
    """Whether it was run shorter than the paper's, and changes with its length."""


def caused(cause: Cause, claim: Claim, unit: Unit, found: Found, switched: Found | None) -> CauseResult:
    """How much of the difference between `found` and the claim the cause accounts for; `switched` is its row's."""
    if switched is None or not switched.values:
        return CauseResult(text=cause.text, row=cause.row, why_not="it was not tried")
    aim = _aim(claim)
    share = None if aim is None else _share(aim, unit, found.values, switched.values)
    return CauseResult(
        text=cause.text, row=cause.row, share=share, why_not=_why_not(cause, aim, unit, share, found, switched)
    )


def _why_not(
    cause: Cause, aim: float | None, unit: Unit, share: ConfidenceInterval | None, found: Found, switched: Found
) -> str:
    if cause.against:
        return f"it contradicts the paper's words: {cause.against}"
    if aim is None:
        return "" if switched.finding in MET else "by its row the claim is not met"
    if share is None:
        return "no share can be told from these seeds"
    if share.low is None and (found.needs_seeds or switched.needs_seeds):
        return "too few seeds have both"
    if share.ends[0] <= HALF:
        return "its share may be half of the difference or less"
    if share.ends[1] >= 1 + HALF:
        return "with it the difference may be half as large on the other side, or larger"
    if not (found.is_short or switched.is_short):
        return ""
    own, other = _at_full_size(found), _at_full_size(switched)
    lengthened = None if own is None or other is None else _share(aim, unit, own, other)
    if lengthened is None or not HALF < lengthened.ends[0] <= lengthened.ends[1] < 1 + HALF:
        return "the runs are too short to tell what it is in the end"
    return ""


def _aim(claim: Claim) -> float | None:
    """The paper's value, where it has one."""
    match claim:
        case AtMost():
            return claim.published
        case Near() | Sign() | AtLeast():
            return claim.value
        case _:
            return None


def _at_full_size(found: Found) -> Values | None:
    """What the values may come to with the paper's updates, by seed; None where that is not known of one."""
    if not found.is_short:
        return found.values
    later = dict(zip(found.values, found.later, strict=False))
    return None if len(later) < len(found.values) or None in later.values() else later


def _share(aim: float, unit: Unit, found: Values, switched: Values) -> ConfidenceInterval | None:
    """The share of the way to the aim that the switch makes, over the seeds that both have; None: it is not known."""
    pairs = [
        (own, other)
        for seed, own in found.items()
        if (other := switched.get(seed)) is not None and own is not None and math.isfinite(own + other)
    ]
    if not pairs:
        return None
    if unit in RATIOS:
        if min(aim, *(value for pair in pairs for value in pair)) <= 0:
            return None
        aim, pairs = math.log(aim), [(math.log(own), math.log(other)) for own, other in pairs]
    made, whole = [other - own for own, other in pairs], [aim - own for own, _ in pairs]
    if len(pairs) == 1:
        return ConfidenceInterval(mean=made[0] / whole[0]) if whole[0] else None
    return ratio_of_means(made, whole)
