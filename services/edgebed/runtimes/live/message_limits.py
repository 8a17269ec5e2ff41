"""Messages without an end: connections that bring bytes, of which no message comes, are ended, and so are too many.

libzmq collects the frames of a message until the last has come, and bounds each frame alone; whoever has the secret of
the run could have it collect for ever. The kernel knows how many bytes each connection has brought. What came since its
last message, and waits in no buffer of the kernel, is in the memory of this process: that is bounded by what a message
of the run can have.

A thread looks, so that a busy node has limits, too. It finds the connections among the open files, and looks at all of
them every second, or as soon as the process has grown or has many files open; for LOOKING of the time at most, unless
something is suspicious.

Each node has a few connections at most, whatever it says over them: of more, those that came last are ended. So is one
of a peer that does not read what it is sent.
"""

import errno
import fcntl
import itertools
import os
import resource
import socket
import struct
import termios
import threading
import time
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

from edgebed.emulation.tcp import COPYING, abort, borrowed, received_bytes
from edgebed.runtimes.live.authentication import node_of
from edgebed.runtimes.live.sockets import FILES_BESIDE

MEMORY = Path("/proc/self/statm")
TICK_S = 0.01
LOOK_S = 1.0
"""Seconds from one look at all connections to the next, if the process has not grown."""
GROWN_BYTES, GROWN_FILES = 2_000_000, 64
LOOKING = 0.05
SLACK_BYTES = 64 * 1024
"""Bytes of a handshake, of frames' heads and of small messages."""
STRANGERS_MAX, AGAIN = 16, 4
"""Connections of nobody whom a socket knows; and how many a node may have for each that it uses, since it may come
again before the last one ends."""
MESSAGES = 2
"""Largest messages that a connection may bring before one is taken from it."""
GAP = 64
"""Numbers without an open file, in a row, after which there is none."""
SO_COOKIE = 57  # asm-generic/socket.h, since Linux 4.12
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class SocketLimits:
    """An address at which this process listens, and what may come in there."""

    address: str
    """As ZeroMQ has it, e.g. `tcp://10.0.0.2:5555`."""
    limit: float
    """Bytes that one connection may bring before a message comes of them."""
    at_once: int
    """Connections that may come near the limit together."""
    nodes: Collection[str] = ()
    """Names of the nodes that connect to this socket."""
    each: int = AGAIN
    """Connections that each of these nodes may have."""
    most: int = STRANGERS_MAX
    """Connections that may be open together."""
    is_patient: bool = False
    """Whether messages may wait to be taken, as from a peer that waits for no answer: then nothing is concluded before
    all have been."""
    taken: dict[int, int] = field(default_factory=dict)
    """Number of messages that were taken from each connection, by its file."""
    owners: dict[int, str] = field(default_factory=dict)
    """Identity of the connection that the last of these was from."""
    unread: set[str] = field(default_factory=set)
    """Identities of peers that do not read what they are sent."""
    seen: dict[int, int] = field(default_factory=dict)
    """`taken` as it was when the connections were last looked at."""
    drained: int = 0
    """How often no message was left to be taken."""
    was_full: bool = False
    """Whether there were too many connections when they were last looked at."""
    ended: list[str] = field(default_factory=list)
    """What to complain of."""

    @classmethod
    def for_messages(
        cls,
        address: str,
        largest: float,
        at_once: int,
        *,
        nodes: Collection[str],
        used: int = 1,
        is_patient: bool = False,
    ) -> "SocketLimits":
        """Limits for messages of at most that many bytes, from nodes that each use so many connections.

        No more are let in than this process may have files.
        """
        most, (files, _) = STRANGERS_MAX + len(nodes) * used, resource.getrlimit(resource.RLIMIT_NOFILE)
        room = AGAIN * most if files == resource.RLIM_INFINITY else min(AGAIN * most, files - 2 * FILES_BESIDE)
        limit = MESSAGES * largest + SLACK_BYTES
        return cls(address, limit, at_once, nodes, AGAIN * used, max(most, room), is_patient)

    def took(self, number: int, peer: str) -> None:
        """Note that a message of a peer was taken from a connection."""
        self.taken[number] = self.taken.get(number, 0) + 1
        self.owners[number] = peer

    def owner(self, number: int) -> tuple[str, int]:
        """Return whose a connection is that has spoken, and how many of them may be; all strangers are one."""
        name = node_of(self.owners.get(number, ""))
        return (name, self.each) if name in self.nodes else ("", STRANGERS_MAX)

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

    limits: SocketLimits | None
    """None: it is no connection of a socket with limits."""
    cookie: bytes
    """What the kernel tells it from all others by."""
    order: int = 0
    """Which it was, of all that were found."""
    taken: int = 0
    drained: int = 0
    """The socket's count when a message was last seen to have been taken."""
    begin: int = 0
    """Bytes that it had brought by then."""
    has_spoken: bool = False
    """Whether a message was taken from it."""
    held: int = 0
    """Bytes since then; 0 where it is not clear that they are not whole messages."""


