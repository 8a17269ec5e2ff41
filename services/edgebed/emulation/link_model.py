"""A node's passage to the data network where no kernel holds it: rates, latency and jitter as a pure model.

    sender    heart -> latency -> uplink -> first byte … last byte        leave()
    receiver  first byte … last byte -> downlink -> latency -> heart      arrive()

The simulation asks it in virtual time, the live shell in real time; the answers are the same. Each direction is a token
bucket like the kernel's tbf, first come, first served, and bytes pass the receiver's while they still leave the
sender's: a message takes as long as the slower of the two needs, not the sum. Acknowledgements of what passes one way
take their share of the other, and keep the message waiting where that is very slow.

What it simplifies: rates are exact from the first byte on, as if TCP had neither slow start nor a window to wait for;
messages that share a direction pass one after another, where a kernel lets their packets take turns; nothing is lost.

Times are seconds of the trial, sizes are payload of whole messages; a rate is what the wire carries (see framing.py).
"""

import math
from collections import deque
from collections.abc import Callable

from edgebed.core import chance
from edgebed.core.framing import ACK_BYTES_A_SEGMENT, burst_bytes, num_segments, wire_bytes
from edgebed.core.plan import Injection, NodePlan
from edgebed.emulation.conditions import EffectiveLink, LinkState
from edgebed.emulation.readback import Delay, Mechanism

GAPS_MAX = 16
"""Past idle times of a lane that are remembered."""


class LinkClock:
    """A link's conditions in seconds of the trial; its first ones until `began_s` is set."""

    def __init__(self, effective: EffectiveLink) -> None:
        self.effective = effective
        self.began_s = math.inf

    def at(self, now_s: float) -> LinkState:
        """Return the conditions at a time."""
        return self.effective.at(now_s - self.began_s)

    def next_change_s(self, now_s: float) -> float:
        """Return when, strictly after a time, the conditions change next; infinity if never."""
        change_s = self.effective.next_change_s(now_s - self.began_s) + self.began_s
        return max(change_s, math.nextafter(now_s, math.inf))


