"""Rates of messages that pass links at a time, as TCP shares them: max-min fair over all lanes that each crosses; pure.

A message crosses its sender's uplink and its receiver's downlink: two lanes. All rates rise together until a lane is
full; what crosses it keeps its rate, the others rise on (progressive filling: Bertsekas and Gallager, Data Networks,
1992, section 6.5.2). So each has a bottleneck: a lane that is full, in which nothing is faster. Here the fullest lane
is found with a heap, so that n messages cost n log n, also where all of them share one lane.

Acknowledgements go the other way, some bytes for each byte of the message. They come before the messages there, up to
an equal part for each stream: what a full queue drops of them is not missed, since a later one acknowledges as much.
Alone, they may fill a lane, and a message is no faster than they allow.

What stood in a queue before others came passes before them: such messages are `ahead`.

Rates and capacities are bytes a second. A lane is whatever can be a key; one without a limit is left out.
"""

import heapq
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

Lane = TypeVar("Lane", bound=Hashable)

PASSES_MAX = 20
"""Each pass leaves a fiftieth of the error that the one before it left, or less, but for messages of a packet."""
EXACT = 1e-7
"""Part of a lane by which acknowledgements may be off."""


class Path(NamedTuple, Generic[Lane]):
    """What a message crosses."""

    lanes: Sequence[Lane]
    """Lanes of the message itself, none twice."""
    back: Sequence[Lane]
    """Lanes of its acknowledgements."""
    ack_share: float
    """Bytes of acknowledgements for each of its own."""


def shared_rates(
    paths: Sequence[Path[Lane]],
    capacities: Mapping[Lane, float],
    near: Sequence[float] = (),
    ahead: Sequence[int] = (),
) -> list[float]:
    """Return the rate of each message; infinity where nothing limits it.

    `near`: what the rates may be close to. `ahead`: messages that stand in queues before all others, in this order.
    """
    lanes_of = [path.lanes for path in paths]
    own, back = _users(lanes_of), _users([path.back for path in paths])
    caps = [min((capacities[lane] for lane in path.back), default=math.inf) / path.ack_share for path in paths]
    most = {
        lane: capacities[lane] * len(acks) / (len(acks) + len(own[lane])) for lane, acks in back.items() if lane in own
    }
    left = dict(capacities)
    if not most:
        return _filled(lanes_of, own, left, caps, ahead)
    taken = dict.fromkeys(most, -math.inf)
    rates = list(near) or _filled(lanes_of, own, left, caps, ahead)
    for _ in range(PASSES_MAX):
        before = taken
        taken = {
            lane: min(enough, sum([rates[number] * paths[number].ack_share for number in back[lane]]))
            for lane, enough in most.items()
        }
        if all(abs(taken[lane] - before[lane]) <= EXACT * capacities[lane] for lane in taken):
            break
        left.update({lane: capacities[lane] - acks for lane, acks in taken.items()})
        rates = _filled(lanes_of, own, left, caps, ahead)
    return rates


def fair_rates(lanes_of: Sequence[Sequence[Lane]], capacities: Mapping[Lane, float]) -> list[float]:
    """Return the max-min fair rate of each message, which crosses these lanes; infinity where it crosses none."""
    return _filled(lanes_of, _users(lanes_of), capacities, [math.inf] * len(lanes_of))


def _users(lanes_of: Sequence[Sequence[Lane]]) -> dict[Lane, list[int]]:
    """Return the messages that cross each lane."""
    users: dict[Lane, list[int]] = {}
    for number, lanes in enumerate(lanes_of):
        for lane in lanes:
            users.setdefault(lane, []).append(number)
    return users


def _filled(
    lanes_of: Sequence[Sequence[Lane]],
    users: Mapping[Lane, list[int]],
    capacities: Mapping[Lane, float],
    caps: Sequence[float],
    ahead: Sequence[int] = (),
) -> list[float]:
    """Fill the lanes: return the rate of each message, none above its cap; those ahead take what they can, in order."""
    if not ahead:
        filling = _Filling(lanes_of, users, capacities, caps)
        for number in sorted(range(len(caps)), key=filling.caps.__getitem__):
            filling.rise(number)
        return filling.rates
    left, taken = dict(capacities), dict[int, float]()
    for number in ahead:
        taken[number] = rate = min([caps[number], *(left[lane] for lane in lanes_of[number])])
        for lane in lanes_of[number]:
            left[lane] -= rate
    behind = [number for number in range(len(caps)) if number not in taken]
    behind_lanes = [lanes_of[number] for number in behind]
    rates = _filled(behind_lanes, _users(behind_lanes), left, [caps[number] for number in behind])
    taken |= zip(behind, rates, strict=True)
    return [taken[number] for number in range(len(caps))]


class _Filling(Generic[Lane]):
    """Lanes that are being filled. One that a single message crosses is a cap of that message."""

    def __init__(
        self,
        lanes_of: Sequence[Sequence[Lane]],
        users: Mapping[Lane, list[int]],
        capacities: Mapping[Lane, float],
        caps: Sequence[float],
    ) -> None:
        self.lanes_of = lanes_of
        self.users = users
        self.rates = [-1.0] * len(lanes_of)
        """The rate of each message; negative while it rises."""
        self.caps = list(caps)
        self.rising: dict[Lane, int] = {}
        """Messages in each lane whose rates rise."""
        for lane, numbers in users.items():
            if len(numbers) > 1:
                self.rising[lane] = len(numbers)
            elif capacities[lane] < self.caps[numbers[0]]:
                self.caps[numbers[0]] = capacities[lane]
        self.left = {lane: capacities[lane] for lane in self.rising}
        self.heap = [(self.left[lane] / count, order, lane) for order, (lane, count) in enumerate(self.rising.items())]
        """The rate at which each lane is full at the earliest, the order of lanes for ties, and the lane."""
        heapq.heapify(self.heap)

    def rise(self, number: int) -> None:
        """Let all rates rise until this message has its own; called in the order of caps."""
        while self.rates[number] < 0.0:
            if self.heap and self.heap[0][0] < self.caps[number]:
                self._fill()
            else:
                self._settle(number, self.caps[number])

    def _fill(self) -> None:
        """Fill the lane that is full at the earliest, or find out that it is full later."""
        level, order, lane = heapq.heappop(self.heap)
        if not self.rising[lane]:
            return
        present = max(0.0, self.left[lane] / self.rising[lane])
        if present > level:  # what others left of it has made it less full since
            heapq.heappush(self.heap, (present, order, lane))
            return
        for number in self.users[lane]:
            if self.rates[number] < 0.0:
                self._settle(number, present)

    def _settle(self, number: int, rate: float) -> None:
        self.rates[number] = rate
        for lane in self.lanes_of[number]:
            if lane in self.left:
                self.left[lane] -= rate
                self.rising[lane] -= 1
