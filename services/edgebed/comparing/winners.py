"""Which method wins a point, by how much, and where two of them break even; pure.

Less is better: time, bytes or CPU seconds until an accuracy was reached.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec

from edgebed.comparing.break_even import BreakEven, break_even


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity over seeds, all of which got there."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        return cls(mean=sum(values) / len(values), low=min(values), high=max(values))


class Win(msgspec.Struct, frozen=True, kw_only=True):
    """Who needs least at a point."""

    method: str
    mean: float
    second: str | None
    """Who needs least of the others; None where no other gets there."""
    factor: float | None
    """How many times as much that one needs."""
    is_clear: bool
    """Whether every seed of the winner needs less than any of the second's; with one seed each, whether they differ."""


class Crossing(NamedTuple):
    """Where two methods break even, and in which part of the sweep."""

    where: str
    """Values of the other axes; empty where there are none."""
    at: BreakEven


def win(spreads: Mapping[str, Spread | None]) -> Win | None:
    """The method that needs least; None where none gets there. Of equals the one that is named first."""
    there = sorted((spread.mean, place, name) for place, (name, spread) in enumerate(spreads.items()) if spread)
    if not there:
        return None
    mean, _, name = there[0]
    if len(there) == 1:
        return Win(method=name, mean=mean, second=None, factor=None, is_clear=True)
    other, _, second = there[1]
    first_spread, second_spread = spreads[name], spreads[second]
    assert first_spread
    assert second_spread
    return Win(
        method=name,
        mean=mean,
        second=second,
        factor=other / mean if mean else None,
        is_clear=first_spread.high < second_spread.low,
    )


def crossings(
    rates_bit_s: Sequence[float], needed: Mapping[str, Mapping[str, Sequence[float | None]]]
) -> Iterator[Crossing]:
    """Where -> method -> (R,) what it needs at each rate; every pair that crosses, wherever it does."""
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


def _first(values: Mapping[str, float | None]) -> str | None:
    return min(
        (method for method in values if values[method] is not None), key=lambda m: values[m] or 0.0, default=None
    )
