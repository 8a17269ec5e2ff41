"""Links of which latency, jitter and loss are asked: what the kernel holds of them, and what datagrams meet there.

Each is the link of a worker in a trial's own network (emulation/namespaces.py). A datagram carries the time at which it
was sent; the kernel notes when it came. They are small and far enough apart that none waits for another, so that what
they take is the delay alone. For the loss, as many are counted as it takes to tell it from another.

As a program, in a kernel that has netem, it prints a table: `scripts/boot .venv/bin/python -m measured_links`.
"""

import contextlib
import math
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.conditions import LinkSchedule
from edgebed.emulation.namespaces import Home, Namespaces, inside
from edgebed.emulation.netlink import LinkReader, Queue
from edgebed.emulation.readback import deviation

MBIT = 1_000_000
WORKER = "edge-0"
DIRECTIONS = ("uplink", "downlink")
STAMP = struct.Struct("=Id")
WIRE_BYTES = STAMP.size + 8 + 20 + 14
"""Bytes of a datagram with the headers of UDP, IP and Ethernet."""
PACKETS_AT_ONCE = 20
SILENCE_S = 0.2
ROOM_BYTES = 1 << 24
"""Room for what has come: all that was on its way comes at once, more quickly than it is taken."""
_SO_RCVBUFFORCE = 33  # asm-generic/socket.h, as the next: beyond what others than root may ask for
_SO_TIMESTAMPNS = 35  # the kernel says when a datagram came
_TIMESPEC = struct.Struct("=qq")

LINKS = {
    "nothing": LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=20 * MBIT),
    "latency": LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=20 * MBIT, latency_s=0.02),
    "long latency": LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=20 * MBIT, latency_s=0.2),
    "latency without a rate": LinkPlan(latency_s=0.05),
    "jitter": LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=20 * MBIT, latency_s=0.05, jitter_s=0.02),
    "little loss": LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=20 * MBIT, loss=0.01),
    "much loss": LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=20 * MBIT, loss=0.2),
    "loss without a rate": LinkPlan(loss=0.05),
    "all": LinkPlan(uplink_bit_s=5 * MBIT, downlink_bit_s=30 * MBIT, latency_s=0.04, jitter_s=0.01, loss=0.005),
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One direction of a link: what the kernel says it holds, and what datagrams met."""

    held: Queue
    delays_s: tuple[float, ...]
    sent: int
    received: int

    @property
    def delay_s(self) -> float:
        """Median delay: a machine that stalls for a moment does not count."""
        return statistics.median(self.delays_s)

    @property
    def jitter_s(self) -> float:
        """Half the width of the even distribution that has the same middle: nine of ten delays."""
        first, *_, last = statistics.quantiles(self.delays_s, n=20)
        return (last - first) / 2.0 / 0.9

    @property
    def loss(self) -> float:
        """Share that did not come."""
        return 1.0 - self.received / self.sent


@contextlib.contextmanager
def network(link: LinkPlan) -> Iterator[Namespaces]:
    """A server without limits, and a worker that has this link."""
    with tempfile.TemporaryDirectory() as folder:
        made = Namespaces({"server": LinkPlan(), WORKER: link}, Path(folder) / "namespaces.log", (WORKER,))
        try:
            yield made
        finally:
            made.close()


def held(made: Namespaces) -> tuple[Queue | None, Queue | None]:
    """What the kernel holds of the worker's link, in each direction."""
    home = made.homes[WORKER]
    with inside(home.namespace):
        reader = LinkReader(home.address)
    try:
        return reader.queues()
    finally:
        reader.close()


def measure(
    made: Namespaces, direction: str, *, delays: int, losses: int, apart_s: float = 0.0, size: int = STAMP.size
) -> Measured:
    """Send datagrams one way: `delays` of this size one by one, `apart_s` at least, then `losses` for counting.

    These as quickly as the link takes them.
    """
    ends = [made.homes[WORKER], made.homes["server"]]
    source, target = ends if direction == "uplink" else reversed(ends)
    queue = dict(zip(DIRECTIONS, held(made), strict=True))[direction] or Queue()
    with _socket(source) as near, _socket(target) as far:
        near.connect(far.getsockname())
        far.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        taken: list[float] = []
        for number in range(delays):
            near.send(STAMP.pack(number, time.time()).ljust(size))
            time.sleep(apart_s)
            taken += _came(far)
        taken += _came(far, SILENCE_S + queue.latency_s + queue.jitter_s)
        received = len(taken)
        for first in range(0, losses, PACKETS_AT_ONCE):
            for number in range(first, min(losses, first + PACKETS_AT_ONCE)):
                near.send(STAMP.pack(number, time.time()))
            time.sleep(8 * WIRE_BYTES * PACKETS_AT_ONCE / (queue.rate_bit_s or math.inf))
            received += len(_came(far))
        received += len(_came(far, SILENCE_S + queue.latency_s + queue.jitter_s))
    return Measured(held=queue, delays_s=tuple(taken), sent=delays + losses, received=received)


def problem(made: Namespaces, link: LinkPlan) -> str:
    """How what is held differs from what was asked; empty if it does not."""
    return deviation(LinkSchedule(link).initial, *held(made), netem=True)


def _socket(home: Home) -> socket.socket:
    with inside(home.namespace):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, ROOM_BYTES)
    made.bind((home.address, 0))
    return made


def _came(far: socket.socket, silence_s: float = 0.0) -> list[float]:
    """Take what has come, or comes until nothing has for a while; how long each was on its way."""
    far.settimeout(silence_s)
    taken = []
    with contextlib.suppress(BlockingIOError, TimeoutError):
        while True:
            data, ((_, _, stamp),), _, _ = far.recvmsg(2048, 64)
            seconds, nanoseconds = _TIMESPEC.unpack(stamp)
            taken.append(seconds + nanoseconds * 1e-9 - STAMP.unpack_from(data)[1])
    return taken


def table(delays: int, losses: int) -> Iterator[str]:
    """Yield the lines of a table in Markdown: each direction of each link."""
    yield "| link | asked | read back | delay measured | jitter measured | lost |"
    yield "|---|---|---|---|---|---|"
    for link in LINKS.values():
        with network(link) as made:
            for direction, rate_bit_s in zip(DIRECTIONS, (link.uplink_bit_s, link.downlink_bit_s), strict=True):
                found = measure(made, direction, delays=delays, losses=losses, apart_s=2.0 * link.jitter_s)
                rate = f" of {rate_bit_s // MBIT}mbit" if rate_bit_s else ""
                asked = _words(link.latency_s, link.jitter_s, link.loss)
                read_back = _words(found.held.latency_s, found.held.jitter_s, found.held.loss)
                delay = f"{1000 * found.delay_s:.1f} ms | {1000 * found.jitter_s:.1f} ms"
                lost = f"{found.sent - found.received:,} of {found.sent:,}: {100 * found.loss:.2f} %"
                yield f"| {direction}{rate} | {asked} | {read_back} | {delay} | {lost} |"


def _words(delay_s: float, jitter_s: float, loss: float) -> str:
    return f"{1000 * delay_s:g} ms ± {1000 * jitter_s:g} ms, {100 * loss:.3g} %"


if __name__ == "__main__":
    for each in table(*map(int, sys.argv[1:] or ("200", "20000"))):
        print(each, flush=True)
