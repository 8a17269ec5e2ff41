"""What messages that share a link may add to each other's time; pure.

Somebody who sends to several at once, or hears from several, has one link for all. Whatever order the kernel gives
their packets, a message is no later than if all that is on the link with it came first: that is what may be added to
the time that it would take alone. Within a while that is too much, which makes the verdict milder, never stricter.
"""

from typing import NamedTuple

REMEMBERED_S = 30.0
"""Seconds that messages are remembered: one that takes longer may have met more than is known."""


class Flight(NamedTuple):
    """A message on a link."""

    key: str
    """Node at the other end."""
    alone_s: float
    """Seconds that the link itself needs for the message's bytes."""
    until_s: float
    """Time when the message is over at the latest, or was."""


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
        self.flights: list[Flight] = []

    def receive(self, now: float, since_s: float, source: str, alone_s: float) -> dict[str, float]:
        """Note a message that came: return seconds that may be added to it and to those beside it, by sender."""
        self.flights = [flight for flight in self.flights if flight.until_s > now - REMEMBERED_S]
        extra = {source: 0.0}
        for flight in self.flights:
            if flight.until_s > since_s:
                extra[source] += flight.alone_s
                extra[flight.key] = extra.get(flight.key, 0.0) + alone_s
        self.flights.append(Flight(source, alone_s, now))
        return extra
