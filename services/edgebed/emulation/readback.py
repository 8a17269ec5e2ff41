"""What the kernel holds of a node's link, against what was asked: by the node itself, which has no right to change it.

Before it may talk, a node waits until the kernel holds its link; from then on it looks every second. The
controller reports what faults do to its link, which may be a moment before or after they do: so only what is found
twice counts.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from edgebed.core import records
from edgebed.core.errors import InfrastructureError
from edgebed.core.framing import MTU, burst_bytes
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import IMPAIRMENTS, Impairments, impairments_of, is_impaired
from edgebed.core.quantities import count_text, first_text
from edgebed.emulation.conditions import EffectiveLink, LinkSchedule, LinkState, Override
from edgebed.emulation.netlink import TICK_NS, LinkReader, Queue

POLL_S = 0.02
PATIENCE_S = 30.0  # whoever sets links may have hundreds to set
TOLERANCE_S = 1.0  # a change may come so much too early or too late before it counts as missing
FIRST_HELD_S = 5.0  # whoever holds a link may have to be started first, where nobody was to change it
APART_MAX, NAMED_MAX = 50, 3  # single others that a record, and a sentence, names
SELDOM_S = 10.0  # a link that changes all the time is journaled no more often, and neither is one that differs

Mechanism = Literal["none", "tc", "model"]
Delay = Literal["", "netem", "line"]
ByRates = Mapping[tuple[int | None, int | None], Sequence[LinkState]]
"""Conditions by (uplink, downlink), as the kernel holds these rates."""


class Between(NamedTuple):
    """What the kernel holds between a node and single others."""

    barred: int
    """Nodes that nothing reaches from here."""
    narrowed: Mapping[str, Queue | None]
    """What limits that which goes to single addresses."""


class LinkMeter:
    """Meter that journals what the kernel holds: at first, when that has changed, and when it is not what was asked."""

    def __init__(self, node: str, effective: EffectiveLink, reader: LinkReader, delay: Delay) -> None:
        """`node` has the link. `delay` is what makes latency and jitter; netem is read back like the rates."""
        self.node = node
        self.effective = effective
        self.changes_often = effective.period_s is not None
        self.is_suspect = False
        """Whether something differed at the last look."""
        self.differed = 0
        self.differences: dict[str, str] = {}
        self.reader = reader
        self.delay = delay
        self.is_delayed = any(map(is_impaired, effective.possible()))
        """Whether the link's plan has anything for `delay` to make."""
        self.last: records.Link | None = None
        self.last_s = -math.inf

    def wait_until_held(self, hear: Callable[[], None] = lambda: None) -> None:
        """Return when the kernel holds the link. Raises InfrastructureError where it does not within PATIENCE_S.

        `hear` is called before each look: it may note in the course what was done to the link in an earlier
        incarnation.
        """
        until_s = time.monotonic() + PATIENCE_S
        override: Override | None = None
        while True:
            hear()
            if override != self.effective.overrides[-1]:
                override = self.effective.overrides[-1]
                first = self.effective.at(0.0)
                allowed = by_rates(self.effective.possible())  # a restarted node finds a later one
            problem = self._compare(first, allowed).problem
            if not problem:
                return
            if time.monotonic() > until_s:
                raise InfrastructureError(f"the link was not limited within {PATIENCE_S:g} s: {problem}")
            time.sleep(POLL_S)

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note a fault done to a link, `time_s` after training began; the link may be the other end's."""
        if own := injection.at(self.node):
            self.effective.inject(time_s, own)

    def read(self, now: float, began_s: float | None) -> Iterator[records.Link]:
        """Yield a record if there is something to journal; times in seconds of the trial."""
        time_s = 0.0 if began_s is None else now - began_s
        now_asked, *others = around(self.effective, time_s)
        seen = self._compare(now_asked, by_rates(others))
        was_suspect, self.is_suspect = self.is_suspect, bool(seen.problem)
        if self.is_suspect and not was_suspect:
            return
        if seen.problem:
            self.differed += 1
            for text in seen.problem.split("; "):
                self.differences.setdefault(text.partition(":")[0], text)
        is_news = self.last is None or bool(seen.problem) != bool(self.last.problem)
        seldom_s = SELDOM_S if self.changes_often or seen.problem else 0.0
        if is_news or ((seen != self.last or seen.problem) and now >= self.last_s + seldom_s):
            self.last, self.last_s = seen, now
            yield msgspec.structs.replace(seen, differed=self.differed, differences=tuple(self.differences.values()))

    def _compare(self, asked: LinkState, others: ByRates) -> records.Link:
        """Return what is held, beside the one of `others` that it is, or else what is asked."""
        try:
            (up, down), mtu = self.reader.queues(), self.reader.mtu_now()
            between = self._between()
        except (OSError, ValueError) as error:
            return self._record(asked, None, None, f"link: the kernel cannot be asked: {error}")
        if mtu != self.reader.mtu:
            problem = f"MTU: the interface takes packets of {mtu:,} bytes, at first of {self.reader.mtu:,}"
            found = self._deviation(asked, up, down, between)
            return self._record(asked, up, down, "; ".join(filter(None, (found, problem))))
        rates = up.rate_bit_s if up else None, down.rate_bit_s if down else None
        for each in (asked, *others.get(rates, ())):
            if not self._deviation(each, up, down, between):
                return self._record(each, up, down, "")
        return self._record(asked, up, down, self._deviation(asked, up, down, between))

    def _between(self) -> "Between":
        """Return what is held between the node and single others, if anything ever was to be."""
        overrides = self.effective.overrides
        barred = len(self.reader.barred()) if any(each.apart for each in overrides) else 0
        return Between(barred, self.reader.narrowed() if any(each.narrowed for each in overrides) else {})

    def _deviation(self, asked: LinkState, up: Queue | None, down: Queue | None, between: "Between") -> str:
        found = [deviation(asked, up, down, netem=self.delay == "netem", mtu=self.reader.mtu)]
        if between.barred != len(asked.apart):
            wanted = first_text(asked.apart, NAMED_MAX) or "none"
            found.append(
                f"between two: the kernel bars the way to {count_text(between.barred, 'node')}, asked {wanted}"
            )
        held = sorted((each.rate_bit_s if each else None) or 0 for each in between.narrowed.values())
        if held != sorted(rate // 8 * 8 for _, rate in asked.narrowed):
            rates = first_text([_rate(each or None) for each in held], NAMED_MAX) or "none"
            wanted = first_text([f"{_rate(rate)} with {node}" for node, rate in asked.narrowed], NAMED_MAX) or "none"
            found.append(f"rate between two: the kernel holds {rates}, asked {wanted}")
        return "; ".join(filter(None, found))

    def _record(self, asked: LinkState, up: Queue | None, down: Queue | None, problem: str) -> records.Link:
        return records.Link(
            mechanism="tc",
            delay=self.delay if self.is_delayed or is_impaired(asked) else "",
            interface=self.reader.interface,
            uplink_asked=asked.uplink_bit_s,
            downlink_asked=asked.downlink_bit_s,
            uplink_held=up.rate_bit_s if up else None,
            downlink_held=down.rate_bit_s if down else None,
            uplink_burst=up.burst_bytes if up else None,
            downlink_burst=down.burst_bytes if down else None,
            **impairments_of(asked),
            cut=asked.cut,
            apart=asked.apart[:APART_MAX],
            narrowed=dict(asked.narrowed[:APART_MAX]),
            mtu=None if self.reader.mtu == MTU else self.reader.mtu,
            problem=problem,
        )


class StatedLink:
    """Meter that journals, for a link that no kernel holds, what is asked and so held: at first, and after faults."""

    def __init__(self, node: str, effective: EffectiveLink, mechanism: Mechanism, delay: Delay) -> None:
        self.node = node
        self.effective = effective
        self.mechanism = mechanism
        self.delay = delay
        self.told: Override | None = None

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note a fault done to a link, `time_s` after training began; the link may be the other end's."""
        if own := injection.at(self.node):
            self.effective.inject(time_s, own)

    def read(self, now: float, began_s: float | None) -> Iterator[records.Link]:
        """Yield a record if there is something to journal; times in seconds of the trial."""
        override = self.effective.overrides[-1]
        if override == self.told:
            return
        self.told = override
        asked = self.effective.at(0.0 if began_s is None else now - began_s)
        yield records.Link(
            mechanism=self.mechanism,
            delay=self.delay,
            uplink_asked=asked.uplink_bit_s,
            downlink_asked=asked.downlink_bit_s,
            uplink_held=None if asked.cut else asked.uplink_bit_s,
            downlink_held=None if asked.cut else asked.downlink_bit_s,
            **impairments_of(asked),
            cut=asked.cut,
            apart=asked.apart[:APART_MAX],
            narrowed=dict(asked.narrowed[:APART_MAX]),
        )


class ChangedLink:
    """Meter of a link of which nothing was asked: it says nothing until a fault, or the user, changes the link."""

    def __init__(self, node: str, make: Callable[[], LinkMeter | StatedLink], after_s: float = 0.0) -> None:
        """`make` gives the meter of the link when it is changed first, whose looks begin `after_s` later."""
        self.node = node
        self.make = make
        self.after_s = after_s
        self.meter: LinkMeter | StatedLink | None = None
        self.looks_s = math.inf
        """When the meter looks first, in seconds since training began."""

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note a fault done to a link, `time_s` after training began; the link may be the other end's."""
        if injection.at(self.node) is None:
            return
        self.looks_s = min(self.looks_s, time_s + self.after_s)
        self.meter = self.meter or self.make()
        self.meter.inject(time_s, injection)

    def read(self, now: float, began_s: float | None) -> Iterator[records.Link]:
        """Yield a record if there is something to journal; times in seconds of the trial."""
        if self.meter and now >= self.looks_s + (began_s or 0.0):
            yield from self.meter.read(now, began_s)


def around(schedule: LinkSchedule, time_s: float) -> list[LinkState]:
    """Return the conditions at a time, then all others that hold at most TOLERANCE_S before or after."""
    found = [schedule.at(time_s)]
    at_s = time_s - TOLERANCE_S
    while at_s <= time_s + TOLERANCE_S:
        found.append(schedule.at(at_s))
        at_s = schedule.next_change_s(at_s)
    return list(dict.fromkeys(found))


def by_rates(conditions: Iterable[LinkState]) -> ByRates:
    """Group conditions by their rates, so that few have to be compared, however many there are."""
    found: dict[tuple[int | None, int | None], list[LinkState]] = {}
    for each in dict.fromkeys(conditions):
        rates = (None, None) if each.cut else (_held_rate(each.uplink_bit_s), _held_rate(each.downlink_bit_s))
        found.setdefault(rates, []).append(each)
    return found


def deviation(asked: LinkState, up: Queue | None, down: Queue | None, *, netem: bool, mtu: int = MTU) -> str:
    """Say how what the kernel holds in each direction differs from what was asked; empty if it does not.

    `mtu` is that of the interface.
    """
    found = []
    for direction, rate_bit_s, held in (("uplink", asked.uplink_bit_s, up), ("downlink", asked.downlink_bit_s, down)):
        held = held or Queue()  # noqa: PLW2901 - nothing there: no limit
        wanted = asked if netem else LinkState()
        if asked.cut or held.cut:
            if not asked.cut:
                found.append(f"{direction}: the kernel drops everything, asked {_rate(rate_bit_s)}")
            elif not held.cut:
                found.append(f"{direction}: the kernel holds {_rate(held.rate_bit_s)}, asked that nothing passes")
        elif held.rate_bit_s != _held_rate(rate_bit_s):
            found.append(f"{direction}: the kernel holds {_rate(held.rate_bit_s)}, asked {_rate(rate_bit_s)}")
        elif rate_bit_s is not None and not _is_burst(held.burst_bytes, rate_bit_s, mtu):
            found.append(
                f"{direction}: the kernel lets {held.burst_bytes} bytes through at once, asked "
                f"{burst_bytes(rate_bit_s, mtu)}"
            )
        elif not all(
            math.isclose(value, getattr(wanted, field), rel_tol=1e-6, abs_tol=TICK_NS * 1e-9)
            for field, value in impairments_of(held).items()
        ):
            found.append(f"{direction}: the kernel's netem holds {_impaired(held)}, asked {_impaired(wanted)}")
    return "; ".join(found)


def _held_rate(asked_bit_s: int | None) -> int | None:
    """Return the rate that the kernel holds where this one is asked: it counts whole bytes a second."""
    return None if asked_bit_s is None else asked_bit_s // 8 * 8


def _is_burst(held_bytes: int | None, rate_bit_s: int, mtu: int) -> bool:
    """Whether a burst is the one that was asked, but for the kernel's unit of time."""
    tick_bytes = rate_bit_s / 8 * TICK_NS * 1e-9
    return held_bytes is not None and abs(held_bytes - burst_bytes(rate_bit_s, mtu)) <= 1 + tick_bytes


def _rate(rate_bit_s: int | None) -> str:
    """Write a rate with all its digits: two that differ look different."""
    if rate_bit_s is None:
        return "no limit"
    for factor, unit in ((10**9, "gbit"), (10**6, "mbit"), (10**3, "kbit")):
        if rate_bit_s >= factor:
            return f"{rate_bit_s / factor:.12g}{unit}"
    return f"{rate_bit_s}bit"


def _impaired(link: Impairments) -> str:
    """Write what happens to packets, all of it."""
    return ", ".join(f"{each.key} {each.seen_text(getattr(link, each.field))}" for each in IMPAIRMENTS)
