"""Messages without an end: connections that bring bytes, of which no message comes, are ended; so are too many.

libzmq collects the frames of a message until the last has come, and bounds each frame alone; whoever has the secret of
the run could have it collect for ever. The kernel knows how many bytes each connection has brought. What came since its
last message, and waits in no buffer of the kernel, is in the memory of this process: that is bounded by what a message
of the run can have.

A thread looks, so that a busy node is no open door. It finds the connections among the open files, and looks at all of
them every second, or as soon as the process has grown; for LOOKING of the time at most, unless something is suspicious.
"""

import errno
import fcntl
import os
import socket
import struct
import termios
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

from edgebed.emulation.tcp import COPYING, abort, borrowed, received_bytes

MEMORY = Path("/proc/self/statm")
TICK_S = 0.01
LOOK_S = 1.0
"""Seconds from one look at all connections to the next, if the process has not grown."""
GROWN_BYTES = 2_000_000
LOOKING = 0.05
SLACK_BYTES = 64 * 1024
"""Bytes of a handshake, of frames' heads and of small messages."""
PEERS_MIN, CONNECTIONS_A_PEER = 16, 4
"""Connections that may be open at a door, by the nodes that connect to it: some come again before the last one ends."""
MESSAGES = 2
"""Largest messages that a connection may bring before one is taken from it."""
GAP = 64
"""Numbers without an open file, in a row, after which there is none."""
SO_COOKIE = 57  # asm-generic/socket.h, since Linux 4.12
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Door:
    """An address at which this process listens, and what may come in there."""

    address: str
    """As ZeroMQ has it, e.g. `tcp://10.0.0.2:5555`."""
    limit: int
    """Bytes that one connection may bring before a message comes of them."""
    at_once: int
    """Connections that may come near the limit together."""
    most: int
    """Connections that may be open together."""
    is_patient: bool = False
    """Whether messages may wait to be taken, as from a peer that waits for no answer: then nothing is concluded before
    all have been."""
    taken: dict[int, int] = field(default_factory=dict)
    """Number of messages that were taken from each connection, by its file."""
    seen: dict[int, int] = field(default_factory=dict)
    """`taken` as it was when the connections were last looked at."""
    drained: int = 0
    """How often no message was left to be taken."""
    ended: list[str] = field(default_factory=list)
    """What to complain of."""

    @classmethod
    def for_messages(cls, address: str, largest: int, at_once: int, *, peers: int, is_patient: bool = False) -> "Door":
        """A door for messages of at most that many bytes, from so many nodes."""
        most = CONNECTIONS_A_PEER * (PEERS_MIN + peers)
        return cls(address, MESSAGES * largest + SLACK_BYTES, at_once, most, is_patient)

    def took(self, number: int) -> None:
        """Note that a message was taken from a connection."""
        self.taken[number] = self.taken.get(number, 0) + 1

    def complaints(self) -> Sequence[str]:
        """What was done since the last call."""
        found = self.ended[:]
        del self.ended[: len(found)]
        return found

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.address.removeprefix("tcp://").rpartition(":")
        return host, int(port)


@dataclass
class Connection:
    """What is known of a connection."""

    door: Door | None
    """None: it is no connection of a door."""
    cookie: bytes
    """What the kernel tells it from all others by."""
    taken: int = 0
    drained: int = 0
    """The door's count when a message was last seen to have been taken."""
    begin: int = 0
    """Bytes that it had brought by then."""
    has_spoken: bool = False
    """Whether a message was taken from it."""
    held: int = 0
    """Bytes since then; 0 where it is not clear that they are not whole messages."""


