"""A node's knowledge of the controller's clock: its own where that is the same, else one that follows it.

    heartbeat's thread --- asktime ---> controller
                       <-- telltime ---     several in a row, when the node joins and then every ten seconds at most

The thread that sends heartbeats asks: it answers for no computation, and its connection carries nothing else. What it
finds, the node's own thread reads.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import zmq

from edgebed.core import records
from edgebed.core.planned.fault import Injection
from edgebed.runtimes.live.clocks.estimate import Estimator, Exchange
from edgebed.runtimes.live.clocks.steering import Steering
from edgebed.runtimes.live.endpoint import DealerEndpoint
from edgebed.wire import frames
from edgebed.wire.messages import AskTime, TellTime

EXCHANGES = 8
"""Questions of a round, of whose answers the quickest counts."""
ANSWER_S = 0.5
"""Seconds that an answer is waited for; one that comes later counts in the next round."""
FIRST_S = 1.0
"""Seconds until the second round; each pause is twice the one before, until there are `EVERY_S` between them."""
EVERY_S = 10.0


class NodeClock(Protocol):
    """What a node's times come from."""

    def now_ns(self) -> int:
        """The controller's monotonic clock, as far as it is known; it never runs backwards."""
        ...

    def error_s(self) -> float:
        """The most that `now_ns` may be wrong by, in seconds."""
        ...


class SameClock:
    """The clock of a node that reads the one that the controller reads."""

    def now_ns(self) -> int:
        """The node's own clock."""
        return time.monotonic_ns()

    def error_s(self) -> float:
        """No seconds: it is the same."""
        return 0.0


class FollowedClock:
    """The controller's clock as a node on another host knows it."""

    def __init__(self, node: str, own_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """`node`: its name. `own_ns` reads its own clock."""
        self.node = node
        self.own_ns = own_ns
        self.estimator = Estimator()
        self.steering: Steering | None = None
        """How the own clock is made into the controller's; None: that is not known yet."""
        self.round_trip_ns = 0
        """The round trip of the exchange that counted last."""
        self.next_ns = 0
        self.pause_s = FIRST_S
        self.last_ns = 0
        self._is_known = threading.Event()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the controller's clock is known; False where it is not within the time."""
        return self._is_known.wait(timeout_s)

    def now_ns(self) -> int:
        """The controller's clock; by one thread only."""
        assert self.steering is not None, "it is not known yet"
        own_ns = self.own_ns()
        self.last_ns = max(self.last_ns, own_ns + self.steering.offset_ns(own_ns))
        return self.last_ns

    def error_s(self) -> float:
        """The most that the clock is wrong by now, in seconds."""
        assert self.steering is not None, "it is not known yet"
        return self.steering.error_ns(self.own_ns()) * 1e-9

    def keep(self, end: DealerEndpoint) -> None:
        """Ask over this connection if it is time to; returns within a second where nobody answers."""
        if self.own_ns() < self.next_ns:
            return
        found: list[Exchange] = []
        for _ in range(EXCHANGES):
            asked_ns = self.own_ns()
            with contextlib.suppress(zmq.Again):  # the controller is gone, or does not read
                end.socket.send_multipart(frames.encode(AskTime(sender=self.node, asked_ns=asked_ns)), zmq.NOBLOCK)
            answers = list(self._answers(end, asked_ns))
            found += answers
            if not answers or answers[-1].asked_ns != asked_ns:
                break
        if found:
            self.take(found)

    def take(self, exchanges: list[Exchange]) -> None:
        """Take in exchanges that were made in a row."""
        estimate, own_ns = self.estimator.add(exchanges), self.own_ns()
        self.round_trip_ns = min(exchange.round_trip_ns for exchange in exchanges)
        self.steering = self.steering.towards(estimate, own_ns) if self.steering else Steering.begin(estimate)
        self.next_ns = own_ns + round(self.pause_s * 1e9)
        self.pause_s = min(EVERY_S, 2.0 * self.pause_s)
        self._is_known.set()

    def _answers(self, end: DealerEndpoint, asked_ns: int) -> Iterator[Exchange]:
        """Exchanges whose answers come, until that of the last question."""
        while end.socket.poll(int(ANSWER_S * 1000)):
            answered_ns = self.own_ns()
            for event in end.receive(limit=1):
                if isinstance(told := event.message, TellTime):
                    yield Exchange(told.asked_ns, told.heard_ns, told.told_ns, answered_ns)
                    if told.asked_ns == asked_ns:
                        return


class ClockMeter:
    """Has it journaled how the node's clock differs from the controller's, as often as that has become news."""

    def __init__(self, clock: FollowedClock) -> None:
        self.clock = clock
        self.told: records.Clock | None = None
        self.steering: Steering | None = None

    def inject(self, time_s: float, injection: Injection) -> None:
        """Take no notice: no fault changes a clock."""

    def read(self, now: float, began_s: float | None) -> Iterator[records.Clock]:
        """The record, where what was told last is wrong now, or far too cautious; before training as well."""
        steering = self.clock.steering
        if steering is None or (steering is self.steering and self.told and self.clock.error_s() <= self.told.error_s):
            return
        self.steering, own_ns = steering, self.clock.own_ns()
        record = self._record(steering, own_ns)
        if self.told is None or is_news(self.told, record):
            self.told = record
            yield record

    def _record(self, steering: Steering, own_ns: int) -> records.Clock:
        """What is known now; the error is what it will have grown to when the controller has been asked again."""
        later_ns = max(own_ns, self.clock.next_ns) + round(ANSWER_S * EXCHANGES * 1e9)
        return records.Clock(
            offset_s=steering.estimate.offset_ns(own_ns) * 1e-9,
            own_s=own_ns * 1e-9,
            drift=round(steering.estimate.drift, 9),
            error_s=round(max(steering.error_ns(own_ns), steering.estimate.error_ns(later_ns)) * 1e-9, 9),
            round_trip_s=self.clock.round_trip_ns * 1e-9,
        )


def is_news(told: records.Clock, now: records.Clock) -> bool:
    """Whether it is worth a line: the error has grown or halved, or the offset left the line by more than was said."""
    expected_s = told.offset_s + told.drift * (now.own_s - told.own_s)
    is_elsewhere = abs(now.offset_s - expected_s) > told.error_s
    return now.error_s > told.error_s or now.error_s < told.error_s / 2 or is_elsewhere
