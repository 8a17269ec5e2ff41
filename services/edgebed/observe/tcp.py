"""What TCP itself received on the connections of a listening socket: packets without payload.

They acknowledge what was sent, and cost a link as much as their headers. ZeroMQ hides its connections, so they are
found among the process's open files, whatever thread or network namespace they belong to, and asked for TCP_INFO
(`struct tcp_info` in linux/tcp.h). That needs no rights.
"""

import errno
import os
import socket
import stat
import struct
from pathlib import Path

from edgebed.emulation.framing import HEADER_BYTES

OPEN_FILES = Path("/proc/self/fd")
INFO_BYTES = 512  # more than any kernel fills; it says how much it has filled
STATE_LISTEN = 10
SEGMENTS = struct.Struct("=140xI8xI")  # tcpi_segs_in (since Linux 4.2), tcpi_data_segs_in (since 4.6)


class Acknowledgements:
    """Counts packets without payload over all connections, standing or ended, of the socket that listens at `address`.

    Of a connection that has ended counts what was seen of it when it was last read. The two or three packets that open
    and close a connection have no payload either and are counted.
    """

    def __init__(self, address: str, open_files: Path = OPEN_FILES) -> None:
        """`address` as ZeroMQ has it, e.g. `tcp://10.0.0.2:5555`; `open_files` lists this process's by number."""
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._place = (host, int(port))
        self._open_files = open_files
        self._packets: dict[int, int | None] = {}
        """Inode of an open socket: its packets without payload so far; None if it is none of these connections."""
        self._ended = 0
        """Packets of connections that have ended."""

    def read(self) -> int | None:
        """Bytes of these packets on the wire; None where the kernel does not tell."""
        try:
            found = dict(filter(None, (self._look(int(file.name)) for file in self._open_files.iterdir())))
        except (OSError, struct.error):  # no such list, or a kernel that is too old
            return None
        self._ended += sum(packets or 0 for inode, packets in self._packets.items() if inode not in found)
        self._packets = found
        return (self._ended + sum(packets or 0 for packets in found.values())) * HEADER_BYTES

    def _look(self, number: int) -> tuple[int, int | None] | None:
        """The inode of this open file, if it is a socket, and its packets."""
        try:
            copy = os.dup(number)  # its owner may close the original at any time, and open another under its number
        except OSError as error:
            if error.errno == errno.EBADF:
                return None
            raise
        try:
            status = os.fstat(copy)
            if not stat.S_ISSOCK(status.st_mode):
                return None
            inode = status.st_ino
            if inode in self._packets and self._packets[inode] is None:
                return inode, None
            return inode, self._packets_without_payload(copy, known=inode in self._packets)
        finally:
            os.close(copy)

    def _packets_without_payload(self, number: int, *, known: bool) -> int | None:
        """None if this socket is none of the connections; struct.error if the kernel is too old."""
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=number)
        try:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
            if info[0] == STATE_LISTEN or not (known or connection.getsockname()[:2] == self._place):
                return None
        except OSError:  # not of TCP at all
            return None
        finally:
            connection.detach()
        segments, data_segments = SEGMENTS.unpack_from(info)
        return int(segments - data_segments)
