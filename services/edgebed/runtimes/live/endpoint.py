"""One ZeroMQ socket as a place where messages come from and go to.

It decodes what arrives, counts and drops what cannot be read, and never blocks: a message that a peer does not take
waits (DEALER) or is dropped with a complaint (ROUTER), as its kind demands.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import zmq
import zmq.utils.monitor

from edgebed.core.records import Unauthenticated
from edgebed.roles.events import MessageReceived
from edgebed.runtimes.live.authentication import node_of
from edgebed.runtimes.live.message_limits import SocketLimits
from edgebed.wire import frames as codec
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import AnyMessage
from edgebed.wire.tensors import Buffer

COMPLAINT_LENGTH_MAX = 200  # the reason may quote a stranger

REFUSED = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
"""Events of a handshake that was refused. What is no ZMTP at all, or says nothing, has none: it is only closed."""

_NOW, _NOW_WITH_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)  # as integers: enumerations take a while

Complain = Callable[[str], None]
"""A function called for each message that had to be dropped, with the reason."""


class Endpoint:
    """Base of all endpoints: receives without blocking, and drops what cannot be read."""

    def __init__(self, socket: zmq.Socket[bytes], network: str, complain: Complain) -> None:
        """`network` is `data` or `management`: it decides which messages are understood."""
        self.socket = socket
        self.network = network
        self.complain = complain

    def receive(self, limit: int = 64) -> Iterator[MessageReceived]:
        """Up to `limit` of the messages that have arrived."""
        for _ in range(limit):
            try:
                parts = receive_parts(self.socket)
            except zmq.Again:
                self.drained()
                return
            peer, buffers = self.sort_out(parts)
            try:
                message, payload = codec.decode(buffers, self.network)
            except RemoteWireError as error:
                self.complain(f"from {peer!r}: {error}"[:COMPLAINT_LENGTH_MAX])
                continue
            yield MessageReceived(peer, message, payload, codec.size_bytes(buffers))

    def drained(self) -> None:
        """Note that no message is left to be received now."""

    def sort_out(self, parts: list[zmq.Frame]) -> tuple[str, list[Buffer]]:
        """The peer that the message is from, and its own frames."""
        raise AssertionError(f"{type(self).__name__} does not say whom a message is from")


class RouterEndpoint(Endpoint):
    """An endpoint that binds: many peers, each named by its connection's identity."""

    watched = REFUSED
    """Events that the monitor reports."""

    def __init__(self, socket: zmq.Socket[bytes], network: str, complain: Complain) -> None:
        super().__init__(socket, network, complain)
        self.num_refused = 0
        self.limits: SocketLimits | None = None
        """What guards it against messages without an end; None: nothing does."""

    @cached_property
    def monitor(self) -> zmq.Socket[bytes]:
        """A socket that reports what becomes of connections, from the first time it is asked for."""
        return self.socket.get_monitor_socket(self.watched)

    def look(self) -> list[dict[str, Any]]:
        """Count the connections that were refused since the last call; return what else the monitor reports."""
        for reason in self.limits.complaints() if self.limits else ():
            self.complain(reason)
        others = []
        for event in monitored(self.monitor):
            if event["event"] & REFUSED:
                self.num_refused += 1
            else:
                others.append(event)
        return others

    def drained(self) -> None:
        """Note it for what guards the socket."""
        if self.limits:
            self.limits.drained += 1

    def refusals(self, socket: str) -> Iterator[Unauthenticated]:
        """The record of the connections refused since the last call, if any; `socket` is what it calls this one."""
        if self.num_refused:
            yield Unauthenticated(socket=socket, count=self.num_refused)
            self.num_refused = 0

    def receive(self, limit: int = 64) -> Iterator[MessageReceived]:
        """Up to `limit` of the messages that have arrived; one whose connection names another node is dropped.

        So no connection has the name of a node, or of the controller, by which hearts send.
        """
        for event in super().receive(limit):
            if node_of(event.peer) == event.message.sender:
                yield event
            else:
                claim = f"from {event.peer!r}: it says that it is {event.message.sender!r}"
                self.complain(claim[:COMPLAINT_LENGTH_MAX])

    def sort_out(self, parts: list[zmq.Frame]) -> tuple[str, list[Buffer]]:
        """The peer that the message is from, and its own frames; the first frame is the identity: any bytes."""
        peer = parts[0].bytes.decode("latin-1")
        if self.limits:
            with suppress(zmq.ZMQError):  # the message does not say, as a stranger's may not
                self.limits.took(int(parts[0].get(zmq.SRCFD)), peer)
        return peer, [part.buffer for part in parts[1:]]

    def send(self, to: str, message: AnyMessage, payload: Sequence[Buffer], *, is_vital: bool = True) -> int:
        """Send a message; return its bytes, or 0 if the peer is gone or does not read.

        Where the message `is_vital`, that is complained of. Who does not read on the management network is cut off.
        """
        buffers = codec.encode(message, payload)
        try:
            send_parts(self.socket, [to.encode("latin-1"), *buffers])
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            if self.limits and error.errno == zmq.EAGAIN and self.network == "management":
                self.limits.unread.add(to)  # its room is large; on the data network it is that of a message or two
            state = "is gone" if error.errno == zmq.EHOSTUNREACH else "does not read"
            if is_vital:
                self.complain(f"{type(message).__name__} to {to!r}: the peer {state}")
            return 0
        return codec.size_bytes(buffers)


