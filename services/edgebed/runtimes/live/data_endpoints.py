"""The data network's two ends, which know their connections: when one broke, and when there is a new one.

A broken connection loses what was on its way: the socket's own queues, and here the outbox. A node that waited for an
answer is told when there is a new connection.

TCP sends again what was not acknowledged, at first after 0.2 s and then after twice as long each time: after a cut of a
minute it might be silent for another. So a node that waits for an answer watches for a connection that has died. The
kernel asks a silent server every second (see sockets.py) and sends its own data again; where neither is answered for
`patience_s`, the connection is ended, and ZeroMQ tries to make another one all the time.
"""

import math
from collections import deque
from collections.abc import Sequence

import zmq

from edgebed.core.framing import HEADER_BYTES, SEGMENT_BYTES
from edgebed.emulation.conditions import LinkState
from edgebed.emulation.tcp import TcpConnection, borrowed, choose_congestion_control, reset
from edgebed.runtimes.live.endpoint import Complain, DealerEndpoint, RouterEndpoint, monitored
from edgebed.wire.tensors import Buffer

PACKET_BYTES = SEGMENT_BYTES + HEADER_BYTES
SILENCE_S = 4.0
"""Seconds for which a living server may be silent to a node that waits, besides the time of `SILENT_PACKETS` packets.
"""
SILENT_PACKETS = 8
UNANSWERED_MIN = 2
"""Number of unanswered probes of the kernel before a connection counts as dead: a slow link is silent for long, but
answers."""


def patience_s(*links: LinkState) -> float:
    """Seconds for which a living server is silent at most, given the links on the way."""
    packet_s = sum(
        PACKET_BYTES * 8 / rate + link.latency_s
        for link in links
        for rate in (link.uplink_bit_s or math.inf, link.downlink_bit_s or math.inf, *dict(link.narrowed).values())
    )
    return SILENCE_S + SILENT_PACKETS * packet_s


class DataDealer(DealerEndpoint):
    """One connection, to a node that may move."""

    def __init__(
        self, socket: zmq.Socket[bytes], complain: Complain, host: str = "server", *, always_asks: bool = False
    ) -> None:
        """`always_asks`: whatever is on its way matters, in either direction, and not only an awaited answer."""
        super().__init__(socket, host, "data", complain)
        self.always_asks = always_asks
        self.address = ""
        self.connection: TcpConnection | None = None
        """The connection; None while there is none."""
        self.is_connected = False
        """Whether messages can leave. Before that the socket might still give them to the connection that has ended."""
        self.is_asking = False
        """Whether something has been asked for, and no answer has come."""
        self.has_lost = False
        """Whether the connection broke while an answer was awaited."""
        self.is_back = False

    @property
    def is_encrypted(self) -> bool:
        """Whether what it sends travels encrypted."""
        return self.socket.getsockopt(zmq.MECHANISM) == zmq.CURVE

    def move(self, address: str) -> None:
        """Connect to a server, and give up the previous one and what was to go there; do nothing if it is the same."""
        if address == self.address:
            return
        if self.address:
            self.socket.disconnect(self.address)
            self.outbox.clear()
        self.has_lost = self.is_back = self.is_connected = False
        self.is_asking = self.always_asks
        self.address, self.connection = address, None
        self.look()  # from here on the connection's end is noticed
        self.socket.connect(address)

    def ask(self) -> None:
        """Note that something is asked for now; call `look` before."""
        if not self.always_asks:
            self.is_asking, self.has_lost, self.is_back = True, False, False

    def answered(self) -> None:
        """Note that an answer has come."""
        self.is_asking = self.always_asks

    def look(self) -> bool:
        """Update the connection's state; return whether it has broken since the last look."""
        broke = False
        for event in monitored(self.monitor):
            if event["endpoint"].decode() != self.address:
                continue  # the previous server
            if event["event"] == zmq.EVENT_CONNECTED:
                choose_congestion_control(event["value"])
                self.connection = TcpConnection(event["value"])
            elif event["event"] == zmq.EVENT_DISCONNECTED:
                broke, self.connection, self.is_connected = True, None, False
                self.has_lost = self.has_lost or self.is_asking or self.is_back
                self.is_asking = self.is_back = False
                self.outbox.clear()
            else:
                self.is_connected = True
                self.is_back, self.has_lost = self.has_lost, False
                self.is_asking = self.is_asking or self.always_asks
        self.flush()
        return broke

    def flush(self) -> None:
        """Send what is waiting, once there is a connection."""
        if self.is_connected and self.outbox:
            self.socket.getsockopt(zmq.EVENTS)  # makes it learn of the connection that has ended, and of the new one
            super().flush()

    def take_back(self) -> bool:
        """Whether there is a new connection in place of one that broke while an answer was awaited; true once."""
        is_back, self.is_back = self.is_back, False
        return is_back

    def end_if_dead(self, patience_s: float) -> None:
        """End the connection if an answer is awaited and the other end has been silent for too long, though asked."""
        progress = self.connection.look() if self.is_asking and self.connection else None
        if progress and progress.silent_s > patience_s and progress.unanswered >= UNANSWERED_MIN:
            self.end()

    def end(self) -> None:
        """End the connection; what has not left never will, and another one is made."""
        if self.connection:
            self.connection.reset()


