"""Tensors to frames and back: dense ones as they are, sparse ones as compact positions and values, scaled ones.

A sparse tensor travels as its positions, then its values. The positions are sorted, so only the gaps between them
matter: each gap is written as little-endian bytes, the lowest bytes of all gaps first, then the next, as many as the
largest gap needs, and the whole is compressed with zstd. Gradients of real networks cluster (a unit that is off has no
gradient), which the compressor finds: about half a byte an entry where an int32 index takes four.

Whatever the bytes are, decoding gives a tensor or raises RemoteWireError. Sizes are checked before any buffer is read.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import zstandard
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Piece, Pieces
from edgebed.algorithms.exchange.exchanged import Exchanged
from edgebed.algorithms.update import ModelUpdate
from edgebed.wire.errors import LocalWireError, RemoteWireError
from edgebed.wire.messages import Model, Push, Tensor

Buffer = bytes | bytearray | memoryview
DTYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "int8": np.dtype("i1"),
    "uint8": np.dtype("u1"),
    "bool": np.dtype("?"),
    "int32": np.dtype("<i4"),
    "int64": np.dtype("<i8"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FRAME_BYTES = 256 * 1024  # an unbroken frame must pass a slow link before anything else can be told about it
MAX_BYTES = 2**31  # of one tensor
MAX_DIMENSIONS = 8
SCALE_BYTES = 4
GAP_BYTES_MAX = 4  # so that no sum of gaps overflows 64 bits

_compressor = zstandard.ZstdCompressor(level=1, write_checksum=False, write_content_size=True)
_decompressor = zstandard.ZstdDecompressor()


def encode_dense(name: str, array: NDArray[Any]) -> tuple[Tensor, list[memoryview]]:
    """Encode all of `array`, in C order. The frames share its memory: do not write to it afterwards."""
    dtype = NAMES.get(array.dtype)
    if dtype is None or not array.flags.c_contiguous:
        raise LocalWireError(f"{name}: cannot send {array.dtype} {array.shape}, or it is not contiguous")
    return Tensor(name, dtype, array.shape, "dense", array.size), cut(array.data)


def encode_update(name: str, update: ModelUpdate) -> tuple[Tensor, list[memoryview]]:
    """Encode a worker's update, dense or sparse."""
    if update.indices is None:
        return encode_dense(name, update.values)
    dtype = NAMES.get(update.values.dtype)
    if dtype is None or update.values.shape != update.indices.shape:
        raise LocalWireError(f"{name}: {update.values.dtype} values for {len(update.indices)} positions")
    if update.entries and update.indices[-1] >= update.size:
        raise LocalWireError(f"{name}: position {update.indices[-1]} in a tensor of {update.size}")
    return _encode_sparse(name, (update.size,), update.indices, update.values)


def encode_piece(piece: Piece) -> tuple[Tensor, list[memoryview]]:
    """Encode one piece of what a compression sends."""
    tensor, frames = encode_update(piece.name, piece.update)
    if not piece.deflate or not frames:
        return tensor, frames
    packed = zlib.compress(join(frames))
    return msgspec.structs.replace(tensor, packed_bytes=len(packed)), cut(memoryview(packed))


def encode_pieces(pieces: Pieces) -> tuple[tuple[Tensor, ...], list[memoryview]]:
    """Encode all that a compression sends: the tensors, and the frames of all of them in a row."""
    encoded = [encode_piece(piece) for piece in pieces]
    return tuple(tensor for tensor, _ in encoded), [frame for _, part in encoded for frame in part]


def bits(tensor: Tensor, piece: Piece) -> int:
    """Return the bits that the algorithm needs for a piece: those stated, or what is left of them once packed."""
    return 8 * tensor.packed_bytes or piece.update.bits


def _encode_sparse(
    name: str, shape: tuple[int, ...], indices: NDArray[np.int64], values: NDArray[Any]
) -> tuple[Tensor, list[memoryview]]:
    """Encode positions, then values."""
    positions = encode_positions(indices)
    payload = memoryview(b"".join((positions, values.data.cast("B"))))
    return Tensor(name, NAMES[values.dtype], shape, "sparse", len(values), len(positions)), cut(payload)


