"""What the kernel counts of a node's connections on the data network, standing or ended."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from edgebed.emulation.tcp import TcpCounters, counters


class Sent(NamedTuple):
    """What became of what was sent to another node."""

    unacknowledged_s: float = 0.0
    """Seconds in which its kernel had not acknowledged something, though it had room."""
    repeated: int = 0
    """Packets sent again that it had already."""
    is_waiting: bool = False
    """Whether something is not acknowledged yet."""


class ConnectionCounts:
    """Counts by the node at the other end; of a connection that ended, what was seen of it when it was last read."""

    def __init__(self, numbers: Callable[[], Mapping[str, int]]) -> None:
        """`numbers`: connections that stand, by the node at the other end, as numbers of open files."""
        self._numbers = numbers
        self._standing: dict[str, TcpCounters] = {}
        self.sent: dict[str, Sent] = {}
        self.congestion_controls: set[str] = set()
        """TCP's congestion controls of connections, from their second look on: one is chosen when they are made."""
        self.came_bytes = 0
        """Bytes of all packets that came."""
        self.is_known = False
        """Whether the kernel tells."""

    def look(self) -> None:
        """Read all counters."""
        for name, number in self._numbers().items():
            now = counters(number)
            if now is None:
                continue
            last = self._standing.get(name)
            if last is None or last.inode != now.inode:
                last = TcpCounters(now.inode, 0.0, 0, 0, is_waiting=False)
            elif now.congestion_control:
                self.congestion_controls.add(now.congestion_control)
            self._standing[name] = now
            self.is_known = True
            self.came_bytes += now.came_bytes - last.came_bytes
            so_far = self.sent.get(name, Sent())
            self.sent[name] = Sent(
                so_far.unacknowledged_s + now.unacknowledged_s - last.unacknowledged_s,
                so_far.repeated + now.repeated - last.repeated,
                now.is_waiting,
            )
