"""The share of a link's rate in use at its busiest, over a few seconds at a time; pure."""

import heapq
from typing import Literal

from edgebed.core.framing import burst_bytes
from edgebed.emulation.conditions import LinkSchedule

WINDOW_S = 2.0
"""Length of a window in seconds: over less, a queue that empties says more about itself than about a rate."""
WINDOWS_MIN = 3
"""Number of windows that must reach a value: then it is no chance."""


class Busiest:
    """The rate that at least WINDOWS_MIN windows of one direction reached; None before there are so many."""

    def __init__(self, schedule: LinkSchedule, direction: Literal["uplink", "downlink"]) -> None:
        self.schedule = schedule
        self.name = f"{direction}_bit_s"
        self._rates_bit_s: list[float] = []
        self._shares: list[float] = []

    def add(self, since_s: float, until_s: float, num_bytes: int) -> None:
        """Add bytes that passed between two times, in seconds since training began."""
        if until_s <= since_s:
            return
        _keep(self._rates_bit_s, 8 * num_bytes / (until_s - since_s))
        may_carry_bits = self._may_carry_bits(since_s, until_s)
        if may_carry_bits:
            _keep(self._shares, 8 * num_bytes / may_carry_bits)

    @property
    def bit_s(self) -> float | None:
        """The busiest rate, in bit/s."""
        rate_bit_s = _least(self._rates_bit_s)
        return None if rate_bit_s is None else round(rate_bit_s)

    @property
    def share(self) -> float | None:
        """The busiest window's bytes as a share of what the link may carry in it, where it had a limit all the time."""
        return _least(self._shares)

    def _may_carry_bits(self, since_s: float, until_s: float) -> float | None:
        """Bits that a link as asked carries at most: at its rate, and one burst; None: without a limit at some time."""
        bits = 8.0 * burst_bytes(getattr(self.schedule.at(since_s), self.name) or 0)
        while since_s < until_s:
            rate_bit_s: int | None = getattr(self.schedule.at(since_s), self.name)
            if rate_bit_s is None:
                return None
            change_s = min(until_s, self.schedule.next_change_s(since_s))
            bits += (change_s - since_s) * rate_bit_s
            since_s = change_s
        return bits


def _keep(highest: list[float], value: float) -> None:
    heapq.heappush(highest, value)
    if len(highest) > WINDOWS_MIN:
        heapq.heappop(highest)


def _least(highest: list[float]) -> float | None:
    return round(highest[0], 4) if len(highest) == WINDOWS_MIN else None
