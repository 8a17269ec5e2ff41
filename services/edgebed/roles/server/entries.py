"""What the server's log holds: each thing that changed what the server remembers, in order, and before that a snapshot.

    Snapshot, Accepted, Accepted, ModelHash, Departed, Accepted, …

The heart is deterministic, so that a server which begins with the snapshot and does what the entries say comes to the
same bits. What changes nothing that lasts is in no log: deadlines that were set, connections, evaluators that wait.

An entry's bytes are the length of its header, the header as MessagePack, and the frames of its tensors as they came.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from edgebed.core.records import Count, Finished, Joined, Left, Record, Refused, Update
from edgebed.wire.messages import Finish, Join, Push, Start
from edgebed.wire.tensors import Buffer, cut_by

DURABLE = (Update, Refused, Joined, Left, Finished)
"""Kinds of records that doing an entry leaves, so that they can be made again; of refusals those of a known worker."""
LENGTH_BYTES = 4


class Entry(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag=True, gc=False):
    """The base of all entries."""

    now: float
    """When the heart did it, in seconds of the trial."""


class Accepted(Entry, frozen=True, kw_only=True):
    """A message that takes effect; the tensors of a push are in the entry's frames."""

    peer: str
    """Connection that the message came on."""
    bytes: Count
    """Payload of the whole message."""
    message: Join | Push | Start | Finish


class Rejected(Entry, frozen=True, kw_only=True):
    """A push of a known worker was refused: nothing changes but what the journal says."""

    record: Refused


class Departed(Entry, frozen=True, kw_only=True):
    """A worker is not waited for any more."""

    worker: str
    reason: Literal["reset", "silence", "oracle", "absence"]
    """How the server knew; `absence`: it had been expected, and has not come."""


class RoundExpired(Entry, frozen=True, kw_only=True):
    """A round's deadline passed: what was held is applied."""


class ModelHash(Entry, frozen=True, kw_only=True):
    """What the model was: a server that comes back compares its own."""

    version: Count
    crc: Count
    """CRC-32 of the model's bytes."""


class Snapshot(Entry, frozen=True, kw_only=True):
    """All that the server remembers; what was before is no longer needed."""

    values: Any
    """Plain values by attribute, with the places of arrays (snapshot.py)."""
    arrays: tuple[tuple[str, tuple[int, ...]], ...]
    """Type, as numpy writes it, and shape of each array, whose bytes follow one another."""
    told: Count = 0
    """Durable records that came before those of `untold`."""
    untold: tuple[tuple[float, Update | Refused | Joined | Left | Finished], ...] = ()
    """Durable records of which the controller has not said that it has them, with their times."""


AnyEntry = Accepted | Rejected | Departed | RoundExpired | ModelHash | Snapshot

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyEntry)


def is_durable(record: Record) -> bool:
    """Whether a record is made again by whoever does the entry that it came of."""
    return isinstance(record, DURABLE) and (not isinstance(record, Refused) or bool(record.worker))


def encode_entry(entry: AnyEntry, frames: Sequence[Buffer] = ()) -> list[Buffer]:
    """Encode an entry and its frames; what was given is not copied."""
    header = _encoder.encode(entry)
    return [len(header).to_bytes(LENGTH_BYTES, "little") + header, *frames]


def decode_entry(payload: memoryview) -> tuple[AnyEntry, list[memoryview]]:
    """Decode an entry and its frames, which share memory with `payload`; ValueError where it is none."""
    end = LENGTH_BYTES + int.from_bytes(payload[:LENGTH_BYTES], "little")
    entry, rest = _decoder.decode(payload[LENGTH_BYTES:end]), payload[end:]
    tensors = entry.message.tensors if isinstance(entry, Accepted) and isinstance(entry.message, Push) else None
    return entry, [rest] if tensors is None else cut_by(tensors, rest)
