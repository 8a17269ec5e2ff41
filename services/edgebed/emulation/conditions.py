"""What a link is at a moment: a pure function of its plan, what faults did to it, and the time since training began.

steps    conditions hold until the next change; after the last one they stay
trace    the changes are repeated after every period; the node's own offset says where in it training begins
faults   what is done to a link holds whatever its plan says, until it is undone; below it the plan is followed
"""

import math
from bisect import bisect_right
from functools import lru_cache

import msgspec

from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan, LinkValues, values_of


class LinkState(LinkValues, frozen=True, kw_only=True):
    """What a link is at a moment, cut or not."""

    cut: bool = False
    """Whether nothing passes; the rest is what the link is when healed."""
    apart: tuple[str, ...] = ()
    """Nodes from and to which nothing passes."""
    narrowed: tuple[tuple[str, int], ...] = ()
    """Nodes to and from which less passes than the links allow, with the bits a second of each direction."""


class LinkSchedule:
    """A link's conditions over time, in seconds since training began; before that, its first ones."""

    def __init__(self, link: LinkPlan) -> None:
        self.period_s = link.period_s
        self.offset_s = link.offset_s
        self.initial = LinkState(**values_of(link))
        self.times_s, self.conditions = _schedule(self.initial, link.changes)

    def at(self, time_s: float) -> LinkState:
        """Return the conditions at a time."""
        index = bisect_right(self.times_s, self._position_s(time_s)) - 1
        if index >= 0 or (self.period_s is not None and self.conditions):
            return self.conditions[index]  # before the first change of a period, the last one of the period before
        return self.initial

    def possible(self) -> tuple[LinkState, ...]:
        """Return all conditions that there ever are."""
        return (self.initial, *self.conditions)

    def next_change_s(self, time_s: float) -> float:
        """Return when, strictly after a time, the conditions change next; infinity if never."""
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
        """Return where in the list of changes a time is."""
        time_s = max(0.0, time_s)
        return time_s if self.period_s is None else (time_s + self.offset_s) % self.period_s


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """What faults have made of a link, whatever its plan says."""

    cut: bool = False
    apart: tuple[str, ...] = ()
    narrowed: tuple[tuple[str, int], ...] = ()
    change: LinkChange = LinkChange()
    """Changes that faults have made; whatever of them is None is as planned."""

    def after(self, injection: Injection) -> "Override":
        """Return the override after one more injection; one that does not concern links changes nothing."""
        if injection.peer and injection.action == "link":
            rates = {peer: rate for peer, rate in self.narrowed if peer != injection.peer}
            if injection.change and injection.change.uplink_bit_s:
                rates[injection.peer] = injection.change.uplink_bit_s
            return msgspec.structs.replace(self, narrowed=tuple(sorted(rates.items())))
        if injection.peer:
            others = set(self.apart) - {injection.peer}
            return msgspec.structs.replace(
                self, apart=tuple(sorted(others | ({injection.peer} if injection.action == "cut" else set())))
            )
        if injection.action in ("cut", "heal"):
            return msgspec.structs.replace(self, cut=injection.action == "cut")
        if injection.action != "link":
            return self
        change = LinkChange()
        if injection.change is not None:
            change = msgspec.structs.replace(self.change, **injection.change.given())
        return msgspec.structs.replace(self, change=change)

    def on(self, planned: LinkState) -> LinkState:
        """Return what a link is that is planned to be so."""
        return msgspec.structs.replace(
            changed(planned, self.change), cut=self.cut, apart=self.apart, narrowed=self.narrowed
        )


class EffectiveLink(LinkSchedule):
    """What is asked of a link over time: its timeline, with what faults did to it laid over that.

    It remembers when they did, so that it can be asked about the past.
    """

    def __init__(self, link: LinkPlan) -> None:
        super().__init__(link)
        self.injected_s: list[float] = []
        self.overrides = [Override()]
        """Overrides before the first injection, and since each injection."""

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note an injection to the link at a time, which is never earlier than that of the one before."""
        override = self.overrides[-1].after(injection)
        if override != self.overrides[-1]:
            self.injected_s.append(max([time_s, *self.injected_s[-1:]]))
            self.overrides.append(override)

    def take_back(self, before: Override) -> None:
        """Take back the last injection, which could not be done: `before`, the override until then, holds again."""
        if self.overrides[-1] != before:
            self.injected_s.pop()
            self.overrides.pop()

    def at(self, time_s: float) -> LinkState:
        """Return the conditions at a time."""
        planned, index = super().at(time_s), bisect_right(self.injected_s, time_s)
        return self.overrides[index].on(planned) if index else planned

    def possible(self) -> tuple[LinkState, ...]:
        """Return all conditions that there ever are if nothing more is done to the link."""
        planned, override = super().possible(), self.overrides[-1]
        return planned if override == Override() else tuple(override.on(each) for each in planned)

    def next_change_s(self, time_s: float) -> float:
        """Return when, strictly after a time, the conditions may change next; infinity if never, as far as is known."""
        index = bisect_right(self.injected_s, time_s)
        return min([super().next_change_s(time_s), *self.injected_s[index : index + 1]])


@lru_cache(maxsize=16)  # all nodes that play a trace share its thousands of rows
def _schedule(initial: LinkState, changes: tuple[LinkChange, ...]) -> tuple[tuple[float, ...], tuple[LinkState, ...]]:
    """Return when conditions change, and what they are from then on."""
    conditions = [initial]
    for change in changes:
        conditions.append(changed(conditions[-1], change))
    return tuple(change.at_s for change in changes), tuple(conditions[1:])


def changed(conditions: LinkState, change: LinkChange) -> LinkState:
    """Return the conditions after `change`."""
    return msgspec.structs.replace(conditions, **change.given())
