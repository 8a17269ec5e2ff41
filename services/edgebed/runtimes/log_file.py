"""A file of records, appended one after another, each whole or not there; and a new file in place of it, in one step.

    record:  length of the payload (8 bytes), its CRC-32 (4), CRC-32 of these two (4), the payload; little-endian

What a killed process has written, the kernel has; of its last record a part may be missing. That is cut off when the
file is read. Anything else that is wrong is damage, and an error.
"""

import contextlib
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from edgebed.core.errors import EdgebedError, InfrastructureError, unwritten
from edgebed.wire.tensors import Buffer

NAME, NEW = "server.log", "server.log.new"
_LENGTHS, _CRC = struct.Struct("<QI"), struct.Struct("<I")
HEAD_BYTES = _LENGTHS.size + _CRC.size
BUFFERS_MAX = 1024  # that a system call takes


class Disk(Protocol):
    """What the log asks of a file system, in one folder. OSError where it cannot."""

    def read(self, name: str) -> bytes | None:
        """Return what a file holds; None: there is none."""
        ...

    def create(self, name: str) -> int:
        """Make an empty file, in place of any that has the name, and return its number."""
        ...

    def write(self, file: int, buffers: Sequence[Buffer]) -> None:
        """Append to a file."""
        ...

    def sync(self, file: int) -> None:
        """Return when the disk has all that was written to a file."""
        ...

    def rename(self, name: str, to: str) -> None:
        """Give a file the name of another, which is gone then."""
        ...

    def sync_folder(self) -> None:
        """Return when the disk has the names of the folder's files."""
        ...

    def close(self, file: int) -> None:
        """Close a file."""
        ...


class FolderOnDisk:
    """A folder of the real file system, which is made; InfrastructureError where that is impossible."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _naming():
            path.mkdir(parents=True, exist_ok=True)

    def read(self, name: str) -> bytes | None:
        """Return what a file holds; None: there is none."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, name: str) -> int:
        """Make an empty file, in place of any that has the name."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.path / name, flags, 0o644)

    def write(self, file: int, buffers: Sequence[Buffer]) -> None:
        """Append to a file, with one system call as a rule."""
        left = [memoryview(each).cast("B") for each in buffers]
        while left:
            written = os.writev(file, left[:BUFFERS_MAX])
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if written:
                left[0] = left[0][written:]

    def sync(self, file: int) -> None:
        """Return when the disk has all that was written to a file."""
        os.fdatasync(file)

    def rename(self, name: str, to: str) -> None:
        """Replace a file by another."""
        (self.path / name).replace(self.path / to)

    def sync_folder(self) -> None:
        """Return when the disk has the names of the folder's files."""
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self, file: int) -> None:
        """Close a file."""
        os.close(file)


class FolderInMemory:
    """A folder that lasts as long as its object."""

    def __init__(self) -> None:
        self.files: dict[int, bytearray] = {}
        self.names: dict[str, int] = {}

    def read(self, name: str) -> bytes | None:
        """Return what a file holds; None: there is none."""
        return bytes(self.files[self.names[name]]) if name in self.names else None

    def create(self, name: str) -> int:
        """Make an empty file, in place of any that has the name."""
        file = self.names[name] = max(self.files, default=0) + 1
        self.files[file] = bytearray()
        return file

    def write(self, file: int, buffers: Sequence[Buffer]) -> None:
        """Append to a file."""
        for each in buffers:
            self.files[file] += each

    def sync(self, file: int) -> None:
        """Nothing has to be done."""

    def rename(self, name: str, to: str) -> None:
        """Replace a file by another."""
        self.names[to] = self.names.pop(name)

    def sync_folder(self) -> None:
        """Nothing has to be done."""

    def close(self, file: int) -> None:
        """Forget a file that has no name any more."""
        if file not in self.names.values():
            self.files.pop(file, None)


class LogFile:
    """The file that a log is in, while it is written. InfrastructureError where it cannot be."""

    def __init__(self, disk: Disk, *, synced: bool = False) -> None:
        """`synced`: a new file has reached the disk before it is there."""
        self.disk = disk
        self.synced = synced
        self.file = -1
        self.lock = threading.Lock()
        """Held while the file is synced, or another takes its place."""
        self.size = 0
        """Bytes of the present file."""

    def begin(self, payload: Sequence[Buffer]) -> None:
        """Begin a new file with one record; the one before is gone once the new one is whole."""
        with _naming():
            new = self.disk.create(NEW)
            record = framed(payload)
            self.disk.write(new, record)
            if self.synced:
                self.disk.sync(new)
            self.disk.rename(NEW, NAME)
            if self.synced:
                self.disk.sync_folder()
        self.close()
        with self.lock:
            self.file, self.size = new, sum(map(len, record))

    def append(self, payload: Sequence[Buffer]) -> None:
        """Append a record."""
        record = framed(payload)
        with _naming():
            self.disk.write(self.file, record)
        self.size += sum(map(len, record))

    def sync(self) -> None:
        """Return when the disk has all that was appended before; any thread may ask for it."""
        with self.lock, _naming():
            if self.file >= 0:
                self.disk.sync(self.file)

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        with self.lock:
            if self.file >= 0:
                self.disk.close(self.file)
                self.file = -1


def framed(payload: Sequence[Buffer]) -> list[Buffer]:
    """Return the record of a payload: its head, and the payload itself, which is not copied."""
    crc = 0
    for each in payload:
        crc = zlib.crc32(each, crc)
    lengths = _LENGTHS.pack(sum(memoryview(each).nbytes for each in payload), crc)
    return [lengths + _CRC.pack(zlib.crc32(lengths)), *payload]


def read_records(content: bytes) -> Iterator[tuple[int, memoryview]]:
    """Yield each record's offset and payload; a last one that is not whole is left out.

    EdgebedError, naming the offset, where a record is damaged.
    """
    place, whole = 0, memoryview(content)
    while place + HEAD_BYTES <= len(whole):
        lengths = whole[place : place + _LENGTHS.size]
        size, crc = _LENGTHS.unpack(lengths)
        (head_crc,) = _CRC.unpack_from(whole, place + _LENGTHS.size)
        payload = whole[place + HEAD_BYTES : place + HEAD_BYTES + size]
        if zlib.crc32(lengths) != head_crc:
            if not any(whole[place:]):
                return  # a machine that lost power may leave zeros at a file's end
            raise EdgebedError(f"damaged at byte {place:,}: no record begins there")
        if len(payload) < size:
            return
        if zlib.crc32(payload) != crc:
            raise EdgebedError(f"damaged at byte {place:,}: a record of {size:,} bytes is not what was written")
        yield place, payload
        place += HEAD_BYTES + size


@contextlib.contextmanager
def _naming() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"the server's log {unwritten(error, '--runs-dir')}") from error
