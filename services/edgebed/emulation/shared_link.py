"""What messages that share a link may add to each other's time; pure.

Somebody who sends to several at once, or hears from several, has one link for all. Whatever order the kernel gives
their packets, a message is no later than if all that is on the link with it came first: that is what may be added to
the time that it would take alone. Within a while that is too much, which makes the verdict milder, never stricter.
"""

import math
from bisect import bisect_right
from collections import deque
from typing import NamedTuple

REMEMBERED = 20_000
"""Number of messages that are remembered: one beside which more have passed may have met more than is known."""


class Flight(NamedTuple):
    """A message on a link."""

    key: str
    """Node at the other end."""
    alone_s: float
    """Seconds that the link itself needs for the message's bytes."""
    until_s: float
    """Time when the message is over at the latest, or was."""
    since_s: float = 0.0
    """Time when it left, where that is known."""


class LinkLoad:
    """What has passed a link, in seconds that the link itself needs for its bytes."""

    def __init__(self) -> None:
        self.times_s = [-math.inf]
        self.sums_s = [0.0]

    def add(self, now: float, alone_s: float) -> None:
        """Note something that passes; what came long before is forgotten."""
        self.times_s.append(now)
        self.sums_s.append(self.sums_s[-1] + alone_s)
        if len(self.times_s) > 2 * REMEMBERED:
            del self.times_s[:REMEMBERED], self.sums_s[:REMEMBERED]

    def since(self, time_s: float) -> float:
        """What has passed since then."""
        return self.sums_s[-1] - self.sums_s[max(0, bisect_right(self.times_s, time_s) - 1)]


class SharedUplink:
    """Uplink of a node that sends to several at once: knows what is sent, and when."""

    def __init__(self) -> None:
        self.flights: list[Flight] = []

    def send(self, now: float, to: str, alone_s: float) -> dict[str, float]:
        """Note a message sent: return seconds that may be added to it and to those on their way, by receiver."""
        extra = {to: 0.0}
        flights, until_s = [], now
        for flight in self.flights:
            if flight.until_s > now:
                until_s = max(until_s, flight.until_s)
                extra[flight.key] = extra.get(flight.key, 0.0) + alone_s
                flights.append(flight._replace(until_s=flight.until_s + alone_s))
        extra[to] += until_s - now
        self.flights = [*flights, Flight(to, alone_s, until_s + alone_s)]
        return extra


class SharedDownlink:
    """Downlink of a node that hears from several: knows what has come, and since when it had been on its way."""

    def __init__(self) -> None:
        self.flights = deque[Flight](maxlen=REMEMBERED)
        """Messages in the order in which they came."""

    def receive(self, now: float, since_s: float, source: str, alone_s: float) -> dict[str, float]:
        """Note a message that came: return seconds that may be added to it and to those beside it, by sender.

        That is what the other one needs, and no longer than both were on their way.
        """
        extra = {source: 0.0}
        for flight in reversed(self.flights):
            if flight.until_s <= since_s:
                break
            both_s = max(0.0, flight.until_s - max(since_s, flight.since_s))
            extra[source] += min(flight.alone_s, both_s)
            extra[flight.key] = extra.get(flight.key, 0.0) + min(alone_s, both_s)
        self.flights.append(Flight(source, alone_s, now, since_s))
        return extra
