"""The bytes of ZMTP 3.1 (ZeroMQ RFC 37), for peers that behave as no library does."""

import contextlib
import random
import socket
import struct
from collections.abc import Iterator

MECHANISMS = (b"NULL", b"PLAIN", b"CURVE", b"GSSAPI", b"")
SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
OLD_GREETINGS = {"1.0": SIGNATURE + b"\0\5\0\0", "2.0": SIGNATURE + b"\1\5\0\0"}
"""Those of versions without any mechanism."""


def greeting(mechanism: bytes, version: bytes = b"\3\1", *, as_server: bool = False) -> bytes:
    """The 64 bytes that each end begins with."""
    return SIGNATURE + version + mechanism.ljust(20, b"\0") + bytes([as_server]) + bytes(31)


def frame(body: bytes, *, more: bool = False, command: bool = False) -> bytes:
    """A frame of a message, or a command."""
    flags = more | 4 * command
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return struct.pack(">BQ", flags | 2, len(body)) + body


def command(name: bytes, body: bytes = b"") -> bytes:
    """A command of the handshake."""
    return frame(bytes([len(name)]) + name + body, command=True)


def unfinished(announced: int, sent: int) -> bytes:
    """A command that announces more bytes than come."""
    return struct.pack(">BQ", 2 | 4, announced) + bytes(sent)


def plain_hello(user: bytes, password: bytes) -> bytes:
    """The command in which PLAIN shows who somebody is."""
    return command(b"HELLO", bytes([len(user)]) + user + bytes([len(password)]) + password)


def properties(kind: bytes, identity: bytes) -> bytes:
    """What a peer says of itself at the end of a handshake."""
    fields = ((b"Socket-Type", kind), (b"Identity", identity))
    return b"".join(bytes([len(k)]) + k + struct.pack(">I", len(v)) + v for k, v in fields)


def admitted(address: str, user: bytes, password: bytes, identity: bytes = b"edge-0~turned") -> socket.socket:
    """A connection over which PLAIN has shown the secret, and messages may come."""
    connection = connected(address, timeout_s=30.0)
    connection.sendall(greeting(b"PLAIN"))
    await_bytes(connection, 64)
    connection.sendall(plain_hello(user, password))
    connection.recv(4096)  # WELCOME
    connection.sendall(command(b"INITIATE", properties(b"DEALER", identity)))
    connection.recv(4096)  # READY
    return connection


def await_bytes(connection: socket.socket, count: int) -> None:
    """Receive that many."""
    while count > 0:
        count -= len(connection.recv(count))


def no_mechanism(kind: bytes = b"DEALER", identity: bytes = b"edge-0~1") -> bytes:
    """The command that ends a handshake without any mechanism."""
    return command(b"READY", properties(kind, identity))


def at_random(draws: random.Random) -> Iterator[bytes]:
    """What a peer sends that knows the form, and draws what to fill it with."""
    yield greeting(draws.choice(MECHANISMS), bytes([3, draws.randrange(3)]), as_server=draws.random() < 0.2)
    for _ in range(draws.randint(1, 5)):
        body = draws.randbytes(draws.choice((0, 1, 50, 300, 5_000)))
        name = draws.choice((b"HELLO", b"INITIATE", b"READY", b"ERROR", b"PING", b"MESSAGE", b"WELCOME", b""))
        yield draws.choice((frame(body, more=draws.random() < 0.5), command(name, body), plain_hello(b"edgebed", b"x")))


def connected(address: str, timeout_s: float = 5.0) -> socket.socket:
    """A connection of TCP alone to a socket of ZeroMQ."""
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=timeout_s)


def is_ended(connection: socket.socket) -> bool:
    """Whether the other end closes a connection before its time-out; what it sends until then is forgotten."""
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:  # reset
        return True
    return True


def closes(address: str, *parts: bytes) -> bool:
    """Whether the other end closes a connection over which these parts come."""
    with connected(address) as connection:
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
        return is_ended(connection)