class ConnectionLimiter:
    """Ends connections that bring too much of a message which does not end."""

    def __init__(self, *all_limits: SocketLimits) -> None:
        self.all_limits = {limits.place: limits for limits in all_limits}
        self.connections: dict[int, Connection] = {}
        """By their number among the open files."""
        self._order = itertools.count()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)

    def start(self) -> "ConnectionLimiter":
        """Begin to look."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        before, files, next_s, rest_until_s = 0, 0, 0.0, 0.0
        with MEMORY.open("rb") as statm:
            while not self._is_over.wait(TICK_S):
                now = time.monotonic()
                grown = int(os.pread(statm.fileno(), 100, 0).split()[1]) * PAGE_BYTES
                number = _open_files(statm.fileno())
                before, files = min(before, grown), min(files, number)
                is_due = now >= next_s or grown >= before + GROWN_BYTES or number >= files + GROWN_FILES
                if now < rest_until_s or not is_due:
                    continue
                began_s = time.thread_time()
                with suppress(OSError):  # a connection has ended meanwhile
                    self.look()
                before, files, next_s = grown, number, now + LOOK_S
                rest_until_s = 0.0 if self._is_suspicious() else now + (time.thread_time() - began_s) / LOOKING

    def _is_suspicious(self) -> bool:
        """Whether a connection is half way to being ended, or a socket had too many."""
        is_full = any(limits.was_full for limits in self.all_limits.values())
        return is_full or any(each.limits and each.held > each.limits.limit / 2 for each in self.connections.values())

    def look(self) -> None:
        """Look at all connections, and end those that hold too much, or are too many."""
        self._look_at_all()
        for limits in self.all_limits.values():
            limits.seen = dict(limits.taken)
            here = {number: each.held for number, each in self.connections.items() if each.limits is limits}
            for number, held in list(here.items()):
                if held > limits.limit:
                    here[number] = self._end(number, least=limits.limit)
            # those of whom nothing was ever taken come first, and of these the largest
            order = sorted(here, key=lambda number: (number not in limits.taken, here[number]))
            while order and sum(here.values()) > limits.limit * limits.at_once:
                here[order[-1]] = self._end(order.pop(), least=0)
            self._end_beyond(limits, sorted(here, key=lambda number: self.connections[number].order))

    def _end_beyond(self, limits: SocketLimits, here: list[int]) -> None:
        """End connections that are too many, the last first: of a node, whatever it said, and in all of the silent."""
        unread, limits.unread = limits.unread, set()
        own, ended = Counter[str](), Counter[str]()
        silent = [number for number in here if not self.connections[number].has_spoken]
        for number in here:
            if self.connections[number].has_spoken:
                name, most = limits.owner(number)
                own[name] += 1
                if limits.owners.get(number) in unread and self._abort(number):
                    limits.ended.append(f"ended: {limits.owners[number]!r} does not read what it is sent")
                elif own[name] > most:
                    ended[name] += self._abort(number)
        for name, count in ended.items():
            most = limits.each if name else STRANGERS_MAX
            limits.ended.append(
                f"ended: {count} of {own[name]} connections of {name or 'strangers'}, which may have {most}"
            )
        left = max(0, limits.most - own.total() + ended.total())
        if count := sum(map(self._abort, silent[left:])):
            limits.ended.append(f"ended: {count} of more than {limits.most} connections, which said nothing")
        limits.was_full = bool(count or ended)

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
            if known.limits:
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
        limits = self.all_limits.get((host, port)) or self.all_limits.get(("0.0.0.0", port))  # noqa: S104 - compared, not bound
        if limits is None:
            return Connection(None, cookie)
        return Connection(limits, cookie, next(self._order), limits.seen.get(number, 0), limits.drained)

    def _held(self, known: Connection, number: int, received: int) -> int:
        """Bytes that have come since the last message was taken, at most."""
        limits = known.limits
        assert limits is not None
        taken = limits.taken.get(number, 0)
        if taken != known.taken:
            known.taken, known.drained, known.begin, known.has_spoken = taken, limits.drained, received, True
        is_sure = not limits.is_patient or limits.drained > known.drained + 1
        return max(0, received - known.begin) if is_sure else 0

    def _end(self, number: int, least: float) -> int:
        """End a connection that holds more than `least` without what waits in the kernel; return what it holds then."""
        known = self.connections[number]
        assert known.limits is not None
        with borrowed(number) as (_, connection):
            if not self._is_still(connection, number):
                return 0
            waiting = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))[0]
            if known.held - waiting <= least:
                return known.held
            abort(connection)
        known.limits.ended.append(f"ended: it had brought {known.held:,} bytes without the end of a message")
        return 0

    def _abort(self, number: int) -> bool:
        """End a connection; whether it was still there."""
        try:
            with borrowed(number) as (_, connection):
                return self._abort_if_still(connection, number)
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=number)  # no copy
        try:
            return self._abort_if_still(connection, number)
        finally:
            connection.detach()

    def _abort_if_still(self, connection: socket.socket | None, number: int) -> bool:
        if is_still := self._is_still(connection, number):
            abort(connection)
        return is_still

    def _is_still(self, connection: socket.socket | None, number: int) -> TypeGuard[socket.socket]:
        """Whether an open file is the connection that was looked at."""
        known = self.connections[number]
        return connection is not None and connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8) == known.cookie


def _open_files(any_file: int) -> int:
    """Return about how many files are open: the kernel gives the lowest free number."""
    try:
        number = os.dup(any_file)
    except OSError:  # none is free
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    os.close(number)
    return number
