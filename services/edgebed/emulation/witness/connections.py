"""What a namespace's connections of TCP have carried, as the kernel tells whoever asks in it (sock_diag), and the rest.

    dump        all connections that stand, whosever they are, with their TCP_INFO, at each look
    broadcast   each that ends, with its last TCP_INFO, so that none is too short to be counted

The kernel keeps what it broadcasts for a reader of so much memory only: where thousands of connections end between two
looks, some are known as they were last seen, or not at all. A kernel that broadcasts nothing leaves all of them so.

Numbers and names: linux/sock_diag.h, inet_diag.h, tcp.h.
"""

import errno
import ipaddress
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from edgebed.core.recorded.measured import Bypass, Connections, told_after_s
from edgebed.emulation.netlink import (
    BadAnswerError,
    LinkReader,
    Netlink,
    Payload,
    attributes,
    is_own_ifb,
    messages,
    unpack,
)
from edgebed.emulation.witness.usage import EARLY_S

_NETLINK_SOCK_DIAG, _BY_FAMILY = 4, 20
_ENDED_GROUPS = 1 << 0 | 1 << 2  # of IPv4 and of IPv6
_ENDED_BUFFER_BYTES = 4 << 20
_SO_RCVBUFFORCE = 33
_REQUEST = struct.Struct("=BBBxI48x")
_LISTENING = 1 << 10  # TCP_LISTEN
_STATES = sum(1 << state for state in (1, 2, 4, 5, 7, 8, 9, 11))  # all that have carried, or may carry, anything
_WITH_INFO = 1 << 1
_CONNECTION = struct.Struct("=B7x16s16s4x8s20x")
"""Fields of inet_diag_msg: family, near and far address, and the cookie, which no other socket ever has."""
_PORT = struct.Struct(">4xH")
"""Its near port."""
_INFO = 2
_TCP_INFO = struct.Struct("=120xQQ12xI")
"""tcpi_bytes_acked, tcpi_bytes_received, tcpi_min_rtt in microseconds (since Linux 4.6)."""
_NO_ROUND_TRIP = (0, 0xFFFF_FFFF)
_MAPPED = bytes(10) + b"\xff\xff"
"""What an address of IPv4 begins with that a socket of IPv6 uses."""


Told = Connections | Bypass


class Connection(NamedTuple):
    """What a connection has carried until now."""

    peer: bytes
    """Address of the other end."""
    acked_bytes: int
    received_bytes: int
    round_trip_us: int | None
    """The smallest; the kernel knows that of the last minutes."""

    def then(self, later: "Connection") -> "Connection":
        """What the same connection has carried at a later time."""
        trips = [each for each in (self.round_trip_us, later.round_trip_us) if each is not None]
        return later._replace(round_trip_us=min(trips, default=None))


