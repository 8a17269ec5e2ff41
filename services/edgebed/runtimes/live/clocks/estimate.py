"""The offset between two clocks, with an error that it cannot exceed, from exchanges of times. Pure.

    own     asked  ............................  answered     offset: the other's clock less one's own
    other           -> heard  .........  told ->              told - answered <= offset <= heard - asked

Whatever the delays are, they are not negative: each exchange is a bound from below and one from above, and the offset
that is reported lies in the middle between them (Cristian 1989; the middle is NTP's). Between exchanges the offset
drifts along a line, whose slope bounds of two exchanges enclose (Duda, Harrus, Haddad, Bernard 1987, by hulls; here by
all pairs). Differs from a fit: nothing is averaged, so that a queue in one direction cannot pass for an offset.

The error holds for clocks whose rates differ by less than `DRIFT_MAX`, by an amount that stays within `WANDER` of a
constant while exchanges are kept. Exchanges that contradict each other tell of more than that, such as a host that was
suspended: the older ones are forgotten.

Times are in whole nanoseconds, exact whatever the clocks began with; a slope is in seconds a second.
"""

import math
from collections import deque
from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple

DRIFT_MAX = 500e-6
"""Difference of two clocks' rates: as much as Linux lets a clock be steered by, ten times what crystals differ by."""
WANDER = 1e-6
"""Change of that difference within minutes: what some degrees make of a crystal."""
KEPT_MAX = 30
"""Exchanges that are kept: those of five minutes."""
RESOLUTION_NS = 1


class Exchange(NamedTuple):
    """A question for the time and its answer, in nanoseconds of the two clocks."""

    asked_ns: int
    """One's own clock when the question was sent."""
    heard_ns: int
    """The other's clock when the question was read."""
    told_ns: int
    """The other's clock when the answer was sent."""
    answered_ns: int
    """One's own clock when the answer was read."""

    @property
    def round_trip_ns(self) -> int:
        """The time that both messages were on their way together."""
        return (self.answered_ns - self.asked_ns) - (self.told_ns - self.heard_ns)

    @property
    def least_ns(self) -> int:
        """The least that the offset was when the answer came."""
        return self.told_ns - self.answered_ns - RESOLUTION_NS

    @property
    def most_ns(self) -> int:
        """The most that the offset was when the question left."""
        return self.heard_ns - self.asked_ns + RESOLUTION_NS


class Estimate(NamedTuple):
    """The other's clock less one's own: a line over one's own time, and an error that grows along it."""

    at_ns: int
    """One's own clock where the line begins."""
    at_offset_ns: int
    drift: float
    """The line's slope."""
    at_error_ns: int
    growth: float
    """The slope of the error."""

    def offset_ns(self, own_ns: int) -> int:
        """The offset at some later time of one's own clock."""
        return self.at_offset_ns + round(self.drift * (own_ns - self.at_ns))

    def error_ns(self, own_ns: int) -> int:
        """The most that the offset can be wrong by at that time."""
        return self.at_error_ns + math.ceil(self.growth * max(0, own_ns - self.at_ns))


class Estimator:
    """Makes estimates of the exchanges that it is given, in the order in which they were made."""

    def __init__(self) -> None:
        self.kept: deque[Exchange] = deque(maxlen=KEPT_MAX)

    def add(self, exchanges: Iterable[Exchange]) -> Estimate:
        """Take in one or more exchanges made in a row, of which the one with the least round trip counts."""
        self.kept.append(min(exchanges, key=lambda exchange: exchange.round_trip_ns))
        while not (estimate := self._estimate()):
            self.kept.popleft()
        return estimate

    def _estimate(self) -> Estimate | None:
        """The estimate; None where the exchanges contradict each other, as one alone never does."""
        lowest, highest = -DRIFT_MAX, DRIFT_MAX
        for before, after in combinations(self.kept, 2):
            if after.asked_ns <= before.answered_ns:  # an answer came late
                continue
            highest = min(highest, (after.most_ns - before.least_ns) / (after.asked_ns - before.answered_ns) + WANDER)
            lowest = max(lowest, (after.least_ns - before.most_ns) / (after.answered_ns - before.asked_ns) - WANDER)
        at_ns = self.kept[-1].answered_ns
        most_ns = min(each.most_ns + math.ceil((highest + WANDER) * (at_ns - each.asked_ns)) for each in self.kept)
        least_ns = max(each.least_ns + math.floor((lowest - WANDER) * (at_ns - each.answered_ns)) for each in self.kept)
        if len(self.kept) > 1 and (lowest > highest or least_ns > most_ns):
            return None
        return Estimate(
            at_ns=at_ns,
            at_offset_ns=(least_ns + most_ns) // 2,
            drift=(lowest + highest) / 2,
            at_error_ns=(most_ns - least_ns) // 2 + RESOLUTION_NS,
            growth=(highest - lowest) / 2 + WANDER,
        )
