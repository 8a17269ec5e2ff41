"""What the kernel counts of a node's connections on the data network, standing or ended."""

from collections.abc import Callable, Mapping

from edgebed.emulation.tcp import TcpCounters, counters


class ConnectionCounts:
    """Counts by the node at the other end; of a connection that ended, what was seen of it when it was last read."""

    def __init__(self, numbers: Callable[[], Mapping[str, int]]) -> None:
        """`numbers`: connections that stand, by the node at the other end, as numbers of open files."""
        self._numbers = numbers
        self._standing: dict[str, TcpCounters] = {}
        self.unacknowledged_s: dict[str, float] = {}
        """Seconds in which the other end's kernel had not acknowledged something that was sent, though it had room."""
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
                last = TcpCounters(now.inode, 0.0, 0)
            self._standing[name] = now
            self.is_known = True
            self.came_bytes += now.came_bytes - last.came_bytes
            so_far_s = self.unacknowledged_s.get(name, 0.0)
            self.unacknowledged_s[name] = so_far_s + now.unacknowledged_s - last.unacknowledged_s
