"""The log of a server: each entry that its heart makes is appended before anything comes of it.

    begin:   is there a log? ---> restore the snapshot, do every entry again, and go on
    append, append, append, … ---> too large? ---> a new file with a snapshot, in one step

Of the records that come of entries the controller says which ones it has. The others are in the snapshot as well, so
that a server which comes back can report them again; the controller knows by their numbers which ones it has already.
"""

import os
import time
from collections import deque
from collections.abc import Iterable
from typing import BinaryIO, NamedTuple

import msgspec

from edgebed.core import records
from edgebed.core.errors import WITHOUT_LOG, DamagedFileError, EdgebedError
from edgebed.roles.events import Append, Effect, Journal
from edgebed.roles.server.entries import Accepted, Snapshot, decode_entry, encode_entry, is_durable
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.runtimes.log_file import NAME, Disk, LogFile, read_records
from edgebed.wire import messages

LOG_BYTES_MIN = 64 * 1024 * 1024
SNAPSHOTS_MAX = 4  # so often a snapshot's own size: writing them costs at most a quarter of what the log does


class Replayed(NamedTuple):
    """What a server that came back found in its log."""

    updates: int
    """Updates that were applied again."""
    saved: int
    """Updates that were applied again, and that the last checkpoint lacked."""
    bytes: int
    """Size of the log, with its snapshot."""


def has_updates(content: BinaryIO) -> bool:
    """Whether a log has an update, or a snapshot of a server that had some. EdgebedError where it is damaged."""
    for place, payload in read_records(content):
        try:
            entry, _ = decode_entry(payload)
        except (ValueError, KeyError, TypeError) as error:
            raise EdgebedError(f"at byte {place:,}: {error}") from error
        if (isinstance(entry, Snapshot) and entry.told) or (
            isinstance(entry, Accepted) and isinstance(entry.message, messages.Push)
        ):
            return True
    return False


class ServerLog:
    """A server's log, from when the server has been made."""

    def __init__(self, heart: ParameterServer, disk: Disk, *, bytes_min: int = LOG_BYTES_MIN) -> None:
        """`bytes_min`: a smaller log is not begun anew."""
        self.heart = heart
        self.file = LogFile(disk, synced=heart.plan.durability == "fsync")
        self.bytes_min = bytes_min
        self.bound = 0.0
        """Size in bytes beyond which the log is begun anew."""
        self.told = 0
        """Number of durable records that the controller has."""
        self.untold: deque[tuple[float, records.AnyRecord]] = deque()
        """Durable records of which the controller has not said that it has them, and their times."""
        self.replayed: Replayed | None = None
        """What was found at the beginning; None: nothing."""
        self.numbered = 0
        """Number of durable records that were reported."""
        self.appends = 0
        """Entries that were appended in this server's life."""
        self.bytes = 0
        """Bytes that were written in it, with snapshots."""
        self.append_s = 0.0
        """Seconds that this took."""

    def begin(self, now: float) -> Replayed | None:
        """Go on where the log ends, or begin one. DamagedFileError, naming the file, where it cannot be read."""
        content = self.file.disk.read(NAME)
        if content:
            with content:
                self.replayed = self._replay(content)
        if self.replayed:
            self.heart.revive(now)
        self._renew()
        return self.replayed

    def _replay(self, content: BinaryIO) -> Replayed | None:
        size, before = content.seek(0, os.SEEK_END), self.heart.aggregation.version
        if not size:
            return None
        try:
            begins_at = self._redo_all(content)
        except (EdgebedError, OSError) as error:
            raise DamagedFileError(
                f"{NAME} of the server: {error}; restore it and resume the run (edgebed resume), or go on from the"
                f" last checkpoint without it (edgebed resume {WITHOUT_LOG})"
            ) from error
        version = self.heart.aggregation.version
        return Replayed(version - begins_at, max(0, version - before), size)

    def _redo_all(self, content: BinaryIO) -> int:
        """Do all that the log says; return the version of the model that it begins with."""
        begins_at: int | None = None
        for place, payload in read_records(content):
            if self._redo(place, payload):
                begins_at = self.heart.aggregation.version
        if begins_at is None:
            raise EdgebedError("it has no snapshot")
        return begins_at

    def _redo(self, place: int, payload: memoryview) -> bool:
        """Do what an entry says; return whether it is a snapshot. EdgebedError where it is no entry."""
        try:
            entry, frames = decode_entry(payload)
            if isinstance(entry, Snapshot):
                self.heart.restore(entry, frames[0])
                self.told, self.untold = entry.told, deque(entry.untold)
            else:
                for record in self.heart.redo(entry, frames):
                    self.note(entry.now, Journal(record))
        except (EdgebedError, ValueError, KeyError, TypeError) as error:
            raise EdgebedError(f"at byte {place:,}: {error}") from error
        return isinstance(entry, Snapshot)

    def tell(self, ready: messages.Ready) -> messages.Ready:
        """Return what a server that is ready says of what it found."""
        ready = msgspec.structs.replace(ready, durable=self.told + len(self.untold))
        if self.replayed is None:
            return ready
        version, found = self.heart.aggregation.version, self.replayed
        return msgspec.structs.replace(ready, version=version, replayed=found.updates, log_bytes=found.bytes)

    def take(self, effect: Effect) -> None:
        """Append an entry; any other effect is not the log's. InfrastructureError where that is impossible."""
        if not isinstance(effect, Append):
            return
        begin_s, size = time.perf_counter(), self.file.size
        self.file.append(encode_entry(effect.entry, effect.frames))
        self._count(begin_s, size)
        self.appends += 1

    def turn(self) -> None:
        """Begin the log anew if it has grown too large; only between two events of the heart."""
        if self.file.size > self.bound:
            self._renew()

    def note(self, t: float, effect: Effect) -> None:
        """Note a record that came of an entry, also one that is held back; no other effect is noted."""
        if isinstance(effect, Journal) and is_durable(effect.record):
            self.untold.append((round(t, 6), effect.record))  # type: ignore[arg-type]

    def begin_report(self) -> list[tuple[float, records.AnyRecord]]:
        """Return the records that the controller may not have; the first that are numbered."""
        self.numbered = self.told
        return list(self.untold)

    def number(self, part: Iterable[tuple[float, records.Record]]) -> int:
        """Return how many durable records were reported before these."""
        before = self.numbered
        self.numbered += sum(is_durable(record) for _, record in part)
        return before

    def has_told(self, count: int) -> None:
        """Note that the controller has so many durable records, counted from the trial's beginning."""
        while self.untold and self.told < count:
            self.untold.popleft()
            self.told += 1

    def _renew(self) -> None:
        snapshot, arrays = self.heart.snapshot()
        snapshot = msgspec.structs.replace(snapshot, told=self.told, untold=tuple(self.untold))
        begin_s = time.perf_counter()
        self.file.begin(encode_entry(snapshot, arrays))
        self._count(begin_s, 0)
        self.bound = max(self.bytes_min, SNAPSHOTS_MAX * self.file.size)

    def _count(self, begin_s: float, size: int) -> None:
        """Count what was written since then, when the file had that size."""
        self.append_s += time.perf_counter() - begin_s
        self.bytes += self.file.size - size

    def close(self) -> None:
        """Close the log's file."""
        self.file.close()
