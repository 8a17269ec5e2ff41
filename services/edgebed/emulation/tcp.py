"""What TCP itself knows of this process's connections.

The connections of a listening socket are counted: all that they received, and of that the packets without payload,
which acknowledge what was sent, and cost a link as much as their headers. The connection to a server is watched: how
much has been acknowledged and has come, and whether the other end still answers.

ZeroMQ hides its connections, so they are found among the process's open files, whatever thread or network namespace
they belong to, and asked for TCP_INFO (`struct tcp_info` in linux/tcp.h). That needs no rights. ZeroMQ's monitors
report their numbers.
"""

import ctypes
import errno
import os
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from edgebed.core.framing import CONGESTION_CONTROLS, HEADER_BYTES

OPEN_FILES = Path("/proc/self/fd")
INFO_BYTES = 512  # more than any kernel fills; it says how much it has filled
STATE_LISTEN = 10
RECEIVED = struct.Struct("=128xQ4xI8xI")
"""tcpi_bytes_received (since Linux 4.1), tcpi_segs_in (4.2), tcpi_data_segs_in (4.6)."""
COUNTERS = struct.Struct("=24xI100xQ4xII20xQQ32xI")
"""tcpi_unacked, tcpi_bytes_received, tcpi_segs_in, tcpi_notsent_bytes (4.6), tcpi_busy_time and tcpi_rwnd_limited in
microseconds (4.10), tcpi_dsack_dups (4.19)."""
PROGRESS = struct.Struct("=2xBB48xII60xQQ")
"""tcpi_retransmits, tcpi_probes, tcpi_last_data_recv, tcpi_last_ack_recv, tcpi_bytes_acked, tcpi_bytes_received."""
NAME_BYTES = 16
"""Bytes of the name of a congestion control, at most."""


class Incoming(NamedTuple):
    """What came over connections, in bytes on the wire."""

    ack_bytes: int = 0
    """Bytes of packets without payload."""
    all_bytes: int = 0

    def plus(self, other: "Incoming") -> "Incoming":
        """Return the sum of two counts."""
        return Incoming(self.ack_bytes + other.ack_bytes, self.all_bytes + other.all_bytes)


NOTHING = Incoming()


class IncomingCount:
    """Counts what came over all connections, standing or ended, of the socket that listens at `address`.

    Of a connection that has ended counts what was seen of it when it was last read. The two or three packets that open
    and close a connection have no payload either and are counted.
    """

    def __init__(self, address: str, open_files: Path = OPEN_FILES) -> None:
        """`address` as ZeroMQ has it, e.g. `tcp://10.0.0.2:5555`; `open_files` lists this process's by number."""
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._place = (host, int(port))
        self._open_files = open_files
        self._standing: dict[int, Incoming | None] = {}
        """Bytes by inode of an open socket: what came over it so far; None if it is none of these connections."""
        self._ended = NOTHING
        """What came over connections that have ended."""

    def read(self) -> Incoming | None:
        """Return what has come so far; None where the kernel does not tell."""
        try:
            found = dict(filter(None, (self._look(int(file.name)) for file in self._open_files.iterdir())))
        except (OSError, struct.error):  # no such list, or a kernel that is too old
            return None
        over = (came or NOTHING for inode, came in self._standing.items() if inode not in found)
        self._ended = reduce(Incoming.plus, over, self._ended)
        self._standing = found
        return reduce(Incoming.plus, (came or NOTHING for came in found.values()), self._ended)

    def _look(self, number: int) -> tuple[int, Incoming | None] | None:
        """Return the inode of this open file, if it is a socket, and what came over it."""
        with borrowed(number) as (inode, connection):
            if connection is None:
                return None
            if inode in self._standing and self._standing[inode] is None:
                return inode, None
            return inode, self._came(connection, known=inode in self._standing)

    def _came(self, connection: socket.socket, *, known: bool) -> Incoming | None:
        """Return what came; None if this socket is none of the connections; struct.error if the kernel is too old."""
        try:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
            if info[0] == STATE_LISTEN or not (known or connection.getsockname()[:2] == self._place):
                return None
        except OSError:  # not of TCP at all
            return None
        payload, segments, data_segments = RECEIVED.unpack_from(info)
        return Incoming((segments - data_segments) * HEADER_BYTES, payload + segments * HEADER_BYTES)


