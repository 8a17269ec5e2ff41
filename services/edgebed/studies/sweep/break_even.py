"""Break-even rates: where two methods take as long, so that one stops being the better one; pure.

Between two measured rates a time is taken to be a straight line in the logarithms of both: exact where bytes alone take
the time, or computing alone.

Shapes: R rates.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple


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