class DataRouter(RouterEndpoint):
    """The server's end of the data network: a connection for each worker.

    The kernel gives a connection the number of one that has ended, so whose each is depends on the order of things: a
    message of another peer over the same number shows that the one before has ended, and the monitor will say so. Of a
    peer that is back over another connection, the end of the old one, which may come much later, is no news.
    """

    watched = RouterEndpoint.watched | zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED

    def __init__(self, socket: zmq.Socket[bytes], complain: Complain) -> None:
        super().__init__(socket, "data", complain)
        self.owners: dict[int, deque[str]] = {}
        """Peers by number of the connection: the present one, after those that had it and are not known to have ended.
        """
        self.numbers: dict[str, int] = {}
        """Number of each peer's last connection."""
        self.said: set[str] = set()
        """Peers that sent something since `broken` was called."""
        self.look()  # from here on connections are noticed

    def sort_out(self, parts: list[zmq.Frame]) -> tuple[str, list[Buffer]]:
        """Note the connection that a message came over; return the message's peer and frames."""
        peer, buffers = super().sort_out(parts)
        try:
            number = int(parts[0].get(zmq.SRCFD))
        except zmq.ZMQError:  # the message does not say, as a stranger's may not
            return peer, buffers
        owners = self.owners.setdefault(number, deque())
        if not owners or owners[-1] != peer:
            owners.append(peer)
        self.numbers[peer] = number
        self.said.add(peer)
        return peer, buffers

    def broken(self) -> Sequence[str]:
        """Peers whose last connection has ended since the last call.

        Call it after `receive`: what came over a connection comes before its end.
        """
        ended: list[tuple[int, str]] = []
        for event in self.look():
            number = event["value"]
            if event["event"] == zmq.EVENT_ACCEPTED:
                choose_congestion_control(number)
                self._come_back(number, ended)
            elif owners := self.owners.get(number):
                ended.append((number, owners.popleft()))
                if not owners:
                    del self.owners[number]
        self.said.clear()
        gone = [peer for number, peer in ended if self.numbers.get(peer) == number]
        for peer in gone:
            del self.numbers[peer]
        return gone

    def _come_back(self, number: int, ended: list[tuple[int, str]]) -> None:
        """Give a connection that has the number of one that ended just now, as after a freeze, to the same peer.

        It is the peer's if the peer has sent something since, and nobody else has over this connection.
        """
        for k, (old, peer) in enumerate(ended):
            if old == number and number not in self.owners and peer in self.said:
                self.owners[number] = deque([peer])
                del ended[k]
                return

    def end(self) -> None:
        """End all connections over which something has come."""
        for number in self.numbers.values():
            with borrowed(number) as (_, connection):
                if connection is not None:
                    reset(connection)
