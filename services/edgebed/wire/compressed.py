"""What comes of a compression: compared with what the compression sends before anything is unpacked, then restored.

A sender chooses what a header says, and a few bytes can be unpacked to very many. So the tensors must be of the forms
that the compression states. One that states none may send what it likes, as long as all of it together is no larger
than LARGEST times the model.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from edgebed.algorithms.compressor import Compressor, Form
from edgebed.algorithms.update import ModelUpdate
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import DTYPES, GAP_BYTES_MAX, Buffer, bits, decode_pieces, payload_bytes

LARGEST = 8
"""Most bytes of what a compression sends that states no forms, by those of a float32 model."""
SMALL_BYTES = 64 * 1024
"""What such a compression may send besides, as for a small model everything else is larger."""


def restored(compression: Compressor, tensors: Sequence[Tensor], frames: Sequence[Buffer]) -> tuple[ModelUpdate, int]:
    """Return the update, and the bits that the algorithm needed of it; the frames were checked before.

    RemoteWireError where this is nothing that the compression sends.
    """
    check_forms(compression, tensors)
    pieces = decode_pieces(tensors, frames)
    try:
        with np.errstate(all="ignore"):  # training that diverges is a result, and seen in its loss
            return compression.restore(pieces), sum(map(bits, tensors, pieces))
    except ValueError as error:
        raise RemoteWireError(str(error)) from error


def check_forms(compression: Compressor, tensors: Sequence[Tensor]) -> None:
    """Raise RemoteWireError unless tensors are what the compression sends, as far as it says so."""
    forms = compression.forms
    if forms is None:
        _check_bytes(tensors, LARGEST * 4 * compression.size + SMALL_BYTES)
        return
    if [tensor.name for tensor in tensors] != [form.name for form in forms]:
        found = ", ".join(tensor.name for tensor in tensors) or "nothing"
        raise RemoteWireError(f"{found:.80}, where {', '.join(form.name for form in forms)} should have come")
    for tensor, form in zip(tensors, forms, strict=True):
        if objection := _objection(tensor, form):
            raise RemoteWireError(f"{tensor.name}: {objection}")


def _objection(tensor: Tensor, form: Form) -> str:
    """Say why a tensor is not of that form; empty: it is."""
    if len(tensor.shape) != 1 or tensor.encoding == "scaled":
        return "a piece of an update is flat, and dense or sparse"
    objection = form.objection(
        tensor.shape[0],
        tensor.dtype,
        tensor.entries,
        is_sparse=tensor.encoding == "sparse",
        is_packed=tensor.packed_bytes > 0,
    )
    if not objection and tensor.index_bytes > (most := _positions_bytes(tensor.entries)):
        return f"{tensor.index_bytes} bytes of positions, where {most} are the most"
    if not objection and tensor.packed_bytes > (most := _packed_bytes(_plain_bytes(tensor))):
        return f"{tensor.packed_bytes} packed bytes, where {most} are the most"
    return objection


def _check_bytes(tensors: Sequence[Tensor], most: int) -> None:
    """Raise RemoteWireError where tensors have more bytes than that, or would if they were dense."""
    sizes = [math.prod(tensor.shape) * DTYPES[tensor.dtype].itemsize + tensor.index_bytes for tensor in tensors]
    if sum(sizes) > most:
        raise RemoteWireError(f"{sum(sizes):,} bytes, where {most:,} are the most for a model of this size")


def largest_bytes(compression: Compressor) -> int:
    """Most bytes of tensors that `check_forms` lets pass, as they travel."""
    if compression.forms is None:
        most = LARGEST * 4 * compression.size + SMALL_BYTES
        return _packed_bytes(most)
    total = 0
    for form in compression.forms:
        entries = form.size if form.entries is None else form.entries
        plain = entries * DTYPES[form.dtype].itemsize + (0 if form.entries is None else _positions_bytes(entries))
        total += _packed_bytes(plain) if form.deflate else plain
    return total


def _plain_bytes(tensor: Tensor) -> int:
    """Bytes of a tensor before they were packed."""
    return payload_bytes(msgspec.structs.replace(tensor, packed_bytes=0))


def _positions_bytes(entries: int) -> int:
    """Most bytes of that many positions: what zstd makes of bytes that it cannot compress (ZSTD_COMPRESSBOUND)."""
    gaps = GAP_BYTES_MAX * entries
    return gaps + gaps // 256 + max(0, (128 * 1024 - gaps) // 2048) if entries else 0


def _packed_bytes(plain: int) -> int:
    """Most bytes that DEFLATE makes of so many (zlib's compressBound)."""
    return plain + (plain >> 12) + (plain >> 14) + (plain >> 25) + 13
