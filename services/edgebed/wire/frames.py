"""Messages to frames and back. ZeroMQ keeps frames apart and in order, so a message is a list of them.

Objects in, frames out, and the reverse; no socket is seen here. Whatever the bytes are, decoding gives a message or
raises RemoteWireError.
"""

from collections.abc import Sequence

import msgspec

from edgebed.wire.errors import LocalWireError, RemoteWireError
from edgebed.wire.messages import (
    ARRAYS_MAX,
    COMPRESSED,
    PIECES_MAX,
    PROTOCOL,
    TENSORS,
    AnyMessage,
    Configure,
    DataMessage,
    ManagementMessage,
    Model,
)
from edgebed.wire.tensors import Buffer, check_frames

MAX_HEADER_BYTES = 16 * 1024 * 1024  # the plan of a node, with the user's own modules
MAX_FRAMES = 65_536

_encoder = msgspec.msgpack.Encoder()
_decoders = {
    "data": msgspec.msgpack.Decoder(DataMessage),
    "management": msgspec.msgpack.Decoder(ManagementMessage),
}


def encode(message: AnyMessage, frames: Sequence[Buffer] = ()) -> list[Buffer]:
    """Encode the header frame and the tensors' frames; LocalWireError if they do not fit each other."""
    try:
        _check(message, frames)
    except RemoteWireError as error:
        raise LocalWireError(f"{type(message).__name__}: {error}") from error
    return [_encoder.encode(message), *frames]


def decode(frames: Sequence[Buffer], network: str) -> tuple[AnyMessage, Sequence[Buffer]]:
    """Decode the message and its tensors' frames, all sizes checked. `network` is `data` or `management`."""
    if not 1 <= len(frames) <= MAX_FRAMES:
        raise RemoteWireError(f"{len(frames)} frames")
    if len(frames[0]) > MAX_HEADER_BYTES:
        raise RemoteWireError(f"a header of {len(frames[0])} bytes")
    try:
        message = _decoders[network].decode(frames[0])
    except (ValueError, RecursionError) as error:  # msgspec's errors and UnicodeDecodeError are ValueErrors
        raise RemoteWireError(f"unreadable header: {error}") from error
    if message.protocol != PROTOCOL:
        raise RemoteWireError(f"protocol {message.protocol} from {message.sender!r}; this is {PROTOCOL}")
    _check(message, frames[1:])
    return message, frames[1:]


def _check(message: AnyMessage, frames: Sequence[Buffer]) -> None:
    """Raise RemoteWireError unless the message carries the tensors that its kind does, and exactly their frames."""
    tensors = getattr(message, "tensors", ())
    names = tuple(tensor.name for tensor in tensors)
    if names not in TENSORS.get(type(message), ((),)) and not _is_named_freely(message, names):
        raise RemoteWireError(f"{type(message).__name__} with tensors {names[:8]}")
    check_frames(tensors, frames)


def _is_named_freely(message: AnyMessage, names: tuple[str, ...]) -> bool:
    """Whether these may be examples, or what a compression has made; a model has others behind it, each whole."""
    if isinstance(message, Configure):
        are_examples = all("/" in name or name == "constants" for name in names)
        return are_examples and 1 <= len(names) <= ARRAYS_MAX and len(set(names)) == len(names)
    if not isinstance(message, COMPRESSED) or not 1 <= len(names) <= PIECES_MAX or len(set(names)) < len(names):
        return False
    if isinstance(message, Model):
        return "theta" not in names[1:] and (names[0] == "theta" or message.since is not None)
    return "theta" not in names


def message_bytes(message: AnyMessage, frames: Sequence[Buffer]) -> int:
    """Payload bytes of a message that fits its frames, as it will be encoded."""
    return len(_encoder.encode(message)) + size_bytes(frames)


def size_bytes(frames: Sequence[Buffer]) -> int:
    """Payload bytes of a message: header and tensor frames, without ZeroMQ's and TCP's own."""
    return sum(map(len, frames))