def encode_exchanged(name: str, sent: Exchanged) -> tuple[Tensor, list[memoryview]]:
    """Encode what shards send each other of an array: scaled, sparse or dense."""
    dtype, size = NAMES[sent.values.dtype], len(sent.values)
    if sent.scale is not None:
        payload = np.float32(sent.scale).tobytes() + sent.values.tobytes()
        return Tensor(name, dtype, sent.shape, "scaled", size), cut(memoryview(payload))
    if sent.indices is None:
        return Tensor(name, dtype, sent.shape, "dense", size), cut(sent.values.data)
    return _encode_sparse(name, sent.shape, sent.indices, sent.values)


def decode_exchanged(tensor: Tensor, frames: Sequence[Buffer]) -> NDArray[np.float32]:
    """Decode an array as its receiver sees it; it may be read-only, or share memory."""
    if tensor.dtype not in ("float32", "float16", "int8"):
        raise RemoteWireError(f"{tensor.name}: {tensor.dtype}; shards send float32, float16 or int8")
    _check_unpacked(tensor)
    if tensor.encoding == "sparse":
        return Exchanged(tensor.shape, *_decode_sparse(tensor, frames)).restored()
    payload, scale = memoryview(join(frames)), None
    if tensor.encoding == "scaled":
        scale = float(np.frombuffer(payload[:SCALE_BYTES], "<f4")[0])
        payload = payload[SCALE_BYTES:]
    return Exchanged(tensor.shape, None, np.frombuffer(payload, DTYPES[tensor.dtype]), scale).restored()


