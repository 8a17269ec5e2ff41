"""Messages that pass links at the same time, in whatever time they are told: when each is through.

    begin() ---> passing, at a rate that changes as others begin and end ---> over()

A flow is the message at the head of one direction of a connection; those behind it wait (`Course`). It crosses its
sender's uplink and its receiver's downlink, as far as these are held here, and shares them fairly (fair_share.py).
After a silence each of them passes a burst: at once what the emptier bucket has, the rest of the other one's as fast as
it comes there.

A link has a queue, where packets pass in the order in which they came. What TCP sends at once, a window, as far as it
finds room there, passes before whatever comes later; only what TCP has to keep back shares the link fairly. Of messages
that begin at the same time ZeroMQ sends a first batch each, and then the rest of each. A message that comes to a queue
more slowly than the link passes it goes on coming while others are ahead of it there. It waits in the queue meanwhile,
and what waits passes as fast as the link: those ahead delay its end by what is left of them then, and not its start.

Rates are computed anew where a flow begins or ends, or a link changes: for all flows that are joined to it by lanes
with a limit, and for no others. Each such group has one time at which it is looked at next.

Times are seconds of the trial; rates bytes a second; sizes bytes on the wire.
"""

import heapq
import math
from collections import deque
from collections.abc import Mapping
from itertools import chain
from typing import Any, Generic, TypeVar

from edgebed.core.framing import (
    ACK_BYTES_A_SEGMENT,
    INITIAL_WINDOW,
    num_segments,
    packet_bytes,
    wire_bytes,
)
from edgebed.emulation.model.fair_share import Path, shared_rates
from edgebed.emulation.model.lane import FULL, Lane

Subject = TypeVar("Subject")

AT_ONCE_S = 1e-9
"""What ends within a nanosecond ends together: rounding alone tells it apart."""
BATCH_BYTES = 8192
"""What ZeroMQ sends of a message before it turns to other connections (its `out_batch_size`)."""
A_BYTE = 1.0
"""What is left of a window, or in a bucket, when it is over: rounding may leave less."""


class Course(Generic[Subject]):
    """One direction of a connection: messages pass it in order, one at a time."""

    def __init__(self, lanes: tuple[Lane, ...], back: tuple[Lane, ...]) -> None:
        """`lanes`: what is between the two alone, the sender's uplink and the receiver's downlink, as far as held.

        `back`: those of acknowledgements.
        """
        self.lanes = lanes
        self.back = back
        self.flows: deque[Flow[Subject]] = deque()
        """What passes, and behind it what waits."""
        self.window = float(INITIAL_WINDOW * packet_bytes())
        """Bytes that TCP sends before it hears of the first: with all that is acknowledged it grows as much."""

    def add(self, payload_bytes: int, subject: Subject) -> "Flow[Subject]":
        """Put a message behind those that are there."""
        flow = Flow(self, payload_bytes, subject)
        self.flows.append(flow)
        return flow

    def reroute(self, lanes: tuple[Lane, ...], back: tuple[Lane, ...]) -> None:
        """Lead all that is on its way over other lanes; nothing passes meanwhile."""
        self.lanes, self.back = lanes, back
        for flow in self.flows:
            flow.path = Path(lanes, back, flow.path.ack_share)