class Guard:
    """Ends connections that bring too much of a message which does not end."""

    def __init__(self, *doors: Door) -> None:
        self.doors = {door.place: door for door in doors}
        self.connections: dict[int, Connection] = {}
        """By their number among the open files."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)

    def start(self) -> "Guard":
        """Begin to look."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        before, next_s, rest_until_s = 0, 0.0, 0.0
        with MEMORY.open("rb") as statm:
            while not self._is_over.wait(TICK_S):
                now = time.monotonic()
                grown = int(os.pread(statm.fileno(), 100, 0).split()[1]) * PAGE_BYTES
                before = min(before, grown)
                if now < rest_until_s or (now < next_s and grown < before + GROWN_BYTES):
                    continue
                began_s = time.thread_time()
                with suppress(OSError):  # a connection has ended meanwhile
                    self.look()
                before, next_s = grown, now + LOOK_S
                is_suspicious = any(each.door and each.held > each.door.limit / 2 for each in self.connections.values())
                rest_until_s = 0.0 if is_suspicious else now + (time.thread_time() - began_s) / LOOKING

    def look(self) -> None:
        """Look at all connections, and end those that hold too much."""
        self._look_at_all()
        for door in self.doors.values():
            door.seen = dict(door.taken)
            here = {number: each.held for number, each in self.connections.items() if each.door is door}
            for number, held in list(here.items()):
                if held > door.limit:
                    here[number] = self._end(number, least=door.limit)
            # those of whom nothing was ever taken come first, and of these the largest
            order = sorted(here, key=lambda number: (number not in door.taken, here[number]))
            while order and sum(here.values()) > door.limit * door.at_once:
                here[order[-1]] = self._end(order.pop(), least=0)
            self._end_beyond(door, sorted(here))

    def _end_beyond(self, door: Door, here: list[int]) -> None:
        """End connections of which no message was ever taken, the last first, where a door has too many in all."""
        silent = [number for number in here if not self.connections[number].has_spoken]
        kept = max(0, len(silent) - max(0, len(here) - door.most))
        if ended := [number for number in silent[kept:] if self._abort(number)]:
            door.ended.append(f"ended: {len(ended)} of more than {door.most} connections, which said nothing")

    def _look_at_all(self) -> None:
        """Look at all open files: the kernel gives the lowest free number, so that gaps are small.

        What is called here keeps the interpreter, so that it takes no longer where another thread is busy.
        """
        found: dict[int, Connection] = {}
        number, end = 0, max(self.connections, default=0) + GAP
        with COPYING:
            while number < end:
                is_open = True
                try:
                    found[number] = self._look_at(number)
                except OSError as error:  # it is not open, or no socket
                    is_open = error.errno != errno.EBADF
                if is_open:
                    end = max(end, number + GAP)
                number += 1
        self.connections = found

    def _look_at(self, number: int) -> Connection:
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=number)
        try:
            cookie = one.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8)
            known = self.connections.get(number)
            if known is None or known.cookie != cookie:
                known = self._new(number, cookie, one)
            if known.door:
                known.held = self._held(known, number, received_bytes(one) or 0)
            return known
        finally:
            one.detach()

    def _new(self, number: int, cookie: bytes, connection: socket.socket) -> Connection:
        """A connection that was not there before: what was taken from another one of its number is not its own."""
        try:
            connection.getpeername()  # a socket that listens has none
            host, port = connection.getsockname()[:2]
        except (OSError, ValueError):
            return Connection(None, cookie)
        door = self.doors.get((host, port)) or self.doors.get(("0.0.0.0", port))  # noqa: S104 - compared, not bound
        return Connection(door, cookie, door.seen.get(number, 0), door.drained) if door else Connection(None, cookie)

    def _held(self, known: Connection, number: int, received: int) -> int:
        """Bytes that have come since the last message was taken, at most."""
        door = known.door
        assert door is not None
        taken = door.taken.get(number, 0)
        if taken != known.taken:
            known.taken, known.drained, known.begin, known.has_spoken = taken, door.drained, received, True
        is_sure = not door.is_patient or door.drained > known.drained + 1
        return max(0, received - known.begin) if is_sure else 0

    def _end(self, number: int, least: int) -> int:
        """End a connection that holds more than `least` without what waits in the kernel; return what it holds then."""
        known = self.connections[number]
        assert known.door is not None
        with borrowed(number) as (_, connection):
            if not self._is_still(connection, number):
                return 0
            waiting = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))[0]
            if known.held - waiting <= least:
                return known.held
            abort(connection)
        known.door.ended.append(f"ended: it had brought {known.held:,} bytes without the end of a message")
        return 0

    def _abort(self, number: int) -> bool:
        """End a connection; whether it was still there."""
        with borrowed(number) as (_, connection):
            if not self._is_still(connection, number):
                return False
            abort(connection)
        return True

    def _is_still(self, connection: socket.socket | None, number: int) -> TypeGuard[socket.socket]:
        """Whether an open file is the connection that was looked at."""
        known = self.connections[number]
        return connection is not None and connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8) == known.cookie
