"""What a link is at a moment: a pure function of its plan and the time since training began.

steps    conditions hold until the next change; after the last one they stay
trace    the changes begin anew after every period; the node's own offset says where in it training begins
"""

import math
from bisect import bisect_right
from functools import lru_cache

import msgspec

from edgebed.scenario.plan import Link, LinkChange


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What a link is at a moment; None: no limit."""

    uplink_bit_s: int | None = None
    downlink_bit_s: int | None = None
    latency_s: float = 0.0
    """One way, in each direction."""
    jitter_s: float = 0.0
    loss: float = 0.0


class Timeline:
    """A link's conditions over time, in seconds since training began; before that, those that it begins with."""

    def __init__(self, link: Link) -> None:
        self.period_s = link.period_s
        self.offset_s = link.offset_s
        self.initial = Conditions(
            uplink_bit_s=link.uplink_bit_s,
            downlink_bit_s=link.downlink_bit_s,
            latency_s=link.latency_s,
            jitter_s=link.jitter_s,
            loss=link.loss,
        )
        self.times_s, self.conditions = _course(self.initial, link.changes)

    def at(self, time_s: float) -> Conditions:
        """The conditions at a time."""
        index = bisect_right(self.times_s, self._position_s(time_s)) - 1
        if index >= 0 or (self.period_s is not None and self.conditions):
            return self.conditions[index]  # before the first change of a period, the last one of the period before
        return self.initial

    def next_change_s(self, time_s: float) -> float:
        """When, strictly after a time, the conditions change next; infinity if never."""
        if not self.times_s:
            return math.inf
        position_s = self._position_s(time_s)
        index = bisect_right(self.times_s, position_s)
        if self.period_s is None:
            return self.times_s[index] if index < len(self.times_s) else math.inf
        if index < len(self.times_s):
            wait_s = self.times_s[index] - position_s
        else:
            wait_s = self.period_s + self.times_s[0] - position_s
        now_s = max(0.0, time_s)
        return max(now_s + wait_s, math.nextafter(now_s, math.inf))

    def _position_s(self, time_s: float) -> float:
        """Where in the list of changes a time is."""
        time_s = max(0.0, time_s)
        return time_s if self.period_s is None else (time_s + self.offset_s) % self.period_s


@lru_cache(maxsize=16)  # all nodes that play a trace share its thousands of rows
def _course(initial: Conditions, changes: tuple[LinkChange, ...]) -> tuple[tuple[float, ...], tuple[Conditions, ...]]:
    """When conditions change, and what they are from then on."""
    conditions = [initial]
    for change in changes:
        conditions.append(changed(conditions[-1], change))
    return tuple(change.at_s for change in changes), tuple(conditions[1:])


def changed(conditions: Conditions, change: LinkChange) -> Conditions:
    """The conditions after `change`."""
    given = {name: value for name in Conditions.__struct_fields__ if (value := getattr(change, name)) is not None}
    return msgspec.structs.replace(conditions, **given)
