"""A node's connections to others: the data network through the node's link, and the server's for who watches.

    send() --> link: leaves at once, or --> due() --> data network
    data network --> receive() --> link: arrives at once, or --> due()

A message sent while the link is cut, or slowly, is on its way here; if a connection breaks it is lost.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from edgebed.core.plan import WorkerPlan
from edgebed.core.planned.fault import Injection, Point
from edgebed.emulation.conditions import EffectiveLink
from edgebed.roles.events import Connected, Disconnected, MessageReceived, Send
from edgebed.runtimes import timestamps
from edgebed.runtimes.live import awaiting
from edgebed.runtimes.live.awaiting import Awaiting
from edgebed.runtimes.live.data_endpoints import patience_s
from edgebed.runtimes.live.data_ends import DataEnds
from edgebed.runtimes.live.endpoint import RouterEndpoint
from edgebed.runtimes.live.paced_link import PacedLink
from edgebed.runtimes.live.shell.metering import Metering
from edgebed.runtimes.timestamps import Leaving
from edgebed.runtimes.traffic import OBSERVE_S
from edgebed.wire import frames as codec
from edgebed.wire.messages import Working


class Connections:
    """All messages between a node and the others, but for the controller's."""

    def __init__(
        self,
        data: DataEnds,
        link: PacedLink,
        metering: Metering,
        *,
        timelines: Mapping[str, EffectiveLink] | None = None,
        watch: RouterEndpoint | None = None,
    ) -> None:
        """`timelines` of a node's link and its hosts': how long those may be silent follows from them.

        `watch` is a server's endpoint for the evaluator, on the management network; not counted as traffic.
        """
        self.data = data
        self.link = link
        self.metering = metering
        self.timelines = dict(timelines or {})
        self.watch = watch
        self.watchers: set[str] = set()
        """Peers that connected over `watch`."""
        is_faulty = isinstance(metering.plan, WorkerPlan) and metering.plan.points
        self.awaiting = Awaiting(data.dealers["server"]) if is_faulty else None
        self.patience_s = 0.0
        """Seconds for which a host may be silent, as computed at the last look."""

    @property
    def sockets(self) -> dict[Any, bool]:
        """Sockets that something comes from, and whether it is taken now."""
        taken = dict.fromkeys(self.data.monitors, True) | dict.fromkeys(self.data.sockets, not self.link.is_closed)
        return taken | ({self.watch.socket: True, self.watch.monitor: True} if self.watch else {})

    @property
    def next_s(self) -> float:
        """When something is due next."""
        is_awaited = self.awaiting and self.awaiting.points
        return min(self.link.next_s, self.metering.life.now() + awaiting.POLL_S if is_awaited else math.inf)

    # --- messages come ------------------------------------------------------------------------------------------

    def receive(self) -> Iterator[MessageReceived | Connected | Disconnected]:
        """What has come: messages first, then ends of the connections that they came over."""
        if self.watch:
            self.watch.look()
        for event in self.watch.receive() if self.watch else ():
            self.watchers.add(event.peer)
            self.metering.trace_received(event)
            yield event
        waiting = [] if self.link.is_closed else list(self.data.receive())
        if self.metering.plan.role == "server" and waiting:
            self.metering.reporter.metrics.queue_length(len(waiting))
        for event in waiting:
            if self.link.arrive(event, self.metering.life.now()):
                yield self._arrived(event)
        yield from map(Disconnected, self.data.broken())
        self._look()
        if self.data.take_back():
            yield Connected()

    def due(self) -> Iterator[MessageReceived]:
        """What the link has let through by now: what has left is handed over, what has arrived is yielded."""
        now = self.metering.life.now
        for passed in self.link.due(now):
            if isinstance(passed, Leaving):
                if self.metering.transfers:
                    self.metering.transfers.left(now(), passed)
                self._hand_over(passed.effect, passed.first_s, passed.gone_s)
            else:
                yield self._arrived(passed.event)

    def reached(self) -> Iterator[Point]:
        """Points of the protocol that have come, of those at which a fault waits."""
        if not self.awaiting:
            return iter(())
        if self.link.passage:
            self.awaiting.leaving(*self.link.leaving_s)
        return self.awaiting.reached(self.metering.life.now())

    def _arrived(self, event: MessageReceived) -> MessageReceived:
        self.data.answered(event.peer)
        self.metering.received(event, self.data.source(event))
        return event

    # --- messages leave -----------------------------------------------------------------------------------------

    def send(self, effect: Send, now: float) -> None:
        """Send a message to a node, as fast as the link lets it leave."""
        if self.watch and effect.to in self.watchers:
            sent_bytes = self.watch.send(effect.to, timestamps.stamp(effect.message, now), effect.frames)
            self.metering.trace_sent(effect, sent_bytes)
            return
        self._look()  # a request made only now is not lost with a broken connection
        if not isinstance(effect.message, Working):  # which nobody answers, and no fault waits for
            self.data.ask(effect.to)
            if self.awaiting:
                self.awaiting.ask()
        if self.link.leave(effect, now):
            self._hand_over(effect, now, now)

    def await_(self, point: Point) -> None:
        """Let a fault wait for a point of what is sent next."""
        if self.awaiting:
            self.awaiting.await_(point)

    def _hand_over(self, effect: Send, first_s: float, due_s: float) -> None:
        """Give a message to the data network, which was due at `due_s`: nothing delays it any more."""
        message = timestamps.stamp(effect.message, first_s)
        if self.awaiting and not isinstance(message, Working):
            self.awaiting.handed_over(codec.encode(message, effect.frames))
        sent_bytes = self.data.send(effect.to, message, effect.frames)
        is_paced = self.link.passage is not None
        self.metering.sent(effect, self.data.target(effect.to), (first_s, due_s), sent_bytes, paced=is_paced)

    # --- connections --------------------------------------------------------------------------------------------

    def move(self, addresses: Mapping[str, str]) -> None:
        """Connect to each host where it is now; what was on its way to one that is elsewhere is lost."""
        if self.data.move(addresses):
            self.link.lose(self.metering.life.now())

    def inject(self, injection: Injection) -> None:
        """Apply a fault of a link: to the node's own what no kernel does, to any what is expected of it."""
        if injection.node in self.timelines:
            self.timelines[injection.node].inject(self.metering.life.trained_s, injection)
        own = injection.at(self.metering.plan.node)
        if own and (own is injection or own.action == "link") and self.link.inject(own, self.metering.life.now()):
            self.data.end()  # dead after a long cut: what was on its way in either direction is lost

    def end_if_dead(self) -> None:
        """End connections whose other end has been silent for too long; called every `OBSERVE_S`."""
        if self.data.dealers:
            asked_s = patience_s(*(each.at(self.metering.life.trained_s) for each in self.timelines.values()))
            self.patience_s = max(asked_s, self.patience_s - OBSERVE_S)  # messages sent more slowly may still be coming
            self.data.end_if_dead(self.patience_s)

    def _look(self) -> None:
        if self.data.look():
            self.link.lose(self.metering.life.now())
