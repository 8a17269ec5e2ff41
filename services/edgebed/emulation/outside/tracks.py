"""What was seen of nodes, set against what they tell: the counters of both, over the same time. Pure.

    looks, a second or so apart   |---x---|-------|-- ... --|---x---|     x: the node reads its own counters
                                  before  after             before  after

A node tells what it counted from one moment to another, and nobody else looks at just these moments. But its counters
only grow, so what they were is between the look before and the look after: a difference beyond that is a real one.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from edgebed.core.framing import MTU
from edgebed.core.recorded.measured import Seen
from edgebed.emulation.outside.effects import Effects
from edgebed.emulation.outside.looks import Lasting, Look, Quota, periods_s

LOOKS_MAX = 200
"""Looks that are kept: a node tells of itself every ten seconds, later on a busy machine."""
SLACK_S = 0.25
"""Seconds that may lie between a node's reading its counters and its writing down the time: a node with a cap of 0.02
rests for a tenth of a second after each two milliseconds."""
TOLD_S_MAX = 15.0
"""Seconds without a word of the node after which what is seen is journaled by itself."""
COUNTERS = {"cpu_s": "CPU time", "uplink_bytes": "bytes sent", "downlink_bytes": "bytes received"}


class Told(NamedTuple):
    """A node's own account."""

    incarnation: int
    t: float
    """When the node wrote it down, in seconds of the monotonic clock."""
    time_s: float
    """The time that it covers, until then."""


class Between(NamedTuple):
    """A counter at a moment that lies between two looks."""

    least: float
    most: float

    def grown_since(self, before: "Between") -> "Between":
        """The growth since an earlier moment."""
        return Between(max(0.0, self.least - before.most), max(0.0, self.most - before.least))


Counts = dict[str, Between]