class Flow(Generic[Subject]):
    """A message on its way over a course."""

    __slots__ = (
        "at_s",
        "batched",
        "behind",
        "coming",
        "course",
        "end_s",
        "first_s",
        "group",
        "left",
        "number",
        "path",
        "payload_bytes",
        "rate",
        "since_s",
        "subject",
        "waiting",
    )

    def __init__(self, course: Course[Subject], payload_bytes: int, subject: Subject) -> None:
        self.course = course
        self.payload_bytes = payload_bytes
        self.subject = subject
        self.left = float(wire_bytes(payload_bytes))
        """Bytes that had not passed by `at_s`."""
        self.behind = self.left
        """Bytes that were not in a queue at once: while more are left, the message passes in order."""
        self.batched = self.left - wire_bytes(min(payload_bytes, BATCH_BYTES))
        """Bytes that are not in its first batch."""
        self.number = 0
        """Place among all that began to pass."""
        ack_bytes = ACK_BYTES_A_SEGMENT * num_segments(payload_bytes)
        self.path = Path(course.lanes, course.back, ack_bytes / max(1.0, self.left))
        self.first_s = math.inf
        """When the first byte passed; infinity before it has."""
        self.rate = self.at_s = 0.0
        self.coming = 0.0
        """Rate at which it passes its sender's uplink: `rate`, but for what waits in a queue behind that."""
        self.waiting = 0.0
        """Bytes that wait in the queue of the receiver's downlink."""
        self.since_s = math.inf
        """When what passes next came, or will come, to the queue that it passes."""
        self.end_s = math.inf
        """When the last byte has passed, unless something else happens before."""
        self.group: Group | None = None

    def advance(self, now: float) -> None:
        """Let pass what passes until a time."""
        lasts_s = now - self.at_s
        if self.rate:
            self.left -= min(self.left, self.rate * lasts_s) if self.rate < math.inf else self.left
        if self.coming != self.rate and lasts_s:
            self.waiting = min(self.left, max(0.0, self.waiting + (self.coming - self.rate) * lasts_s))
            if self.waiting <= A_BYTE:
                self.waiting = 0.0
        self.at_s = now

    def pass_at(self, rate: float, coming: float, now: float) -> float:
        """Let it pass, and come, at these rates from now on; return when it is over, or its batch, window or wait."""
        self.rate, self.coming = rate, coming
        self.end_s = now + self.left / rate if rate else math.inf
        changes_s = [math.inf]
        if rate != coming:
            if coming and (to_come := self.left - self.waiting) > A_BYTE:
                changes_s.append(now + to_come / coming)
            if rate > coming:
                changes_s.append(now + self.waiting / (rate - coming))
        if rate:
            stages = [later for later in (self.batched, self.behind) if self.left - later > A_BYTE]
            changes_s.append(now + (self.left - max(stages, default=0.0)) / rate)
        return min(changes_s)

    def place(self) -> tuple[float, bool, int]:
        """Return its place in a queue."""
        return self.since_s, self.left - self.batched <= A_BYTE, self.number

    def queued(self, now: float) -> float:
        """Return the bytes that are in a queue since the message began."""
        return max(0.0, self.left - self.rate * (now - self.at_s) - self.behind)

    @property
    def in_window(self) -> bool:
        """Whether what passes now was sent at once, and not kept back by TCP."""
        return self.left - self.behind > A_BYTE

    def comes_slowly(self, rates: Mapping[Lane, float]) -> bool:
        """Return whether it comes to a queue, which others share, more slowly than that passes it; or waits there."""
        first, *others = self.path.lanes
        return self.waiting > 0.0 or any(rates[lane] > rates[first] and len(lane.flows) > 1 for lane in others)


class Group:
    """Flows whose rates depend on each other, until one of them ends or another one comes."""

    __slots__ = ("flows", "is_valid")

    def __init__(self, flows: list[Flow[Any]]) -> None:
        self.flows = flows
        self.is_valid = True


