"""The journal of a trial: append-only JSON Lines, readable after `kill -9` of its writer at any time.

A line is `{"t":1.25,"node":"server","kind":"update",…}`: seconds since the trial began (rounded to microseconds), who
says it, and a record of `core/records.py`. Every line goes out in one `write` to an unbuffered file opened for
appending, so a kill cuts the last line at most. JSON has no NaN: a number that is not finite is written as null and
read back as NaN. One writer a file; who writes is the shell's affair.
"""

import contextlib
import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec

from edgebed.core.disk import sync_folder
from edgebed.core.errors import EdgebedError, InfrastructureError, unwritten
from edgebed.core.reading import NOT_JSON, open_file
from edgebed.core.records import AnyRecord, Record, Seconds

Entry = tuple[float, str, Record]
"""A journal's entry: time in seconds, node, record."""


class _Head(msgspec.Struct, gc=False):
    """A line's time and node, without the record."""

    t: Seconds
    node: str


_HEAD = msgspec.json.Decoder(_Head)
_RECORD: msgspec.json.Decoder[Record] = msgspec.json.Decoder(AnyRecord)
_ENCODER = msgspec.json.Encoder()


class JournalWriter:
    """Appends records to the journal at `path`; a half line left by a killed writer is cut off first.

    Raises InfrastructureError, naming the path, when the file cannot be opened or written; after a failed write the
    half-written line is taken back and every later write fails too, so nothing ever follows a broken line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._heads: dict[str, bytes] = {}
        self._synced = 0
        """Bytes that the disk has."""
        self._failure: OSError | None = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            self._end = _drop_half_line(self._file)
            sync_folder(path.parent)
        except OSError as error:
            raise self._error(error) from error

    def write(self, t: float, node: str, record: Record) -> None:
        """Append one record said by `node` at `t` seconds."""
        self._append(self._line(t, node, record))

    def write_many(self, entries: Iterable[Entry]) -> None:
        """Append several records with one system call; all of them or, on failure, only whole lines."""
        lines = b"".join(self._line(t, node, record) for t, node, record in entries)
        if lines:
            self._append(lines)

    @property
    def is_synced(self) -> bool:
        """Whether the disk has all that was written."""
        return self._synced == self._end

    def sync(self) -> None:
        """Return when the disk has all that was written."""
        if self.is_synced or self._failure:
            return
        try:
            os.fdatasync(self._file)
        except OSError as error:
            raise self._error(error) from error
        self._synced = self._end

    def close(self) -> None:
        """Sync the file, and close it; closing twice is harmless."""
        if self._file >= 0:
            try:
                self.sync()
            finally:
                os.close(self._file)
                self._file = -1

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def _line(self, t: float, node: str, record: Record) -> bytes:
        head = self._heads.get(node)
        if head is None:
            head = self._heads[node] = b',"node":' + _ENCODER.encode(node) + b","
        return b'{"t":%r%b%b\n' % (round(float(t), 6), head, _ENCODER.encode(record)[1:])

    def _append(self, lines: bytes) -> None:
        if self._failure is not None:
            raise self._error(self._failure)
        try:
            written = os.write(self._file, lines)
            while written < len(lines):  # A full disk takes a part first and says why at the next attempt.
                written += os.write(self._file, memoryview(lines)[written:])
        except OSError as error:
            self._failure = error
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise self._error(error) from error
        self._end += len(lines)

    def _error(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(
            f"{self.path}: the journal {unwritten(error, '--runs-dir')}. What it holds so far is readable."
        )


class JournalReader(Iterator[Entry]):
    """Iterates over a journal's entries; `cut_line` then holds a last line that could not be read, else b""."""

    _file: BinaryIO | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_line = b""
        self.number = 0
        """Number of the line that was read last, from 1."""
        try:
            self._file = open_file(path)
        except OSError as error:
            raise EdgebedError(f"{path}: the journal cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """Close the file, as the end of the iteration does."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        """Close the file of a reader that was left before its end, e.g. by `next(read_journal(path))`."""
        self.close()

    def __next__(self) -> Entry:
        """The next entry; EdgebedError naming the line where one before the last is broken."""
        if self._file is None:
            raise StopIteration
        line = self._file.readline()
        self.number += 1
        if not line:
            self.close()
            raise StopIteration
        if not line.endswith(b"\n"):  # it is being written, or was cut: whoever goes on writing drops it
            self.close()
            self.cut_line = line
            raise StopIteration
        try:
            return decode_line(line)
        except msgspec.DecodeError as error:
            rest = self._file.read(1)
            self.close()
            if rest:
                raise not_a_line(self.path, self.number, error) from error
            self.cut_line = line
            raise StopIteration from None


def read_journal(path: Path) -> JournalReader:
    """The entries of the journal at `path`, one (t, node, record) at a time.

    A last line that was cut by a kill is left out and is in the reader's `cut_line`; a broken line before it raises
    EdgebedError naming the line number.
    """
    return JournalReader(path)


def decode_line(line: bytes) -> Entry:
    """The entry in a line; msgspec.DecodeError where it is none."""
    try:
        head = _HEAD.decode(line)
        return head.t, head.node, _decode_record(line)
    except NOT_JSON as error:
        raise msgspec.DecodeError(str(error)) from error


def not_a_line(path: Path, number: int, error: Exception) -> EdgebedError:
    """An error that says where a journal is broken, and how."""
    return EdgebedError(f"{path}:{number}: not a line of a journal: {error}")


def journal_hash(path: Path) -> str:
    """SHA-256 of the file as hexadecimal: equal hashes, equal runs."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _decode_record(line: bytes) -> Record:
    """The record of a line; only a line that fails to decode as it stands is searched for nulls."""
    try:
        return _RECORD.decode(line)
    except msgspec.ValidationError:
        if b"null" not in line:
            raise
        record: Record = msgspec.convert(_filled(msgspec.json.decode(line)), AnyRecord)
        return record


def _filled(value: Any) -> Any:
    """A tree of plain values with NaN for every null."""
    if isinstance(value, dict):
        return {name: _filled(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each) for each in value]
    return math.nan if value is None else value


def _drop_half_line(file: int) -> int:
    """Cut off what follows the last newline; return the length in bytes that is left."""
    size = os.lseek(file, 0, os.SEEK_END)
    end = size
    while end > 0:
        start = max(0, end - 4096)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)
    return end