class ConnectionMeter:
    """Journals connections with other nodes, and what passed other interfaces; made inside the namespace."""

    def __init__(self, reader: LinkReader, names: Mapping[str, str]) -> None:
        """`reader` reads the node's interface; `names` has the nodes by their addresses. Raises OSError."""
        self.reader = reader
        self.names = {ipaddress.ip_address(address).packed: node for address, node in names.items()}
        self._kernel = Netlink(_NETLINK_SOCK_DIAG)
        self._ended = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, _NETLINK_SOCK_DIAG
        )
        with suppress(OSError):  # a kernel that does not broadcast, or no right to so large a buffer
            self._ended.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ENDED_BUFFER_BYTES)
            self._ended.bind((0, _ENDED_GROUPS))
        self._standing: dict[bytes, Connection] = {}
        """Connections that have not ended as far as is known, by their cookies."""
        self._sums: dict[bytes, Connections] = {}
        """What those that have ended have carried, by the address of the other end."""
        self._bypassed: dict[str, int] = {}
        self._told: dict[str, Told] = {}
        """What was journaled last, by peer or interface."""
        self.first_s: float | None = None
        self.next_s = 0.0

    def read(self, now: float, *, is_last: bool) -> Iterator[Told]:
        """Yield what has changed, whenever a tenth of the time has been added, or ten seconds, and at the end.

        Raises OSError and BadAnswerError where the kernel does not tell of interfaces.
        """
        self._look()
        if now < self.next_s and not is_last:
            return
        self.first_s = now if self.first_s is None else self.first_s
        self.next_s = now + told_after_s(now - self.first_s) - EARLY_S
        for name, size in self._bypassed.items():
            yield from self._news(name, Bypass(interface=name, bytes=size))
        for each in self._peers():
            yield from self._news(each.peer, each)

    def listens(self, port: int) -> bool:
        """Whether somebody listens on a TCP port; not known, no."""
        with suppress(OSError, BadAnswerError):
            for family in (socket.AF_INET, socket.AF_INET6):
                request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, _LISTENING)
                if any(unpack(_PORT, payload) == (port,) for payload in self._kernel.dump(_BY_FAMILY, request)):
                    return True
        return False

    def _news(self, subject: str, record: Told) -> Iterator[Told]:
        if self._told.get(subject) != record:
            self._told[subject] = record
            yield record

    def _look(self) -> None:
        for interface in self.reader.interfaces().values():
            size = interface.received + interface.sent
            if size and interface.name not in ("lo", self.reader.interface) and not is_own_ifb(interface.name):
                self._bypassed[interface.name] = max(size, self._bypassed.get(interface.name, 0))
        with suppress(OSError, BadAnswerError):  # no more is told, or this kernel tells nothing of connections
            for family in (socket.AF_INET, socket.AF_INET6):
                request = _REQUEST.pack(family, socket.IPPROTO_TCP, _WITH_INFO, _STATES)
                for cookie, connection in filter(None, map(read_connection, self._kernel.dump(_BY_FAMILY, request))):
                    self._standing[cookie] = self._standing.get(cookie, connection).then(connection)
            while True:
                self._note_ended()

    def _note_ended(self) -> None:
        """Take in one broadcast. Raises BlockingIOError where there is none."""
        try:
            data = self._ended.recv(1 << 16)
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # more than there was memory for: the next one that there was
                raise
            return
        for _, _, payload in messages(data):
            if found := read_connection(payload):
                cookie, connection = found
                connection = self._standing.pop(cookie, connection).then(connection)
                self._sums[connection.peer] = self._with(self._sums.get(connection.peer), connection)

    def _peers(self) -> list[Connections]:
        """What there is of each peer."""
        sums = dict(self._sums)
        for connection in self._standing.values():
            sums[connection.peer] = self._with(sums.get(connection.peer), connection)
        return list(sums.values())

    def _with(self, before: Connections | None, one: Connection) -> Connections:
        """What the connections with a peer have carried, with one more."""
        before = before or Connections(peer=self._name(one.peer), count=0, acked_bytes=0, received_bytes=0)
        trips = [] if one.round_trip_us is None else [one.round_trip_us * 1e-6]
        trips += [] if before.round_trip_s is None else [before.round_trip_s]
        return Connections(
            peer=before.peer,
            count=before.count + 1,
            acked_bytes=before.acked_bytes + one.acked_bytes,
            received_bytes=before.received_bytes + one.received_bytes,
            round_trip_s=min(trips, default=None),
        )

    def _name(self, peer: bytes) -> str:
        return self.names.get(peer) or str(ipaddress.ip_address(peer))


def read_connection(payload: Payload) -> tuple[bytes, Connection] | None:
    """Read a connection, and its cookie; None if it has no other node at its end. Raises BadAnswerError."""
    family, near, far, cookie = unpack(_CONNECTION, payload)
    near, far = _address(family, near), _address(family, far)
    other = ipaddress.ip_address(far)
    if near == far or other.is_loopback or other.is_unspecified:
        return None
    info = attributes(payload[_CONNECTION.size :]).get(_INFO, b"")
    acked, received, round_trip_us = unpack(_TCP_INFO, info)
    return cookie, Connection(far, acked, received, None if round_trip_us in _NO_ROUND_TRIP else round_trip_us)


def _address(family: int, data: bytes) -> bytes:
    if family == socket.AF_INET:
        return data[:4]
    return data[12:] if data.startswith(_MAPPED) else data