class DealerEndpoint(Endpoint):
    """An endpoint that connects: one peer."""

    def __init__(self, socket: zmq.Socket[bytes], peer: str, network: str, complain: Complain) -> None:
        super().__init__(socket, network, complain)
        self.peer = peer
        self.outbox: deque[list[Buffer]] = deque()
        self.lost_at_s: float | None = None

    @cached_property
    def monitor(self) -> zmq.Socket[bytes]:
        """A socket that reports connections made and broken, from the first time it is asked for."""
        return self.socket.get_monitor_socket(
            zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
        )

    def sort_out(self, parts: list[zmq.Frame]) -> tuple[str, list[Buffer]]:
        """The one peer, and the message's frames."""
        return self.peer, [part.buffer for part in parts]

    def send(self, message: AnyMessage, payload: Sequence[Buffer]) -> int:
        """Send a message as soon as there is a connection; return its bytes."""
        buffers = codec.encode(message, payload)
        self.outbox.append(buffers)
        self.flush()
        return codec.size_bytes(buffers)

    def flush(self) -> None:
        """Send what is waiting, as far as the socket takes it."""
        while self.outbox:
            try:
                send_parts(self.socket, self.outbox[0])
            except zmq.Again:
                return
            self.outbox.popleft()

    def lost_for_s(self, now: float) -> float:
        """Seconds since the connection broke without coming back; 0 while it stands."""
        for event in monitored(self.monitor):
            if event["event"] == zmq.EVENT_DISCONNECTED:
                self.lost_at_s = now
            elif event["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self.lost_at_s = None
        return 0.0 if self.lost_at_s is None else now - self.lost_at_s


def receive_parts(socket: zmq.Socket[bytes]) -> list[zmq.Frame]:
    """All frames of the next message, without a copy; zmq.Again where none has come."""
    parts = [socket.recv(_NOW, copy=False)]
    while parts[-1].more:
        parts.append(socket.recv(_NOW, copy=False))
    return parts


def send_parts(socket: zmq.Socket[bytes], parts: Sequence[Buffer]) -> None:
    """Send the frames of a message, without a copy; zmq.Again where the socket takes no message now."""
    for part in parts[:-1]:
        socket.send(part, _NOW_WITH_MORE, copy=False)
    socket.send(parts[-1], _NOW, copy=False)


def monitored(monitor: zmq.Socket[bytes]) -> Iterator[dict[str, Any]]:
    """Events of a monitor, in order: event, value, endpoint."""
    while monitor.poll(0):
        yield zmq.utils.monitor.recv_monitor_message(monitor)  # type: ignore[misc]