def received_bytes(connection: socket.socket) -> int | None:
    """Bytes that came over a connection of TCP; None where the kernel does not tell."""
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        return int(RECEIVED.unpack_from(info)[0])
    except (OSError, struct.error):
        return None


class TcpCounters(NamedTuple):
    """What has become of a connection since it began."""

    inode: int
    """The open socket's: another connection has another one."""
    unacknowledged_s: float
    """Seconds in which something that was sent had not been acknowledged, while the other end had room for more."""
    came_bytes: int
    """Bytes on the wire of all packets that came."""
    repeated: int
    """Packets sent again that the other end had already, as it says (RFC 2883)."""
    is_waiting: bool
    """Whether something is sent, or to be sent, and not acknowledged."""
    congestion_control: str = ""
    """The connection's; one of `CONGESTION_CONTROLS` unless somebody else chose it."""


def counters(number: int) -> TcpCounters | None:
    """The counters of an open file's connection; None where it has ended, or the kernel does not tell."""
    with borrowed(number) as (inode, connection):
        if connection is None:
            return None
        try:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
            unacked, received, segments, unsent, busy_us, full_us, repeated = COUNTERS.unpack_from(info)
            name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME_BYTES)
        except (OSError, struct.error):
            return None
        came = received + segments * HEADER_BYTES
        return TcpCounters(
            inode, (busy_us - full_us) * 1e-6, came, repeated, unacked + unsent > 0, name.rstrip(b"\0").decode()
        )


def choose_congestion_control(number: int) -> None:
    """Give an open file's connection the first of `CONGESTION_CONTROLS` that it may have."""
    with borrowed(number) as (_, connection):
        if connection is None:  # it has ended
            return
        for name in CONGESTION_CONTROLS:
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
                return


class TcpProgress(NamedTuple):
    """How far a connection is."""

    acked: int
    """Bytes that the other end's kernel has acknowledged, since the connection began."""
    received: int
    """Bytes that came over the connection."""
    silent_s: float
    """Seconds since the last packet came."""
    unanswered: int
    """Number of times that the kernel has asked, or sent again, since then, in vain."""


class TcpConnection:
    """A connection of this process, by its number among the open files; what is there later may be another's."""

    def __init__(self, number: int) -> None:
        self.number = number
        with borrowed(number) as (self._inode, _):
            pass

    def look(self) -> TcpProgress | None:
        """Return how far the connection is; None where it has ended, or the kernel does not tell."""
        with borrowed(self.number) as (inode, connection):
            if connection is None or inode != self._inode:
                return None
            try:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
                retransmits, probes, data_ms, ack_ms, acked, received = PROGRESS.unpack_from(info)
            except (OSError, struct.error):
                return None
            return TcpProgress(acked, received, min(data_ms, ack_ms) / 1000, retransmits + probes)

    def reset(self) -> None:
        """End the connection at once: ZeroMQ notices, and makes another one; what has not left never will."""
        with borrowed(self.number) as (inode, connection):
            if connection is not None and inode == self._inode:
                reset(connection)


def reset(connection: socket.socket) -> None:
    """Have its owner close a connection, whose other end hears of it at once, or when it next says something."""
    with suppress(OSError):  # it has ended by itself
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RD)


def abort(connection: socket.socket) -> None:
    """End a connection at once, whatever has come and has not been read: its owner finds that there is none."""
    nowhere = struct.pack("=H14x", socket.AF_UNSPEC)
    ctypes.CDLL(None).connect(connection.fileno(), nowhere, len(nowhere))  # if it fails, there is none already


COPYING = threading.Lock()
"""Held while there is a copy of an open file: to whom looks through all open files, it would be another connection."""


@contextmanager
def borrowed(number: int) -> Iterator[tuple[int, socket.socket | None]]:
    """Yield the inode of an open file and an own socket that is the same connection; None if it is no socket.

    Its owner may close the original at any time, and open another under its number. One file is borrowed at a time.
    """
    with COPYING:
        yield from _copied(number)


def _copied(number: int) -> Iterator[tuple[int, socket.socket | None]]:
    try:
        copy = os.dup(number)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        yield 0, None
        return
    try:
        status = os.fstat(copy)
        if not stat.S_ISSOCK(status.st_mode):
            yield status.st_ino, None
            return
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=copy)
        try:
            yield status.st_ino, connection
        finally:
            connection.detach()
    finally:
        os.close(copy)
