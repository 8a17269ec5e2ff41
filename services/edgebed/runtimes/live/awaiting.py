"""Progress of a push and of its answer: what a worker's faults at points of its protocol wait for.

    during-push    the message is with the network; where the shell itself holds the link: half of it has left
    after-push     the other end's kernel has acknowledged every byte
    during-pull    bytes have come since

TCP knows (emulation/tcp.py); it is asked every millisecond while a fault waits, and else never.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from edgebed.core.planned.fault import Point
from edgebed.emulation.tcp import TcpProgress
from edgebed.runtimes.live.data_endpoints import DataDealer
from edgebed.wire.tensors import Buffer

POLL_S = 0.001
SHORT_FRAME_BYTES = 255
"""Size up to which ZMTP puts two bytes before a frame; before a longer one it puts nine."""
CURVE_BYTES = 33
"""Bytes around each frame where it is encrypted (ZeroMQ RFC 26): a name, a nonce, and what shows that it is whole."""


class Awaiting:
    """Watches the message that was handed over last."""

    def __init__(self, data: DataDealer) -> None:
        self.data = data
        self.points: deque[Point] = deque()
        """Points that faults wait for and that are still to come, in order."""
        self.half_s: float | None = None
        """When half of the message has left."""
        self.size = 0
        self.before: TcpProgress | None = None
        """Progress of the connection when the message was handed over; None: it has not been."""

    def ask(self) -> None:
        """Note that a message is sent, for which no fault waits yet."""
        self.points.clear()
        self.before = self.half_s = None

    def leaving(self, first_s: float, gone_s: float) -> None:
        """Note that the message that is sent leaves between these times."""
        self.half_s = (first_s + gone_s) / 2

    def handed_over(self, buffers: Sequence[Buffer]) -> None:
        """Note that the message is given to the socket now."""
        around = CURVE_BYTES if self.data.is_encrypted else 0
        sizes = (len(buffer) + around for buffer in buffers)
        self.size = sum(size + (2 if size <= SHORT_FRAME_BYTES else 9) for size in sizes)
        self.before = self._look()

    def await_(self, point: Point) -> None:
        """Let a fault wait for a point."""
        self.points.append(point)

    def reached(self, now: float) -> Iterator[Point]:
        """Yield the points that have come."""
        while self.points and self._has_come(self.points[0], now):
            yield self.points.popleft()

    def _has_come(self, point: Point, now: float) -> bool:
        if point == "during-push" and self.half_s is not None and now >= self.half_s:
            return True
        if self.before is None:
            return False
        if self.data.outbox:  # not connected: the message begins to leave when it is
            self.before = self._look()
            return False
        if point == "during-push":
            return True
        present = self._look()
        if point == "after-push":
            return present.acked >= self.before.acked + self.size
        return present.received > self.before.received

    def _look(self) -> TcpProgress:
        """The connection's progress; if the kernel cannot say, every byte counts as acknowledged, none as received."""
        found = self.data.connection.look() if self.data.connection else None
        return found or UNKNOWN


UNKNOWN = TcpProgress(acked=0, received=0, silent_s=0.0, unanswered=0)
