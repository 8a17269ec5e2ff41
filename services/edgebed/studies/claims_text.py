"""A paper's claims and measurements in words: values in the row's unit, intervals, sizes."""

import math
from collections.abc import Mapping

from edgebed.core.quantities import UNMEASURED, bytes_text, count_text, number_text, seconds_text
from edgebed.studies.papers.paper import AtLeast, AtMost, Claim, Near, Never, Sign, Unit
from edgebed.studies.statistics import ConfidenceInterval, detectable

FULL_SIZE = 1.0


def value_text(value: float, unit: Unit) -> str:
    """A value with its unit, e.g. 98.59 %, +0.23 points, 1.33 GB, 191 x."""
    match unit:
        case "%":
            return f"{value:.2f} %"
        case "points":
            return f"{value:+.2f} points"
        case "bytes":
            return bytes_text(value)
        case "updates":
            return count_text(round(value), "update")
        case "updates/s":
            return f"{number_text(value)} updates/s"
        case "messages":
            return f"{number_text(value)} messages"
        case "s":
            return seconds_text(value)
        case "x":
            return f"{number_text(value)} x"
        case "":
            return number_text(value)


def claim_text(claim: Claim | None, unit: Unit) -> str:
    """The paper's value of a row, in words."""
    match claim:
        case None:
            return UNMEASURED
        case Near():
            return value_text(claim.value, unit) if claim.published else UNMEASURED
        case AtLeast():
            return f"at least {value_text(claim.value, unit)}"
        case AtMost():
            return value_text(claim.published, unit)
        case Never():
            return "never"
        case Sign():
            side = "above 0" if claim.sign > 0 else "below 0"
            return side if claim.value is None else f"{value_text(claim.value, unit)} ({side})"


def criterion_text(claim: Claim | None, unit: Unit) -> str:
    """The criterion that would confirm a claim, in words."""
    match claim:
        case Near():
            low, high = claim.value - claim.tolerance, claim.value + claim.tolerance
            if unit == "%":
                low, high = max(low, 0.0), min(high, 100.0)
            return f"{value_text(low, unit).removesuffix(f' {unit}')} to {value_text(high, unit)}"
        case None:
            return UNMEASURED
        case Sign():
            within = f"; equal within {value_text(claim.margin, unit).removeprefix('+')}" if claim.margin else ""
            side = f"{'above' if claim.sign > 0 else 'below'} 0"
            if claim.sizes is None:
                return f"{side}{within}"
            low, high = claim.sizes
            return f"{_bare(low, unit)} to {value_text(high, unit)}; in direction {side}{within}"
        case AtLeast() | Never():
            return claim_text(claim, unit)
        case AtMost():
            return f"at most {value_text(claim.value, unit)}"


def measured_text(
    measured: ConfidenceInterval | None, values: Mapping[int, float | None], unit: Unit, *, of_seeds: bool = True
) -> str:
    """The mean over seeds with its interval, e.g. 98.61 % (98.42 to 98.80, 3 seeds); else the only value."""
    if not values:
        return UNMEASURED
    if not of_seeds:
        return UNMEASURED if measured is None else value_text(measured.mean, unit)
    seeds = count_text(len(values), "seed")
    if measured is None:
        return f"not reached ({seeds})"
    if measured.seeds < len(values):
        seeds = f"{measured.seeds} of {seeds}"
    if measured.low is None or measured.high is None:
        return f"{value_text(measured.mean, unit)} ({seeds})"
    return f"{value_text(measured.mean, unit)} ({_bare(measured.low, unit)} to {_bare(measured.high, unit)}, {seeds})"


def between_text(measured: ConfidenceInterval, unit: Unit) -> str:
    """Where a mean may lie, e.g. 98.42 to 98.80 %; no share is above all."""
    low, high = measured.ends
    return f"{_bare(low, unit)} to {value_text(min(high, 100.0) if unit == '%' else high, unit)}"


def _bare(value: float, unit: Unit) -> str:
    return value_text(value, unit).removesuffix(f" {unit}")


def detectable_text(measured: ConfidenceInterval | None, unit: Unit) -> str:
    """The difference from a claim that its test would find in eight of ten studies."""
    found = None if measured is None else detectable(measured)
    return UNMEASURED if found is None else value_text(found, "points" if unit == "%" else unit).removeprefix("+")


def size_text(updates: tuple[int, int], share: tuple[float, float]) -> str:
    """The size of a run, e.g. `50,000 updates (20 %)`; a share of 100 % is left out."""
    few, many = updates
    text = count_text(many, "update") if few == many else f"{few:,} to {many:,} updates"
    low, high = (share_text(each) for each in share)
    if share == (FULL_SIZE, FULL_SIZE):
        return text
    return f"{text} ({low})" if low == high else f"{text} ({low} to {high})"


def share_text(share: float) -> str:
    """A share of the paper's updates, e.g. 20 %, 0.5 %."""
    digits = 0 if share >= 0.1 else 1 - math.floor(math.log10(100 * share))
    return f"{100 * share:.{digits}f}".rstrip("0").rstrip(".") + " %" if digits else f"{100 * share:.0f} %"
