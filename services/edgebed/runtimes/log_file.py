"""A file of records, appended one after another, each whole or not there; and a new file in place of it, in one step.

    record:  length of the payload (8 bytes), CRC-32 (4), CRC-32 of these two (4), the payload; little-endian

The first CRC-32 is of all payloads from the file's beginning to this one: a record that is missing, or stands in
another place, is found as one that is damaged is.

What a killed process has written, the kernel has; of its last record a part may be missing. That is cut off when the
file is read. Anything else that is wrong is damage, and an error.
"""

import contextlib
import io
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from edgebed.core.disk import make_folder, replacing
from edgebed.core.errors import EdgebedError, InfrastructureError, unwritten
from edgebed.wire.tensors import Buffer

NAME = "server.log"
_LENGTHS, _CRC = struct.Struct("<QI"), struct.Struct("<I")
HEAD_BYTES = _LENGTHS.size + _CRC.size
BUFFERS_MAX = 1024  # that a system call takes
CHUNK_BYTES = 1024 * 1024


class Disk(Protocol):
    """What the log asks of a file system, in one folder. OSError where it cannot."""

    def read(self, name: str) -> BinaryIO | None:
        """Open a file to be read; None: there is none."""
        ...

    def replace(self, name: str, buffers: Sequence[Buffer], *, synced: bool) -> int:
        """Write a new file, in place of any that has the name, and return its number, `synced` or not."""
        ...

    def write(self, file: int, buffers: Sequence[Buffer]) -> None:
        """Append to a file."""
        ...

    def sync(self, file: int) -> None:
        """Return when the disk has all that was written to a file."""
        ...

    def close(self, file: int) -> None:
        """Close a file."""
        ...


class FolderOnDisk:
    """A folder of the real file system, which is made; InfrastructureError where that is impossible."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _naming():
            make_folder(path)

    def read(self, name: str) -> BinaryIO | None:
        """Open a file to be read; None: there is none."""
        try:
            return (self.path / name).open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InfrastructureError(f"{self.path / name} cannot be read: {error.strerror}") from error

    def replace(self, name: str, buffers: Sequence[Buffer], *, synced: bool) -> int:
        """Write a new file, in place of any that has the name; what killed processes have left of others is removed."""
        for left in self.path.glob(f".{name}.*"):
            left.unlink()
        with replacing(self.path / name, synced=synced) as file:
            self.write(file, buffers)
        return file

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

    def close(self, file: int) -> None:
        """Close a file."""
        os.close(file)


class FolderInMemory:
    """A folder that lasts as long as its object."""

    def __init__(self) -> None:
        self.files: dict[int, bytearray] = {}
        self.names: dict[str, int] = {}

    def read(self, name: str) -> BinaryIO | None:
        """Open a file to be read; None: there is none."""
        return io.BytesIO(self.files[self.names[name]]) if name in self.names else None

    def replace(self, name: str, buffers: Sequence[Buffer], *, synced: bool) -> int:
        """Write a new file, in place of any that has the name."""
        file = max(self.files, default=0) + 1
        self.files[file] = bytearray()
        self.write(file, buffers)
        self.names[name] = file
        return file

    def write(self, file: int, buffers: Sequence[Buffer]) -> None:
        """Append to a file."""
        for each in buffers:
            self.files[file] += each

    def sync(self, file: int) -> None:
        """Nothing has to be done."""

    def close(self, file: int) -> None:
        """Forget a file that has no name any more."""
        if file not in self.names.values():
            self.files.pop(file, None)


class LogFile:
    """The file that a log is in, while it is written. InfrastructureError where it cannot be."""

    def __init__(self, disk: Disk, *, synced: bool = False) -> None:
        """`synced`: a new file has reached the disk before it is there, as what is appended has after `sync`."""
        self.disk = disk
        self.synced = synced
        self.file = -1
        self.lock = threading.Lock()
        """Held while the file is synced, or another takes its place."""
        self.size = 0
        """Bytes of the present file."""
        self.crc = 0
        """CRC-32 of all payloads in it."""

    def begin(self, payload: Sequence[Buffer]) -> None:
        """Begin a new file with one record; the one before is gone once the new one is whole."""
        record, crc = framed(payload)
        with _naming():
            new = self.disk.replace(NAME, record, synced=self.synced)
        self.close()
        with self.lock:
            self.file, self.size, self.crc = new, sum(map(len, record)), crc

    def append(self, payload: Sequence[Buffer]) -> None:
        """Append a record."""
        record, self.crc = framed(payload, self.crc)
        try:  # and no `with`: every push of a run comes by here
            self.disk.write(self.file, record)
        except OSError as error:
            raise _unwritten(error) from error
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


def framed(payload: Sequence[Buffer], crc: int = 0) -> tuple[list[Buffer], int]:
    """Return the record of a payload, its head and the payload itself, which is not copied, and the CRC-32 so far.

    `crc` is that of the payloads before it.
    """
    for each in payload:
        crc = zlib.crc32(each, crc)
    lengths = _LENGTHS.pack(sum(memoryview(each).nbytes for each in payload), crc)
    return [lengths + _CRC.pack(zlib.crc32(lengths)), *payload], crc


def read_records(file: BinaryIO) -> Iterator[tuple[int, memoryview]]:
    """Yield each record's offset and payload, reading one at a time; a last one that is not whole is left out.

    EdgebedError, naming the offset, where a record is damaged.
    """
    place, found, end = 0, 0, file.seek(0, os.SEEK_END)
    file.seek(0)
    while len(head := file.read(HEAD_BYTES)) == HEAD_BYTES:
        size, crc = _LENGTHS.unpack_from(head)
        (head_crc,) = _CRC.unpack_from(head, _LENGTHS.size)
        if zlib.crc32(head[: _LENGTHS.size]) != head_crc:
            if _is_zero(head) and all(map(_is_zero, iter(partial(file.read, CHUNK_BYTES), b""))):
                return  # a machine that lost power may leave zeros at a file's end
            raise EdgebedError(f"damaged at byte {place:,}: no record begins there")
        if place + HEAD_BYTES + size > end:
            return
        payload = file.read(size)
        found = zlib.crc32(payload, found)
        if found != crc:
            raise EdgebedError(
                f"damaged at byte {place:,}: a record of {size:,} bytes is not what was written there, or one before "
                "it is missing"
            )
        yield place, memoryview(payload)
        place += HEAD_BYTES + size


def _is_zero(content: bytes) -> bool:
    return not content.strip(b"\0")


@contextlib.contextmanager
def _naming() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> InfrastructureError:
    return InfrastructureError(f"the server's log {unwritten(error, '--runs-dir')}")