@dataclass
class Track:
    """What was seen of one node so far."""

    name: str
    began_s: float = math.inf
    """When training began, in seconds of the monotonic clock."""
    ended_s: float = math.inf
    """When it was over; what is done at the end, as a final evaluation, is none of it."""
    incarnation: int = 0
    """The incarnation that the node's last account was of."""
    looks: deque[Look] = field(default_factory=lambda: deque(maxlen=LOOKS_MAX))
    """Looks at its present life."""
    base: tuple[int, Counts] | None = None
    """Incarnation, and the counters when the node began to count."""
    waiting: Told | None = None
    """The node's last account, as long as the look after it is still to come."""
    last: Look | None = None
    """The last whole look."""
    lowest: Quota | None = None
    """The lowest quota above that was ever seen."""
    above_s: float = 0.0
    lasting: Lasting = field(default_factory=Lasting)
    """What differed in the whole looks."""
    set_back: tuple[str, ...] = ()
    """Counters that were less than at a look before, in words."""
    mtu: int | None = None
    """The MTU at the far end of its link, as it was first."""
    whole: int = 0
    """Whole looks since training began."""
    stopped: int = 0
    """Whole looks that found the process stopped."""
    effects: Effects = field(default_factory=Effects)
    """What came of the node while it was frozen, or cut off."""
    journaled_s: float = 0.0
    """When something was journaled last."""
    journaled: tuple[str, ...] | None = None
    """Differences that have been journaled; None: nothing has."""

    def add(self, look: Look) -> None:
        """Take in a look."""
        before = self.looks[-1] if self.looks else look
        is_another = look.life != before.life
        fallen = [what for name, what in COUNTERS.items() if _is_less(getattr(look, name), getattr(before, name))]
        if fallen and not is_another:
            self.set_back += tuple(f"counters: its {what} was set back" for what in fallen)
        if fallen or is_another:
            self.looks.clear()
            self.waiting = self.base = None
        self.looks.append(look)
        self.effects.add(look)
        if look.is_whole and self.began_s <= look.since_s <= self.ended_s:
            self._judge(look)
            self.last = look

    def _judge(self, look: Look) -> None:
        self.whole += 1
        self.stopped += look.is_stopped
        self.mtu = self.mtu or look.mtu
        turned = f"link: its far end had an MTU of {look.mtu or 0:,} bytes, at first of {self.mtu or 0:,}"
        changed = [turned] if look.mtu not in (None, self.mtu) else []
        self.lasting.add((*look.differences, *changed, *self.set_back), look.since_s)
        above, before = look.above, self.last.above if self.last else None
        if above and before and above.cgroup == before.cgroup:
            self.above_s += periods_s(max(0, above.throttled_periods - before.throttled_periods))
        if above and (self.lowest is None or above.cpus < self.lowest.cpus):
            self.lowest = above

    def told(self, told: Told) -> None:
        """Note the node's own account."""
        self.waiting = told
        self.incarnation = told.incarnation

    def seen(self, now: float) -> Iterator[Seen]:
        """Yield what is to be journaled by `now`."""
        if self.waiting and (found := self._against(self.waiting)):
            self.waiting = None
            yield self._noted(found, now)
        if now >= max(self.journaled_s, self.began_s) + TOLD_S_MAX and self.last:
            yield self._noted(self._alone(now), now)

    def at_the_end(self, now: float) -> Iterator[Seen]:
        """Yield what is left to be journaled when nobody looks any more."""
        yield from self.seen(now)
        self.effects.close(min(now, self.ended_s))
        if self.last and (
            self.stopped or self.effects.counts or self.journaled != tuple(self.lasting.differences.values())
        ):
            yield self._noted(self._alone(now), now)

    def _noted(self, seen: Seen, now: float) -> Seen:
        self.journaled_s, self.journaled = now, seen.differences
        return seen

    def _alone(self, now: float) -> Seen:
        """What is seen, without an account of the node's own to set it against."""
        return self._record(self.incarnation, now - self.began_s, {})

    def _against(self, told: Told) -> Seen | None:
        """What was seen in the time of a node's account; None before the look after that."""
        until, begins_s = self._counts(told.t - SLACK_S, told.t), told.t - told.time_s
        if self.base is None or self.base[0] != told.incarnation:
            since = self._counts(begins_s - SLACK_S, begins_s + SLACK_S)
            self.base = None if since is None else (told.incarnation, since)
        if until is None or self.base is None or self.last is None:
            return None
        since = self.base[1]
        grown = {name: until[name].grown_since(since[name]) for name in until.keys() & since.keys()}
        meanwhile = (each for each in self.looks if begins_s + SLACK_S <= each.since_s <= told.t - SLACK_S)
        peaks = [each.memory_bytes for each in meanwhile if each.memory_bytes is not None]  # of this incarnation alone
        seen = self._record(told.incarnation, told.time_s, grown)
        return msgspec.structs.replace(seen, memory_bytes=max(peaks, default=None))

    def _counts(self, since_s: float, until_s: float) -> Counts | None:
        """The counters at some moment between two times; None where no look came after. They begin at 0."""
        before = next((each for each in reversed(self.looks) if each.until_s <= since_s), None)
        after = next((each for each in self.looks if each.since_s >= until_s), None)
        if after is None:
            return None
        least, most = ({name: getattr(each, name, None) for name in COUNTERS} for each in (before, after))
        return {name: Between(least[name] or 0, value) for name, value in most.items() if value is not None}

    def _record(self, incarnation: int, time_s: float, grown: Counts) -> Seen:
        look = self.last
        assert look is not None
        counted = {"above_s": round(self.above_s, 3)} if self.above_s else {}  # a default is not written
        counted |= self.effects.counts
        counted |= {"stopped": self.stopped, "looks": self.whole} if self.stopped else {}
        for name, between in grown.items():
            stem, _, unit = name.rpartition("_")
            digits = 6 if unit == "s" else None
            counted[name] = round((between.least + between.most) / 2, digits)
            counted[f"{stem}_error_{unit}"] = round((between.most - between.least) / 2, digits)
        return Seen(
            name=self.name,
            incarnation=incarnation,
            time_s=time_s,
            cpus_held=look.cpus_held,
            above=self.lowest.cgroup if self.lowest else "",
            cpus_above=self.lowest.cpus if self.lowest else None,
            memory_held_bytes=look.memory_held_bytes,
            mtu=None if look.mtu == MTU else look.mtu,
            differed=self.lasting.differed,
            differences=tuple(self.lasting.differences.values()),
            unread=look.unread,
            **counted,  # type: ignore[arg-type] # bytes are integers
        )


def _is_less(value: float | None, before: float | None) -> bool:
    return value is not None and before is not None and value < before