class TokenBucket:
    """One direction of a link: a token bucket whose rate changes with time, first come, first served."""

    def __init__(self, clock: LinkClock, rate: Callable[[LinkState], int | None]) -> None:
        """`rate` picks this direction's from the conditions: bits a second, None for no limit."""
        self.clock = clock
        self.rate = rate
        self.free_s = 0.0
        """When the last byte booked so far has passed."""
        self.tokens = math.inf
        """Bytes that could have passed at once at `free_s`."""
        self.gaps: deque[tuple[float, float]] = deque(maxlen=GAPS_MAX)
        """Idle times before `free_s`: what began to come in one of them passed then, though it is booked now."""

    def book(self, from_s: float, num_bytes: float) -> tuple[float, float]:
        """Return when the first and the last of some bytes pass that come from `from_s` on."""
        if from_s < self.free_s and self.gaps:
            num_bytes -= self._fill_gaps(from_s, num_bytes)
            if num_bytes <= 0.0:
                return from_s, from_s
        first_s = max(from_s, self.free_s)
        burst = self._burst(first_s)
        tokens = min(burst, self.tokens + self._gathered(self.free_s, first_s, burst))
        if first_s > self.free_s:
            self.gaps.append((self.free_s, first_s))
        self.free_s = self._passed_s(first_s, num_bytes - tokens)
        self.tokens = max(0.0, tokens - num_bytes)
        return first_s, self.free_s

    def stand_still(self, from_s: float, later_s: float) -> None:
        """Let nothing pass for `later_s`: what had not passed by `from_s` passes so much later."""
        self.free_s = later(self.free_s, from_s, later_s)

    def clear(self, now_s: float) -> None:
        """Drop what has not passed by now."""
        self.free_s = min(self.free_s, now_s)
        self.gaps.clear()

    def alone_s(self, from_s: float, num_bytes: float) -> float:
        """Return when the last of some bytes would pass if they had the lane to themselves; nothing is booked."""
        return self._passed_s(from_s, num_bytes - self._burst(from_s))

    def _burst(self, now_s: float) -> float:
        rate_bit_s = self.rate(self.clock.at(now_s))
        return math.inf if rate_bit_s is None else burst_bytes(rate_bit_s)

    def _fill_gaps(self, from_s: float, num_bytes: float) -> float:
        """Return how many bytes of those that come from `from_s` on pass in idle times, which they use up."""
        filled = 0.0
        for k, (begin_s, end_s) in enumerate(self.gaps):
            if end_s > from_s and filled < num_bytes:
                since_s = max(begin_s, from_s)
                passing = self._gathered(since_s, end_s, num_bytes - filled)
                self.gaps[k] = self._passed_s(since_s, passing), end_s
                filled += passing
        return filled

    def _gathered(self, since_s: float, until_s: float, enough: float) -> float:
        """Return the bytes that can pass in a time, or `enough` if that is less."""
        gathered = 0.0
        while since_s < until_s and gathered < enough:
            rate_bit_s = self.rate(self.clock.at(since_s))
            if rate_bit_s is None:
                return enough
            end_s = min(until_s, self.clock.next_change_s(since_s))
            gathered += (end_s - since_s) * rate_bit_s / 8
            since_s = end_s
        return min(gathered, enough)

    def _passed_s(self, since_s: float, num_bytes: float) -> float:
        """Return when `num_bytes` have passed."""
        while num_bytes > 0.0:
            rate_bit_s = self.rate(self.clock.at(since_s))
            if rate_bit_s is None:
                return since_s
            change_s = self.clock.next_change_s(since_s)
            capacity = (change_s - since_s) * rate_bit_s / 8
            if num_bytes <= capacity:
                return since_s + num_bytes * 8 / rate_bit_s
            num_bytes -= capacity
            since_s = change_s
        return since_s


class DelayLine:
    """One direction of a link's latency: a message that enters comes out later, in the same order."""

    def __init__(self, clock: LinkClock, seed: int, direction: str, node: str) -> None:
        self.clock = clock
        self.seed = seed
        self.purpose = f"jitter {direction}"
        self.node = node
        self.count = 0
        self.last_s = -math.inf

    def out_s(self, now_s: float) -> float:
        """Return when what enters now comes out; the k-th message's jitter depends on nothing but k."""
        conditions = self.clock.at(now_s)
        delay_s = conditions.latency_s
        if conditions.jitter_s:
            draw = chance.uniform(self.seed, self.purpose, self.node, self.count)
            delay_s += conditions.jitter_s * (2.0 * draw - 1.0)
        self.count += 1
        self.last_s = max(self.last_s, now_s + max(0.0, delay_s))
        return self.last_s