class Flows(Generic[Subject]):
    """All that passes now. Whoever changes something calls `settle` before time goes on."""

    def __init__(self) -> None:
        self.loose: dict[Flow[Subject], None] = {}
        """Flows whose rates are to be computed anew."""
        self.heap: list[tuple[float, int, Group]] = []
        self.count = self.begun = 0

    @property
    def next_s(self) -> float:
        """When something is over, or a rate changes; infinity if nothing passes."""
        while self.heap and not self.heap[0][2].is_valid:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else math.inf

    def begin(self, flow: Flow[Subject], now: float, since_s: float = math.inf) -> bool:
        """Let a message begin to pass; return whether it is through at once.

        `since_s`: when its first byte came, if that is past: it has passed what idle times since then let through.
        """
        flow.first_s = flow.since_s = flow.at_s = now
        lanes, back, ack_share = flow.path
        at_once = min([flow.left, *(lane.gather(now) for lane in lanes)])
        for lane in lanes:
            lane.tokens -= at_once
        for lane in back:
            lane.tokens = max(0.0, lane.gather(now) - at_once * ack_share)
        flow.left -= at_once
        if since_s < now:
            acknowledged = min((lane.rate(now) for lane in back), default=math.inf) / (ack_share or 1.0)
            most = min(flow.left, acknowledged * (now - since_s))
            flow.left -= min((lane.passed_since(since_s, now, most) for lane in lanes), default=flow.left)
        if flow.left <= 0.0:
            flow.end_s = now
            self._acknowledged(flow)
            return True
        flow.behind = flow.left - min([flow.left, flow.course.window, *(lane.room(now) for lane in lanes)])
        self.begun += 1
        flow.number = self.begun
        self.join(flow, now)
        return False

    def join(self, flow: Flow[Subject], now: float) -> None:
        """Let a flow pass, or pass again."""
        flow.at_s = now
        for lane in flow.path.lanes:
            lane.begin(flow, now)
        for lane in flow.path.back:
            lane.acknowledged[flow] = None
        self.loose[flow] = None

    def leave(self, flow: Flow[Subject], now: float) -> None:
        """Let a flow pass no more, since it is over, or stands still."""
        self._free(flow.group)
        flow.advance(now)
        flow.rate = flow.coming = 0.0
        flow.end_s, flow.group = math.inf, None
        for lane in flow.path.lanes:
            lane.end(flow, now)
        for lane in flow.path.back:
            lane.acknowledged.pop(flow, None)
            lane.rest(now)
        self.loose.pop(flow, None)

    def change(self, lanes: tuple[Lane, ...]) -> None:
        """Note that lanes are not what they were, by a fault or because training has begun."""
        for lane in lanes:
            lane.changed()
            for flow in chain(lane.flows, lane.acknowledged):
                self._free(flow.group)

    def over(self, now: float) -> list[Flow[Subject]]:
        """Return what has passed by now, in the order in which it began to wait for that; it passes no more."""
        passed: list[Flow[Subject]] = []
        while self.next_s <= now:
            group = heapq.heappop(self.heap)[2]
            passed += [flow for flow in group.flows if flow.end_s <= now + AT_ONCE_S]
            self._free(group)
        ends = {flow: flow.end_s for flow in passed}
        for flow in passed:
            self.leave(flow, now)
            flow.end_s, flow.left = ends[flow], 0.0
            self._acknowledged(flow)
        return passed

    def settle(self, now: float) -> None:
        """Compute rates anew, as far as something has changed."""
        while self.loose:
            flows, rates = self._joined(next(iter(self.loose)), now)
            for flow in flows:
                self._free(flow.group)
                flow.advance(now)
            held = {lane: rate for lane, rate in rates.items() if rate < math.inf}
            limited = {lane: rate for lane, rate in held.items() if lane.gather(now) <= A_BYTE or not lane.is_fed(now)}
            for lane in held:
                lane.used = 0.0
            due_s = min((lane.change_s(now) for lane in rates), default=math.inf)
            passing, coming = self._rates(flows, rates, limited, now)
            for flow, rate, comes in zip(flows, passing, coming, strict=True):
                due_s = min(due_s, flow.pass_at(rate, comes, now))
                for lane in flow.path.lanes:
                    lane.used += comes if lane is flow.path.lanes[0] else rate
                for lane in flow.path.back:
                    lane.used += rate * flow.path.ack_share
            for lane, rate in held.items():
                if lane in limited and lane.used >= rate * FULL:
                    lane.tokens = 0.0
                elif lane.used > rate:
                    due_s = min(due_s, now + lane.tokens / (lane.used - rate))
            self._group(flows, due_s)

    @staticmethod
    def _rates(
        flows: list[Flow[Subject]], rates: Mapping[Lane, float], limited: dict[Lane, float], now: float
    ) -> tuple[list[float], list[float]]:
        """Return at which rates flows pass, and at which they come to the queue of a receiver's downlink."""
        paths = [flow.path for flow in flows]
        if len(limited) < len(rates):
            paths = [_within(path, limited) for path in paths]
        near = [flow.rate if flow.rate < math.inf else 0.0 for flow in flows]
        slow = {number for number, flow in enumerate(flows) if flow.comes_slowly(rates)}
        ahead = [number for number, flow in enumerate(flows) if flow.in_window and number not in slow]
        if not slow or not (ahead or any(flows[number].waiting for number in slow)):
            passing = shared_rates(paths, limited, near, sorted(ahead, key=lambda number: flows[number].place()))
            return passing, passing
        coming = shared_rates(paths, limited, near)
        left: dict[Lane | Flow[Subject], float] = dict(limited.items())
        queued: list[Path[Lane | Flow[Subject]]] = [Path(path.lanes, path.back, path.ack_share) for path in paths]
        for number in sorted(slow):
            flow, path = flows[number], paths[number]
            uplink = flow.path.lanes[0]
            if flow.left - flow.waiting <= A_BYTE or coming[number] == math.inf:
                flow.waiting, coming[number] = flow.left, 0.0
            if uplink in left:
                left[uplink] = max(0.0, left[uplink] - coming[number])
            lanes: list[Lane | Flow[Subject]] = [lane for lane in path.lanes if lane is not uplink]
            if not flow.waiting:
                flow.since_s = now
                left[flow] = coming[number]  # it passes no faster than it comes
                lanes.append(flow)
            queued[number] = Path(lanes, path.back, path.ack_share)
        order = sorted([*ahead, *slow], key=lambda number: flows[number].place())
        passing = shared_rates(queued, left, near, order)
        return passing, [coming[number] if number in slow else rate for number, rate in enumerate(passing)]

    def _joined(self, first: Flow[Subject], now: float) -> tuple[list[Flow[Subject]], dict[Lane, float]]:
        """Return the flows that a flow is joined to by lanes with a limit, and the rates of all lanes of theirs."""
        flows, rates = {first: None}, dict[Lane, float]()
        waiting = [first]
        for flow in waiting:
            for lane in chain(flow.path.lanes, flow.path.back):
                if lane not in rates:
                    rates[lane] = lane.rate(now)
                    if rates[lane] < math.inf:
                        beside = [other for other in chain(lane.flows, lane.acknowledged) if other not in flows]
                        flows.update(dict.fromkeys(beside))
                        waiting += beside
        return waiting, rates

    def _acknowledged(self, flow: Flow[Subject]) -> None:
        flow.course.window += wire_bytes(flow.payload_bytes)

    def _group(self, flows: list[Flow[Subject]], due_s: float) -> None:
        group = Group(flows)
        for flow in flows:
            flow.group = group
            self.loose.pop(flow, None)
        if due_s < math.inf:
            self.count += 1
            heapq.heappush(self.heap, (due_s, self.count, group))

    def _free(self, group: Group | None) -> None:
        """Compute the rates of a group anew."""
        if group and group.is_valid:
            self.loose.update(dict.fromkeys(group.flows))
            group.flows, group.is_valid = [], False  # it may stay in the heap for long


def _within(path: Path[Lane], limited: dict[Lane, float]) -> Path[Lane]:
    lanes, back = ([lane for lane in lanes if lane in limited] for lanes in (path.lanes, path.back))
    return Path(lanes, back, path.ack_share)
