"""The largest entries of each block of each matrix, in a few bits, with what is left out sent later: SparseLoCo.

Sarfi, Thérien, Lidin, Belilovsky 2025, Communication efficient LLM pre-training with SparseLoCo, arXiv:2508.15706; what
it leaves open as in the authors' code. At each worker, with e what has yet to be sent:

    e <- decay e + g
    of each block of side x side entries the largest `count` of |e| are chosen
    of a tensor's chosen values v: v' = v - mean(v) ; bin = round(v' / (6 sigma / bins) + bins / 2), from 0 to bins - 1
    sent of each: its place in the block, and its bin ; of each bin the mean of what fell into it
    e <- e - what the server makes of that

A tensor of several dimensions is a matrix of its first one and the rest. Blocks are as large as divisors of its sides
allow. Differs from the authors' code: of a smaller block as large a share is sent, one entry at least, where theirs
sends `count` of it.

Shapes: n parameters in t tensors, k chosen entries; a place in a block of 64 x 64 takes 12 bits, a bin 2.
"""

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Compressor, Floats, Form, Piece, Pieces, Shapes, StepContext, checked, named
from edgebed.algorithms.update import ModelUpdate

SIGMAS = 6.0
"""Width of all bins together, in standard deviations."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The largest entries of each block are sent in a few bits; what is left out adds up."""

    name: Literal["block-top-k"] = "block-top-k"
    side: int = 64
    """Rows and columns of a block, at most."""
    count: int = 64
    """Entries that are sent of a whole block; of a smaller one as large a share."""
    bits: int = 2
    """Bits of a value: it is one of 2^bits."""
    decay: float = 0.95
    """What is left of what was not sent from one push to the next."""

    def __post_init__(self) -> None:
        if not 1 <= self.side <= 4096:
            raise ValueError(f"side: {self.side} is not from 1 to 4096")
        if not 1 <= self.count <= self.side**2:
            raise ValueError(f"count: {self.count} is not from 1 to {self.side**2}, the entries of a block")
        if not 1 <= self.bits <= 8:
            raise ValueError(f"bits: {self.bits} is not from 1 to 8")
        if not 0.0 <= self.decay <= 1.0:
            raise ValueError(f"decay: {self.decay:g} is not from 0 to 1")