def _decode_sparse(tensor: Tensor, frames: Sequence[Buffer]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Decode positions and values."""
    payload = memoryview(join(frames))
    indices = decode_positions(payload[: tensor.index_bytes], tensor.entries, math.prod(tensor.shape))
    return indices, np.frombuffer(payload[tensor.index_bytes :], DTYPES[tensor.dtype])


def cut(payload: memoryview) -> list[memoryview]:
    """Cut the payload into frames of at most `FRAME_BYTES`, without a copy; an empty payload has no frame."""
    payload = payload.cast("B") if payload.nbytes else memoryview(b"")
    return [payload[start : start + FRAME_BYTES] for start in range(0, len(payload), FRAME_BYTES)]


def encode_positions(indices: NDArray[np.int64]) -> bytes:
    """Encode (k,) strictly increasing positions, as described above; no bytes for k = 0."""
    if len(indices) == 0:
        return b""
    gaps = np.diff(indices, prepend=-1) - 1
    if gaps.min() < 0:
        raise LocalWireError("positions are not strictly increasing from 0")
    width = max(1, (int(gaps.max()).bit_length() + 7) // 8)
    planes = gaps.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T
    return _compressor.compress(np.ascontiguousarray(planes).data)


def decode_positions(data: Buffer, entries: int, size: int) -> NDArray[np.int64]:
    """Decode the (`entries`,) positions below `size`, strictly increasing."""
    if entries == 0:
        if len(data):
            raise RemoteWireError("positions for no entries")
        return np.zeros(0, np.int64)
    try:
        announced = zstandard.frame_content_size(data)
        if announced <= 0 or announced % entries or announced > GAP_BYTES_MAX * entries:
            raise RemoteWireError(f"{announced} bytes of gaps for {entries} entries")
        planes = np.frombuffer(_decompressor.decompress(data, max_output_size=announced), np.uint8)
    except zstandard.ZstdError as error:
        raise RemoteWireError(f"positions cannot be decompressed: {error}") from error
    if len(planes) != announced:
        raise RemoteWireError(f"{len(planes)} bytes of gaps where {announced} were announced")
    planes = planes.reshape(-1, entries)
    gaps = planes[0].astype(np.int64)
    for byte, plane in enumerate(planes[1:], start=1):
        gaps += plane.astype(np.int64) << (8 * byte)
    gaps += 1
    positions: NDArray[np.int64] = gaps.cumsum(out=gaps)
    positions -= 1
    if positions[-1] >= size:
        raise RemoteWireError(f"position {positions[-1]} in a tensor of {size}")
    return positions


def payload_bytes(tensor: Tensor) -> int:
    """Return the bytes that must follow the header for this tensor; RemoteWireError if it is impossible."""
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        raise RemoteWireError(f"dtype {tensor.dtype!r}; known are {', '.join(DTYPES)}")
    if len(tensor.shape) > MAX_DIMENSIONS:
        raise RemoteWireError(f"shape {tensor.shape[: MAX_DIMENSIONS + 1]}")
    size = extent = 1
    for length in tensor.shape:
        if length < 0:
            raise RemoteWireError(f"shape {tensor.shape}")
        size *= length
        extent *= length or 1  # 0 hides no huge length
    if extent * dtype.itemsize > MAX_BYTES:
        raise RemoteWireError(f"a tensor of shape {tensor.shape} is too large")
    if not 0 <= tensor.packed_bytes <= MAX_BYTES:
        raise RemoteWireError(f"{tensor.packed_bytes} packed bytes")
    plain_bytes = _plain_bytes(tensor, size, dtype.itemsize)
    return tensor.packed_bytes or plain_bytes


def _plain_bytes(tensor: Tensor, size: int, itemsize: int) -> int:
    """Return the bytes of a tensor of `size` plain values; RemoteWireError if its description is impossible."""
    if tensor.encoding != "sparse":
        if tensor.entries != size or tensor.index_bytes:
            raise RemoteWireError(f"{tensor.entries} entries in a {tensor.encoding} tensor of {size}")
    elif not 0 <= tensor.entries <= size or not 0 <= tensor.index_bytes <= MAX_BYTES:
        raise RemoteWireError(f"{tensor.entries} entries, {tensor.index_bytes} index bytes in {tensor.shape}")
    scale_bytes = SCALE_BYTES if tensor.encoding == "scaled" else 0
    return tensor.index_bytes + scale_bytes + tensor.entries * itemsize


def check_frames(tensors: Sequence[Tensor], frames: Sequence[Buffer]) -> None:
    """Raise RemoteWireError unless the frames are exactly those that `tensors` call for."""
    place = 0
    for tensor in tensors:
        left = payload_bytes(tensor)
        while left > 0:
            length = min(left, FRAME_BYTES)
            if place == len(frames) or len(frames[place]) != length:
                found = "no frame" if place == len(frames) else f"{len(frames[place])} bytes"
                raise RemoteWireError(f"{tensor.name}: {found} where a frame of {length} bytes belongs")
            left -= length
            place += 1
    if place != len(frames):
        raise RemoteWireError(f"{len(frames) - place} frames too many")


def cut_by(tensors: Sequence[Tensor], payload: memoryview) -> list[memoryview]:
    """Cut a payload into the frames of several tensors that lie in it one after another, without a copy."""
    frames = []
    for tensor in tensors:
        size = payload_bytes(tensor)
        frames += cut(payload[:size])
        payload = payload[size:]
    return frames


def beside_bytes(message: Push | Model) -> int:
    """Return the bytes of the tensors that are of vectors beside the model: named by them, or behind a slash."""
    first, *others = message.tensors
    is_whole = first.name == "theta"
    return sum(payload_bytes(tensor) for tensor in others if is_whole or "/" in tensor.name)


def copied(row: NDArray[np.float32], tensors: Sequence[Tensor]) -> list[memoryview]:
    """Copy (v n,) values into the frames of tensors that lie in them one after another."""
    return cut_by(tensors, row.copy().data.cast("B"))


CopyFrames = Callable[[NDArray[np.float32], Sequence[Tensor]], Sequence[Buffer]]
"""Does what `copied` does, into memory of its own kind."""


def split_frames(tensors: Sequence[Tensor], frames: Sequence[Buffer]) -> dict[str, tuple[Tensor, Sequence[Buffer]]]:
    """Return each tensor by name with its own frames; the frames were checked before."""
    found = {}
    place = 0
    for tensor in tensors:
        count = -(-payload_bytes(tensor) // FRAME_BYTES)
        found[tensor.name] = (tensor, frames[place : place + count])
        place += count
    return found


def decode_dense(tensor: Tensor, frames: Sequence[Buffer]) -> NDArray[Any]:
    """Decode the tensor's array; read-only or shared memory is possible, so do not write to it."""
    if tensor.encoding != "dense":
        raise RemoteWireError(f"{tensor.name} is {tensor.encoding}; dense is expected")
    _check_unpacked(tensor)
    return np.frombuffer(join(frames), DTYPES[tensor.dtype]).reshape(tensor.shape)


def decode_row(names: Sequence[str], tensors: Sequence[Tensor], frames: Sequence[Buffer]) -> NDArray[np.float32]:
    """Decode (v n,) vectors of these names, each sent whole and one after another; do not write to them.

    RemoteWireError where they are others.
    """
    for tensor in tensors:
        if tensor.encoding != "dense" or tensor.dtype != "float32" or tensor.shape != tensors[0].shape:
            raise RemoteWireError(f"{tensor.name} is {tensor.encoding} {tensor.dtype} {tensor.shape}, no such vector")
        _check_unpacked(tensor)
    if len(tensors) != len(names) or any(tensor.name != name for tensor, name in zip(tensors, names, strict=True)):
        raise RemoteWireError(f"{', '.join(tensor.name for tensor in tensors):.80}, not {', '.join(names)}")
    return np.frombuffer(join(frames), DTYPES["float32"])


def decode_update(tensor: Tensor, frames: Sequence[Buffer]) -> ModelUpdate:
    """Decode a worker's update, dense or sparse, with values as they travelled."""
    if len(tensor.shape) != 1 or tensor.dtype not in ("float32", "float16"):
        raise RemoteWireError(f"{tensor.name}: an update is a flat float32 or float16 tensor")
    if tensor.encoding == "scaled":
        raise RemoteWireError(f"{tensor.name}: an update is dense or sparse")
    _check_unpacked(tensor)
    if tensor.encoding == "dense":
        return ModelUpdate(tensor.shape[0], None, decode_dense(tensor, frames))
    return ModelUpdate(tensor.shape[0], *_decode_sparse(tensor, frames))


def _check_unpacked(tensor: Tensor) -> None:
    if tensor.packed_bytes:
        raise RemoteWireError(f"{tensor.name} is packed; that only pieces of an update are")


def decode_piece(tensor: Tensor, frames: Sequence[Buffer]) -> Piece:
    """Decode a piece that a compression sent, with values as they travelled."""
    if len(tensor.shape) != 1 or tensor.encoding == "scaled":
        raise RemoteWireError(f"{tensor.name}: a piece of an update is flat, and dense or sparse")
    plain = msgspec.structs.replace(tensor, packed_bytes=0)
    if tensor.packed_bytes:
        frames = [_unpacked(plain, frames)]
    if tensor.encoding == "sparse":
        return Piece(
            tensor.name, ModelUpdate(tensor.shape[0], *_decode_sparse(plain, frames)), bool(tensor.packed_bytes)
        )
    return Piece(
        tensor.name, ModelUpdate(tensor.shape[0], None, decode_dense(plain, frames)), bool(tensor.packed_bytes)
    )


def decode_pieces(tensors: Sequence[Tensor], frames: Sequence[Buffer]) -> Pieces:
    """Decode all that a compression sent; the frames were checked before."""
    return tuple(decode_piece(tensor, part) for tensor, part in split_frames(tensors, frames).values())


def _unpacked(plain: Tensor, frames: Sequence[Buffer]) -> bytes:
    """Return the bytes as they were before they were packed, as many as there should be."""
    size, unpacker = payload_bytes(plain), zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(join(frames), size + 1)
    except zlib.error as error:
        raise RemoteWireError(f"{plain.name} cannot be unpacked: {error}") from error
    if len(unpacked) != size or not unpacker.eof or unpacker.unused_data:
        raise RemoteWireError(f"{plain.name}: not the {size} bytes that were announced, once unpacked")
    return unpacked


def join(frames: Sequence[Buffer]) -> Buffer:
    """Join the payload in one piece; frames that were cut from one buffer in this process are joined without a copy."""
    if len(frames) == 1:
        return frames[0]
    if frames and all(isinstance(frame, memoryview) and frame.obj is frames[0].obj for frame in frames):  # type: ignore[union-attr]
        whole = memoryview(frames[0].obj).cast("B")  # type: ignore[union-attr]
        if len(whole) == sum(map(len, frames)):
            return whole
    return b"".join(frames)
