"""Measures the way between two hosts, from within a container on each, in one network. Answers are JSON lines.

    serve                 --> {"port": 40123}, and then it answers others for two minutes, or until its input ends
    measure HOST PORT     --> {"round_trip_s": 0.0004, "offset_s": 12.5, "mtu": 1450, "passes": true}
                              or {"problem": "Connection refused"}

The offset is that of this host's monotonic clock from the other's, within half the least round trip. Whether packets of
the interface's MTU pass is tried with messages that fill many, in both directions: where a network between the hosts
drops them, TCP gets stuck.
"""

import errno
import json
import os
import select
import socket
import sys
import threading
import time
from contextlib import suppress
from io import BufferedRWPair
from pathlib import Path

import msgspec

from edgebed.emulation.resources import interface_of

EXCHANGES = 30
BULK_BYTES = 128 * 1024
CONNECT_S_MAX = 12.0
TRY_S_MAX = 2.0
PASS_S_MAX = 5.0
AGAIN_S = 0.2
LIFE_S_MAX = 120.0
"""Seconds after which a server ends in any case: whoever has started it may be gone."""
EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a network that was made for this
TIME, BULK = b"time\n", b"bulk\n"


class Measured(msgspec.Struct, frozen=True):
    """The way from one host to another."""

    round_trip_s: float
    """The least of several."""
    offset_s: float
    mtu: int
    passes: bool
    """Whether packets of that size pass."""


def main() -> None:
    """Serve, or measure once, as the command line says."""
    if sys.argv[1:] == ["serve"]:
        with socket.create_server((EVERYWHERE, 0)) as door:
            threading.Thread(target=serve, args=(door,), daemon=True).start()
            print(json.dumps({"port": door.getsockname()[1]}), flush=True)
            select.select([sys.stdin], [], [], LIFE_S_MAX)
        return
    host, port = sys.argv[2:]
    try:
        print(msgspec.json.encode(measure(host, int(port))).decode(), flush=True)
    except OSError as error:
        print(json.dumps({"problem": error.strerror or str(error)}), flush=True)


def serve(door: socket.socket) -> None:
    """Answer whoever comes, until the door is closed."""
    with suppress(OSError):
        while True:
            threading.Thread(target=_answer, args=(door.accept()[0],), daemon=True).start()


def measure(host: str, port: int) -> Measured:
    """Measure the way to a server. Raises OSError where it is not reached."""
    with _connected(host, port) as connection, connection.makefile("rwb") as stream:
        connection.settimeout(PASS_S_MAX)
        round_trip_ns, offset_ns = min(_exchange(stream) for _ in range(EXCHANGES))
        interface = Path("/sys/class/net") / interface_of(connection.getsockname()[0])
        mtu = int((interface / "mtu").read_text(encoding="ascii"))
        return Measured(round_trip_ns / 1e9, offset_ns / 1e9, mtu, _passes(stream))


def _answer(connection: socket.socket) -> None:
    with suppress(OSError), connection, connection.makefile("rwb") as stream:
        while question := stream.readline():
            if question == TIME:
                stream.write(b"%d\n" % time.monotonic_ns())
            else:
                stream.write(stream.read(BULK_BYTES))
            stream.flush()


def _exchange(stream: BufferedRWPair) -> tuple[int, float]:
    """Ask for the time; return the round trip and the offset, in nanoseconds."""
    asked_ns = time.monotonic_ns()
    stream.write(TIME)
    stream.flush()
    answer = stream.readline()
    answered_ns = time.monotonic_ns()
    if not answer:
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
    return answered_ns - asked_ns, (asked_ns + answered_ns) / 2 - int(answer)


def _passes(stream: BufferedRWPair) -> bool:
    try:
        stream.write(BULK + bytes(BULK_BYTES))
        stream.flush()
        return len(stream.read(BULK_BYTES)) == BULK_BYTES
    except OSError:
        return False


def _connected(host: str, port: int) -> socket.socket:
    """Connect, trying again: a network over several hosts needs a moment until all know it."""
    until = time.monotonic() + CONNECT_S_MAX
    while True:
        try:
            return socket.create_connection((host, port), TRY_S_MAX)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(AGAIN_S)


if __name__ == "__main__":
    main()