class Blocks(NamedTuple):
    """How a tensor is cut: into a grid of blocks of equal size."""

    rows: int
    columns: int
    """Blocks in a row of the grid."""
    height: int
    width: int
    """Entries in a row of a block."""
    sent: int
    """Entries that are sent of a block."""

    @property
    def chosen(self) -> int:
        """Entries that are sent of the tensor."""
        return self.rows * self.columns * self.sent

    @property
    def place_bits(self) -> int:
        """Bits of a place in a block."""
        return max(1, (self.height * self.width - 1).bit_length())

    @property
    def bytes(self) -> int:
        """Bytes of all places."""
        return -(-self.chosen * self.place_bits // 8)

    def cut(self, tensor: Floats) -> Floats:
        """(size,) tensor -> (blocks, entries)."""
        grid = tensor.reshape(self.rows, self.height, self.columns, self.width)
        return grid.transpose(0, 2, 1, 3).reshape(self.rows * self.columns, -1)

    def positions(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """(blocks, sent) places in each block -> their positions in the tensor, of the same shape."""
        block = np.arange(self.rows * self.columns)[:, None]
        row = block // self.columns * self.height + places // self.width
        return row * (self.columns * self.width) + block % self.columns * self.width + places % self.width


class Compression(Compressor):
    """Compression by blocks; what has yet to be sent is its memory."""

    travels = MappingProxyType(
        {
            "places": "of the chosen entries in their blocks, in as few bits as a place needs, uint8",
            "bins": "of the chosen entries, `bits` bits each, uint8",
            "means": "of what fell into each bin of each tensor, float32",
        }
    )

    config: Config

    def __init__(self, config: Config, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        self.blocks = [_blocks(shape, config) for shape in self.shapes]
        self.chosen = sum(each.chosen for each in self.blocks)
        self.bins = 2**config.bits

    @property
    def forms(self) -> tuple[Form, ...]:
        """Places, bins and means: as many at each step."""
        return (
            Form("places", sum(each.bytes for each in self.blocks), "uint8"),
            Form("bins", -(-self.chosen * self.config.bits // 8), "uint8"),
            Form("means", self.bins * len(self.blocks)),
        )

    @property
    def copies(self) -> float:
        """What has yet to be sent, old and new, the blocks of the largest tensor, their magnitudes and their order."""
        largest = max(self.sizes, default=0) / max(1, self.size)
        return 2.0 + 4.0 * largest + 24.0 * self.share

    @property
    def share(self) -> float:
        """Share of chosen entries, at each step."""
        return self.chosen / max(1, self.size)

    def compress(self, vector: Floats, memory: Floats | None, context: StepContext) -> tuple[Pieces, Floats]:
        """(n,) change of the model -> places, bins and means; what is left of it."""
        left = vector.copy() if memory is None else np.float32(self.config.decay) * memory + vector
        places, bins, means = [], [], []
        for span, blocks in zip(self.spans, self.blocks, strict=True):
            within = _largest(blocks.cut(left[span]), blocks.sent)
            positions = blocks.positions(within).reshape(-1) + span.start
            of_each, mean = binned(left.take(positions), self.bins)
            left[positions] -= mean.take(of_each)
            places.append(packed(within.reshape(-1), blocks.place_bits))
            bins.append(of_each)
            means.append(mean)
        pieces = (
            _piece("places", np.concatenate([np.zeros(0, np.uint8), *places])),
            _piece("bins", packed(np.concatenate([np.zeros(0, np.int64), *bins]), self.config.bits)),
            _piece("means", np.concatenate([np.zeros(0, np.float32), *means])),
        )
        return pieces, left

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """Return the chosen entries, each with the mean of its bin."""
        updates = named(pieces, *self.travels)
        for update, form in zip(updates, self.forms, strict=True):
            checked(update, form.size, (form.dtype,), dense=True)
        places, bins, means = (update.values for update in updates)
        of_each, found, values, at, begin = unpacked(bins, self.config.bits, self.chosen), [], [], 0, 0
        for k, (span, blocks) in enumerate(zip(self.spans, self.blocks, strict=True)):
            within = unpacked(places[at : at + blocks.bytes], blocks.place_bits, blocks.chosen)
            if len(within) and within.max() >= blocks.height * blocks.width:
                raise ValueError(f"a place {within.max()} in a block of {blocks.height * blocks.width}")
            found.append(blocks.positions(within.reshape(-1, blocks.sent)).reshape(-1) + span.start)
            values.append(means[k * self.bins :].take(of_each[begin : begin + blocks.chosen]))
            at, begin = at + blocks.bytes, begin + blocks.chosen
        indices = np.concatenate([np.zeros(0, np.int64), *found])
        order = np.argsort(indices)
        indices = indices[order]
        if (np.diff(indices) == 0).any():
            raise ValueError("a place twice in one block")
        return ModelUpdate(self.size, indices, np.concatenate([np.zeros(0, np.float32), *values])[order])


def binned(values: Floats, bins: int) -> tuple[NDArray[np.int64], Floats]:
    """(k,) values -> (k,) the bin of each, and (bins,) the mean of each; 0 where nothing fell into it."""
    mean = values.mean() if len(values) else np.float32(0.0)
    centred = values - mean
    sigma = float(np.linalg.norm(centred)) / math.sqrt(max(1, len(values) - 1))
    width = SIGMAS * sigma / bins
    scaled = centred / np.float32(width) if 1e-12 < width < math.inf else np.zeros_like(centred)
    of_each = np.clip(np.rint(scaled + np.float32(bins // 2)), 0, bins - 1).astype(np.int64)
    counts = np.bincount(of_each, minlength=bins)
    sums = np.bincount(of_each, centred, minlength=bins)
    means = np.where(counts > 0, mean + sums / np.maximum(1, counts), 0.0)
    return of_each, means.astype(np.float32)


def packed(numbers: NDArray[np.int64], bits: int) -> NDArray[np.uint8]:
    """(k,) numbers below 2^bits -> their bits, the highest first, in ceil(k bits / 8) bytes."""
    return np.packbits((numbers[:, None] >> np.arange(bits)[::-1] & 1).astype(np.uint8))


def unpacked(data: NDArray[np.uint8], bits: int, count: int) -> NDArray[np.int64]:
    """Return the first `count` numbers that `packed` has packed."""
    each = np.unpackbits(data, count=count * bits).reshape(count, bits).astype(np.int64)
    numbers: NDArray[np.int64] = each @ (1 << np.arange(bits)[::-1])
    return numbers


def _largest(blocks: Floats, count: int) -> NDArray[np.int64]:
    """(blocks, entries) -> (blocks, count) places of the largest magnitudes of each, in order."""
    entries = blocks.shape[1]
    if count >= entries:
        return np.broadcast_to(np.arange(entries), blocks.shape)
    return np.sort(np.argpartition(np.abs(blocks), entries - count, axis=1)[:, entries - count :], axis=1)


def _blocks(shape: tuple[int, ...], config: Config) -> Blocks:
    rows = shape[0] if len(shape) > 1 else 1
    columns = math.prod(shape) // max(1, rows)
    height, width = _divisor(rows, config.side), _divisor(columns, config.side)
    count = max(1, config.count * height * width // config.side**2)
    return Blocks(rows // height, columns // width, height, width, count)


def _divisor(size: int, most: int) -> int:
    """Return the largest divisor of a size that is no larger than `most`."""
    return next((each for each in range(min(size, most), 0, -1) if size % each == 0), 1)


def _piece(name: str, values: NDArray[np.uint8] | Floats) -> Piece:
    return Piece(name, ModelUpdate(len(values), None, values))