class LinkModel:
    """A node's link in both directions, as far as they are held here."""

    def __init__(self, plan: NodePlan, *, limits: bool, delays: bool) -> None:
        """`limits`: the link's rates are held here; `delays`: its latency is."""
        self.plan = plan
        self.clock = LinkClock(EffectiveLink(plan.link))
        self.uplink: TokenBucket | None = None
        self.downlink: TokenBucket | None = None
        self.outward: DelayLine | None = None
        self.inward: DelayLine | None = None
        self.gone_s = self.due_s = 0.0
        """Times of the message before: none overtakes another."""
        self.hold(limits=limits, delays=delays)

    def hold(self, *, limits: bool, delays: bool) -> None:
        """Hold the rates, or the latency, as well from now on."""
        if limits and not self.uplink:
            self.uplink = TokenBucket(self.clock, lambda conditions: conditions.uplink_bit_s)
            self.downlink = TokenBucket(self.clock, lambda conditions: conditions.downlink_bit_s)
        if delays and not self.outward:
            self.outward = DelayLine(self.clock, self.plan.seed, "up", self.plan.node)
            self.inward = DelayLine(self.clock, self.plan.seed, "down", self.plan.node)

    def began(self, began_s: float) -> None:
        """Note that training began at `began_s`: the link's changes count from there."""
        self.clock.began_s = began_s

    def inject(self, now_s: float, injection: Injection) -> None:
        """Change rates or latency from now on; messages on their way keep what they were booked with."""
        self.clock.effective.inject(now_s - self.clock.began_s, injection)

    def stand_still(self, from_s: float, later_s: float) -> None:
        """Note that the link was cut from `from_s` on for `later_s`: what was on its way comes so much later."""
        self.gone_s, self.due_s = later(self.gone_s, from_s, later_s), later(self.due_s, from_s, later_s)
        for lane in (self.uplink, self.downlink):
            if lane:
                lane.stand_still(from_s, later_s)
        for line in (self.outward, self.inward):
            if line:
                line.last_s = later(line.last_s, from_s, later_s)

    def clear(self, now_s: float) -> None:
        """Drop all that is on its way, which makes room."""
        self.gone_s, self.due_s = min(self.gone_s, now_s), min(self.due_s, now_s)
        for lane in (self.uplink, self.downlink):
            if lane:
                lane.clear(now_s)
        for line in (self.outward, self.inward):
            if line:
                line.last_s = min(line.last_s, now_s)

    def leave(self, now_s: float, payload_bytes: int) -> tuple[float, float]:
        """Send a message now: return when its first byte leaves, and when its last one has left."""
        if self.outward:
            now_s = self.outward.out_s(now_s)
        if not self.uplink or not self.downlink:
            return now_s, now_s
        first_s, gone_s = self.uplink.book(now_s, wire_bytes(payload_bytes))
        self.gone_s = max(self.gone_s, gone_s, _acknowledged_s(self.downlink, first_s, payload_bytes))
        return first_s, self.gone_s

    def arrive(self, first_s: float, now_s: float, payload_bytes: int) -> float:
        """Return when the heart gets a message whose last byte is here; its first one left the sender at `first_s`.

        A `first_s` that cannot be, as one that was not reported or that a stranger sends, counts as now.
        """
        if self.uplink and self.downlink:
            first_s = first_s if 0.0 <= first_s <= now_s else now_s
            _, passed_s = self.downlink.book(first_s, wire_bytes(payload_bytes))
            acknowledged_s = _acknowledged_s(self.uplink, first_s, payload_bytes)
            now_s = self.due_s = max(self.due_s, now_s, passed_s, acknowledged_s)
        return self.inward.out_s(now_s) if self.inward else now_s

    def begins_s(self, first_s: float) -> float:
        """Return when the first byte of a message is here that left its sender at `first_s`."""
        return first_s + (self.clock.at(first_s).latency_s if self.inward else 0.0)


def _acknowledged_s(lane: TokenBucket, from_s: float, payload_bytes: int) -> float:
    """Return when the acknowledgements of a message have passed, which hold its last bytes up on a very uneven link."""
    num_bytes = ACK_BYTES_A_SEGMENT * num_segments(payload_bytes)
    lane.book(from_s, num_bytes)
    return lane.alone_s(from_s, num_bytes)


def later(due_s: float, from_s: float, later_s: float) -> float:
    """Return when something is due that was due at `due_s`, where time stood still from `from_s` on for `later_s`."""
    return due_s + later_s if due_s > from_s else due_s


def link_model_of(plan: NodePlan, mechanism: Mechanism, delay: Delay) -> LinkModel | None:
    """Return what the transport itself has to hold of a node's link; None where messages never wait for its rates."""
    limits = mechanism == "model" and (plan.link.limited or plan.changeable)
    delays = delay == "line" and (plan.link.delayed or plan.changeable)
    return LinkModel(plan, limits=limits, delays=delays) if limits or delays else None
