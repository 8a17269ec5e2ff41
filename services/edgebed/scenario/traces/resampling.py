"""Recordings of any form to rows of a trace: the bytes that pass in each step, as a rate.

What a recording lets pass is counted exactly, and rates are whole bits a second: what a row gives too much or too
little by that is made good in the next one, and what the last one does by the first, since a trace is repeated. So is
what the least rate of a link lets pass in an outage, which a link cannot have: see `cut` for one.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

from edgebed.core import units
from edgebed.core.planned.link import RATE_MAX_BIT_S, RATE_MIN_BIT_S, LinkChange
from edgebed.scenario.traces.trace import SPACING_MIN_S, check_num_rows

US_A_SECOND = 1_000_000
PACKET_BITS = 1500 * 8
"""Bits that pass at one of mahimahi's opportunities."""


class Recording(Protocol):
    """One direction of a recording."""

    @property
    def period_us(self) -> int:
        """Time after which it is repeated."""

    def bits(self, bounds_us: Sequence[int]) -> list[Fraction]:
        """Return the bits that pass from each of these times to the next."""


@dataclass(frozen=True)
class Packets:
    """Opportunities at which a packet may pass, in whole milliseconds, as mahimahi has them; the last ends the period.

    An opportunity at 0 counts as at the end of the first millisecond, which is what its packet would have needed.
    """

    times_ms: tuple[int, ...]

    @property
    def period_us(self) -> int:
        """Time of the last opportunity."""
        return self.times_ms[-1] * 1000

    def bits(self, bounds_us: Sequence[int]) -> list[Fraction]:
        """Return the bits of the packets that pass; beyond the period it is repeated."""
        times_ms = [max(1, time_ms) for time_ms in self.times_ms]
        passed = []
        for bound_us in bounds_us:
            rounds, within_ms = divmod(bound_us // 1000, times_ms[-1])
            passed.append(rounds * len(times_ms) + bisect_right(times_ms, within_ms))
        return [Fraction((end - begin) * PACKET_BITS) for begin, end in pairwise(passed)]


@dataclass(frozen=True)
class Pieces:
    """Rates that hold from each time to the next, from 0 on; the last time is the end."""

    times_us: tuple[int, ...]
    rates_bit_s: tuple[Fraction, ...]
    """One less than there are times."""

    @property
    def period_us(self) -> int:
        """Time at which the last rate ends."""
        return self.times_us[-1]

    def bits(self, bounds_us: Sequence[int]) -> list[Fraction]:
        """Return the bits that pass; beyond the period nothing does."""
        passed = [Fraction(0)]
        for (begin_us, end_us), rate_bit_s in zip(pairwise(self.times_us), self.rates_bit_s, strict=True):
            passed.append(passed[-1] + rate_bit_s * (end_us - begin_us) / US_A_SECOND)
        until = [self._until(bound_us, passed) for bound_us in bounds_us]
        return [end - begin for begin, end in pairwise(until)]

    def _until(self, time_us: int, passed: Sequence[Fraction]) -> Fraction:
        k = bisect_right(self.times_us, time_us) - 1
        if k == len(self.rates_bit_s):
            return passed[-1]
        return passed[k] + self.rates_bit_s[k] * (time_us - self.times_us[k]) / US_A_SECOND


@dataclass(frozen=True)
class Resampled:
    """A recording in steps: rows of a trace."""

    bounds_us: tuple[int, ...]
    """Times of the rows, and the end."""
    up_bit_s: tuple[int, ...] | None
    down_bit_s: tuple[int, ...] | None

    @property
    def period_s(self) -> float:
        """Time after which the trace is repeated."""
        return self.bounds_us[-1] / US_A_SECOND

    def changes(self) -> tuple[LinkChange, ...]:
        """Return the rows as changes of a link."""
        rows = range(len(self.bounds_us) - 1)
        return tuple(
            LinkChange(
                at_s=self.bounds_us[k] / US_A_SECOND,
                uplink_bit_s=self.up_bit_s[k] if self.up_bit_s else None,
                downlink_bit_s=self.down_bit_s[k] if self.down_bit_s else None,
            )
            for k in rows
        )


def resample(up: Recording | None, down: Recording | None, step_s: float, what: str) -> Resampled:
    """Return the rows of a recording, which lasts as long as its longer direction; `Problems` where they are too many.

    A last step below the least spacing of rows is part of the one before it.
    """
    period_us = max(each.period_us for each in (up, down) if each)
    step_us = round(step_s * US_A_SECOND)
    period_us *= -(-round(SPACING_MIN_S * US_A_SECOND) // period_us)  # a fixed rate may be a file of one millisecond
    check_num_rows(f"{what} in steps of {units.format_duration(step_s)}", -(-period_us // step_us))
    bounds_us = [*range(0, period_us, step_us), period_us]
    if len(bounds_us) > 2 and period_us - bounds_us[-2] < SPACING_MIN_S * US_A_SECOND:
        del bounds_us[-2]
    rates = [tuple(_rates(each.bits(bounds_us), bounds_us)) if each else None for each in (up, down)]
    return Resampled(tuple(bounds_us), *rates)


def _rates(bits: Sequence[Fraction], bounds_us: Sequence[int]) -> list[int]:
    """Return whole rates that let so many bits pass from each time to the next."""
    ahead = Fraction(0)
    for _ in range(2):  # the second time with what the first one was ahead in the end
        rates = []
        for wanted, (begin_us, end_us) in zip(bits, pairwise(bounds_us), strict=True):
            span_s = Fraction(end_us - begin_us, US_A_SECOND)
            rates.append(min(RATE_MAX_BIT_S, max(RATE_MIN_BIT_S, round((wanted - ahead) / span_s))))
            ahead += rates[-1] * span_s - wanted
    return rates
