"""One direction of a link, in whatever time it is told: its rate at each moment, what passes at once, what uses it.

A token bucket like the kernel's tbf: it fills with what is left of the rate, up to the burst. Times are seconds of the
trial; rates bytes a second; sizes bytes on the wire.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from edgebed.core.framing import burst_bytes, queue_bytes
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.conditions import EffectiveLink, LinkState

if TYPE_CHECKING:
    from edgebed.emulation.model.flows import Flow

FULL = 1 - 1e-6
"""Part of its rate from which on a lane is full, and has an empty bucket."""
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


class Lane:
    """One direction of a link, shared by all that passes it."""

    def __init__(self, clock: LinkClock, rate: Callable[[LinkState], int | None]) -> None:
        """`rate` picks this direction's from the conditions: bits a second, None for no limit."""
        self.clock = clock
        self.pick = rate
        self.flows: dict[Flow[Any], None] = {}
        self.acknowledged: dict[Flow[Any], None] = {}
        """Flows whose acknowledgements pass here."""
        self.used = 0.0
        """Bytes a second that pass since `at_s`."""
        self.at_s = 0.0
        self.tokens = math.inf
        """Bytes that could have passed at once at `at_s`."""
        self.free_s = 0.0
        """When the last flow was over."""
        self.gaps: deque[tuple[float, float]] = deque(maxlen=GAPS_MAX)
        """Idle times before the last flow: what began to come in one of them passed then, though it is noted now."""
        self._rate, self._since_s, self._until_s = math.inf, math.inf, -math.inf

    def rate(self, now: float) -> float:
        """Return the rate at a time; infinity if there is no limit."""
        if not self._since_s <= now < self._until_s:
            bit_s = self.pick(self.clock.at(now))
            self._rate = math.inf if bit_s is None else bit_s / 8
            self._since_s, self._until_s = now, self.clock.next_change_s(now)
        return self._rate

    def change_s(self, now: float) -> float:
        """Return when, after a time, the rate may change next."""
        self.rate(now)
        return self._until_s

    def changed(self) -> None:
        """Note that a fault has changed the link, or that training has begun, from which its changes count."""
        self._until_s = -math.inf

    def begin(self, flow: "Flow[Any]", now: float) -> None:
        """Let a flow pass from now on."""
        if not self.flows:
            self.note_idle(now)
        self.flows[flow] = None

    def end(self, flow: "Flow[Any]", now: float) -> None:
        """Let a flow pass no more."""
        if self.flows.pop(flow, flow) is None and not self.flows:
            self.free_s = now
        self.rest(now)

    def rest(self, now: float) -> None:
        """Fill the bucket from now on, if nothing passes any more."""
        if not self.flows and not self.acknowledged:
            self.gather(now)
            self.used = 0.0

    def note_idle(self, now: float) -> None:
        """Remember that the lane was idle until now."""
        if now > self.free_s:
            self.gaps.append((self.free_s, now))
            self.free_s = now

    def is_fed(self, now: float) -> bool:
        """Return whether all that passes comes from other lanes, at rates, and nothing is acknowledged here."""
        uplinks = {flow.path.lanes[0] for flow in self.flows}
        return not self.acknowledged and self not in uplinks and all(lane.rate(now) < math.inf for lane in uplinks)

    def gather(self, now: float) -> float:
        """Fill the bucket up to a time; return what may pass at once then."""
        if (rate := self.rate(now)) == math.inf:
            self.tokens, self.at_s = math.inf, now
            return math.inf
        burst = burst_bytes(round(rate * 8))
        if self.tokens < burst or self.used:
            for lasts_s, each in self._pieces(self.at_s, now):
                self.tokens = min(burst, max(0.0, self.tokens + lasts_s * (each - self.used)))
                if self.tokens == burst and not self.used:
                    break
        self.tokens, self.at_s = min(burst, self.tokens), now
        return self.tokens

    def room(self, now: float) -> float:
        """Return the bytes that find room in the queue; none beside a message for which there was too little.

        Of a message that its own uplink holds back, there is what waits here.
        """
        if (rate := self.rate(now)) == math.inf:
            return math.inf
        queued = [flow.queued(now) for flow in self.flows if not self._comes_from_full(flow, now)]
        waiting = sum(flow.waiting for flow in self.flows if self._comes_from_full(flow, now))
        return max(0.0, queue_bytes(round(rate * 8)) - sum(queued) - waiting) if all(queued) else 0.0

    def _comes_from_full(self, flow: "Flow[Any]", now: float) -> bool:
        """Return whether a message comes here from a lane that is full."""
        uplink = flow.path.lanes[0]
        return uplink is not self and uplink.used >= uplink.rate(now) * FULL

    def passed_since(self, since_s: float, now: float, num_bytes: float) -> float:
        """Return how many of some bytes passed in idle times from `since_s` on, which they use up."""
        if not self.flows:
            self.note_idle(now)
        filled = 0.0
        for k, (begin_s, end_s) in enumerate(self.gaps):
            if end_s > since_s and filled < num_bytes:
                from_s = max(begin_s, since_s)
                passing = self._passing(from_s, end_s, num_bytes - filled)
                self.gaps[k] = self._filled_s(from_s, end_s, passing), end_s
                filled += passing
        return filled

    def _pieces(self, since_s: float, until_s: float) -> Iterator[tuple[float, float]]:
        """Yield the seconds until the rate changes, or a time comes, and the rate."""
        while since_s < until_s:
            end_s = min(until_s, self.change_s(since_s))
            yield end_s - since_s, self.rate(since_s)
            since_s = end_s

    def _passing(self, since_s: float, until_s: float, enough: float) -> float:
        """Return the bytes that can pass in a time, or `enough` if that is less."""
        gathered = 0.0
        for lasts_s, rate in self._pieces(since_s, until_s):
            gathered += lasts_s * rate
            if gathered >= enough:
                break
        return min(gathered, enough)

    def _filled_s(self, since_s: float, until_s: float, num_bytes: float) -> float:
        """Return when so many bytes have passed that can pass in a time."""
        if num_bytes <= 0.0:
            return since_s
        for lasts_s, rate in self._pieces(since_s, until_s):
            if num_bytes <= rate * lasts_s:
                return since_s + (num_bytes / rate if rate < math.inf else 0.0)
            num_bytes -= rate * lasts_s
            since_s += lasts_s
        return until_s


def lane_between(rate_bit_s: int | None) -> Lane:
    """Return the lane from one node to another alone, before the uplink; None: with no limit."""
    return Lane(LinkClock(EffectiveLink(LinkPlan(uplink_bit_s=rate_bit_s))), lambda conditions: conditions.uplink_bit_s)
