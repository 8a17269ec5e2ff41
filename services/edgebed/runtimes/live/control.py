"""The control socket of a live trial: `control.sock` in the run's folder, through which the user acts on nodes by hand.

    --> {"injections": [{"node": "edge-0", "action": "kill"}]}
    <-- {"problem": "", "told": ""}     when it is done; else why it is not

One line each way, and the connection is closed. This is the controller's end; the other is `running/operate.py`. The
socket is there while a live trial goes on, and its mode lets the owner alone connect. Both ends reach it through an
open folder, since a path to a socket is at most 107 bytes long. A folder that is mounted elsewhere, too, works there
as well.
"""

import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Self

import msgspec

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.fault import Injection
from edgebed.roles.events import CommandReceived, CommandResult

SOCKET = "control.sock"
LINE_MAX = 1 << 20  # an order for some thousand nodes
READ_MAX = 1 << 16
CLIENTS_MAX = 32  # the client that has waited longest makes room


class OperatorCommand(msgspec.Struct, frozen=True):
    """A command of the user."""

    injections: tuple[Injection, ...] = ()
    roll_back_to: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Step: all shards are to resume from the newest backup that is not beyond it."""

    def __post_init__(self) -> None:
        """ValueError where nothing is asked for."""
        if not self.injections and self.roll_back_to is None:
            raise ValueError("nothing is asked for")


class OperatorReply(msgspec.Struct, frozen=True):
    """The answer to a command."""

    problem: str = ""
    """Why the command failed; empty: it is done."""
    told: str = ""
    """What was done, where that was not known before."""


_COMMAND = msgspec.json.Decoder(OperatorCommand)


class Control:
    """The controller's end of the control socket: never blocks, and no client can disturb it."""

    def __init__(self, folder: Path) -> None:
        """Listen in the run's `folder`, in place of what a killed controller has left there.

        Raises InfrastructureError where that is impossible, e.g. on a file system without sockets.
        """
        self._clients: dict[int, tuple[socket.socket, bytes]] = {}
        """Clients by file descriptor, in order of arrival, that have not sent a whole line yet, with what they have
        sent."""
        self._waiting: dict[int, socket.socket] = {}
        """Clients that wait for their answer, by ticket."""
        self._tickets = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._epoll = select.epoll()
        self._stack = ExitStack()
        self._stack.callback(self._epoll.close)
        self._stack.callback(self._listener.close)
        try:
            inside = self._stack.enter_context(opened(folder))
            os.fchmod(self._listener.fileno(), 0o600)  # before it has a name, so that nobody can be quicker
            with suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=inside)
            self._listener.bind(address_in(inside))
            self._stack.callback(_remove, inside)
            self._listener.listen(CLIENTS_MAX)
            self._epoll.register(self._listener, select.EPOLLIN)
        except OSError as error:
            self._stack.close()
            raise InfrastructureError(f"{folder / SOCKET}: no socket can be made here: {error.strerror}") from error

    def fileno(self) -> int:
        """A file descriptor that is readable when `orders` may have commands."""
        return self._epoll.fileno()

    def orders(self) -> list[CommandReceived]:
        """Commands since the last call; each is to be answered once."""
        ordered = []
        for descriptor, _ in self._epoll.poll(0):
            if descriptor == self._listener.fileno():
                self._accept()
            elif descriptor in self._clients:
                ordered += self._hear(descriptor)
        return ordered

    def answer(self, answer: CommandResult) -> None:
        """Send an answer to the client that asked, if it still listens."""
        client = self._waiting.pop(answer.ticket, None)
        if client is not None:
            _tell(client, OperatorReply(answer.problem, answer.told))

    def close(self) -> None:
        """Close the socket, and the connections of clients that still wait."""
        for client in (*(client for client, _ in self._clients.values()), *self._waiting.values()):
            client.close()
        self._clients.clear()
        self._waiting.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        """The control itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the control socket."""
        self.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the client has left again
            client, _ = self._listener.accept()
            client.setblocking(False)
            if len(self._clients) >= CLIENTS_MAX:
                self._forget(next(iter(self._clients))).close()
            self._clients[client.fileno()] = client, b""
            self._epoll.register(client, select.EPOLLIN)

    def _hear(self, descriptor: int) -> list[CommandReceived]:
        """Read what a client sends; return its command, if that is complete."""
        client, said = self._clients[descriptor]
        try:
            more = client.recv(READ_MAX)
        except BlockingIOError:
            return []
        except OSError:
            more = b""
        line, ending, _ = (said + more).partition(b"\n")
        if more and not ending and len(line) <= LINE_MAX:
            self._clients[descriptor] = client, line
            return []
        self._forget(descriptor)
        if not ending:
            _tell(client, OperatorReply(f"not an order: no line of at most {LINE_MAX} bytes"))
            return []
        try:
            order = _COMMAND.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            _tell(client, OperatorReply(f"not an order: {error}"))
            return []
        self._tickets += 1
        self._waiting[self._tickets] = client
        return [CommandReceived(self._tickets, order.injections, order.roll_back_to)]

    def _forget(self, descriptor: int) -> socket.socket:
        """Stop reading from a client; return its connection."""
        self._epoll.unregister(descriptor)
        client, _ = self._clients.pop(descriptor)
        return client


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """A descriptor of the folder. Raises OSError where there is none."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def address_in(descriptor: int) -> str:
    """The socket's address through an open folder."""
    return f"/proc/self/fd/{descriptor}/{SOCKET}"


def _remove(inside: int) -> None:
    with suppress(OSError):  # the folder may be gone
        os.unlink(SOCKET, dir_fd=inside)


def _tell(client: socket.socket, reply: OperatorReply) -> None:
    with client, suppress(OSError):  # the client has left and needs no answer
        client.send(msgspec.json.encode(reply) + b"\n")
