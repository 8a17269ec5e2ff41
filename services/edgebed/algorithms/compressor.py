"""What a worker asks of a compression, and the server of it: a vector becomes pieces that travel, and an update again.

    worker   compress(vector, memory, context) ---> pieces, memory for the next step
    server   restore(pieces) ---> update

A method that chooses entries sends one piece, the update itself. One that writes them as other numbers, such as levels
with a scale, sends these and says how they are read.

Shapes: n parameters in tensors of given shapes, one after the other in the flat vector.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.update import ModelUpdate

Floats = NDArray[np.float32]
Shapes = Sequence[tuple[int, ...]]
"""Shapes of the tensors that make up the flat vector, in order."""


class StepContext(NamedTuple):
    """Where in its training a worker is."""

    key: int
    """The only source of chance: 128 bits that seed, worker and step determine."""
    step: int = 0
    """Number of vectors that the worker has compressed before."""
    epoch: float = 0.0
    """Passes of the worker through its own data by the version that it computed at, if all push alike.

    So a restarted worker is where the training is.
    """
    loss: float = 0.0
    """Mean loss of the mini-batch that the vector comes from."""
    workers: int = 1
    """Number of workers in the scenario."""
    epochs: float = 0.0
    """Passes of the worker through its own data that it makes between a pull and a push."""

    def draws(self) -> np.random.Generator:
        """Return a generator that the key alone decides, with the same draws each time."""
        return np.random.Generator(np.random.Philox(key=self.key))


class Piece(NamedTuple):
    """Numbers that travel: a flat tensor, or chosen entries of one."""

    name: str
    update: ModelUpdate
    deflate: bool = False
    """Whether the piece's bytes are packed with DEFLATE."""


Pieces = tuple[Piece, ...]


class Form(NamedTuple):
    """What a piece always is, whatever the vector: a flat tensor, of which all entries travel or chosen ones."""

    name: str
    size: int
    """Length of the tensor."""
    dtype: str = "float32"
    entries: int | None = None
    """The largest number of chosen entries; None: all travel, without positions."""
    deflate: bool = False
    """Whether the piece's bytes, if it has any, are packed with DEFLATE."""

    def objection(self, size: int, dtype: str, entries: int, *, is_sparse: bool, is_packed: bool) -> str:
        """Say why a piece of this name is not of this form; empty: it is."""
        if size != self.size or dtype != self.dtype:
            return f"{dtype} of length {size}, not {self.dtype} of {self.size}"
        if is_sparse != (self.entries is not None):
            return "chosen entries, where all should have come" if is_sparse else "all entries, where some are chosen"
        if self.entries is not None and entries > self.entries:
            return f"{entries} entries, where {self.entries} are the most"
        if is_packed != (self.deflate and entries > 0):
            return "packed, which it never is" if is_packed else "not packed, which it always is"
        return ""


class Compressor:
    """Compresses a flat vector whose tensors have these shapes; base class of all compressions.

    `travels`, `forms`, `copies` and `share` tell others what they have to know of it: docs/protocol.md is made of the
    first, by the second a receiver refuses what cannot have come of it, the least memory of workers and server follows
    from the others.
    """

    travels: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"update": "the update itself, float32 or float16, dense or sparse"}
    )
    """Name of each piece that it sends, in order -> what that holds."""
    forgets_lost: ClassVar[bool] = False
    """Whether what it remembers is forgotten when the worker joins anew, or a push of it was refused: where the server
    keeps the same beside it (`Aggregator.forgotten`)."""
    sends_buffers: ClassVar[bool] = True
    """Whether buffers, such as running means, travel whole beside what it makes of the parameters."""

    def __init__(self, config: Any, shapes: Shapes) -> None:
        self.config = config
        self.shapes = [tuple(shape) for shape in shapes]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)
        """n, the length of the flat vector."""

    @property
    def forms(self) -> tuple[Form, ...] | None:
        """The form of each piece that it sends, in order; None: it does not say, and only their sizes are bounded."""
        return None

    @property
    def copies(self) -> float:
        """How often the model is in memory while a vector is compressed, what is remembered from before included.

        At most, by bytes as a float32 model has them, besides the vector itself and one copy of what is sent. One that
        does not say it is taken to hold as much as most do.
        """
        return 4.0

    @property
    def share(self) -> float | None:
        """The largest share of the entries that a push has, as chosen entries; None: it has all, without positions."""
        return None

    @property
    def spans(self) -> list[slice]:
        """Where each tensor lies in the flat vector."""
        ends = np.cumsum(self.sizes, dtype=int).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    def compress(self, vector: Floats, memory: Any, context: StepContext) -> tuple[Pieces, Any]:
        """(n,) gradient or change of the model -> what is sent of it, and what is to be remembered until the next.

        A function of its arguments; `memory` is None at the first step. Nothing that is handed in is written to.
        Training that diverges is a result: numpy does not warn where this is called.
        """
        raise AssertionError(f"{type(self).__name__} does not say what it sends")

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """The update that the pieces stand for. ValueError where they are not of this method and these settings."""
        (piece,) = named(pieces, "update")
        return checked(piece, self.size, ("float32", "float16"))


class FixedShare(Compressor):
    """Sends the same number of entries at each step: the share `fraction` of its settings, and at least one."""

    def __init__(self, config: Any, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        self.count = max(1, int(self.size * config.fraction))
        """k, the number of entries."""

    @property
    def forms(self) -> tuple[Form, ...]:
        """As many entries of the update at each step."""
        return (Form("update", self.size, self.config.values, self.count),)

    @property
    def share(self) -> float:
        """The share is one at each step."""
        return self.count / max(1, self.size)


class WithBuffers(Compressor):
    """Compresses parameters alone: buffers, such as running means, travel whole."""

    def __init__(self, inner: Compressor, is_buffer: NDArray[np.bool_]) -> None:
        """`is_buffer` (n,) says where the vector holds buffers; `inner` compresses the rest."""
        super().__init__(inner.config, [(len(is_buffer),)])
        self.inner = inner
        self.is_buffer = is_buffer

    @functools.cached_property
    def buffers(self) -> NDArray[np.int64]:
        """Positions of what is no parameter."""
        return np.flatnonzero(self.is_buffer)

    @functools.cached_property
    def parameters(self) -> NDArray[np.int64]:
        """Positions of the others."""
        return np.flatnonzero(~self.is_buffer)

    @property
    def forms(self) -> tuple[Form, ...] | None:
        """The compression's own, and the buffers."""
        inner = self.inner.forms
        return None if inner is None else (*inner, Form("kept", len(self.buffers)))

    @property
    def copies(self) -> float:
        """The compression's copies, positions of 8 bytes, and the parameters without the buffers between them."""
        return self.inner.copies + 3.0

    @property
    def share(self) -> float | None:
        """What is kept beside parameters is sent whole."""
        inner = self.inner.share
        num_buffers = self.size - self.inner.size
        return None if inner is None else (inner * self.inner.size + num_buffers) / max(1, self.size)

    def compress(self, vector: Floats, memory: Any, context: StepContext) -> tuple[Pieces, Any]:
        """(n,) vector -> the pieces of its parameters, and its buffers."""
        pieces, memory = self.inner.compress(vector.take(self.parameters), memory, context)
        return (*pieces, Piece("kept", ModelUpdate(len(self.buffers), None, vector.take(self.buffers)))), memory

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """Return the update of parameters and buffers together."""
        (buffers,) = named(pieces[-1:], "kept")
        checked(buffers, len(self.buffers), ("float32",), dense=True)
        update = self.inner.restore(pieces[:-1])
        if update.indices is None:
            values = np.empty(self.size, np.float32)
            values[self.parameters], values[self.buffers] = update.values, buffers.values
            return ModelUpdate(self.size, None, values)
        indices = np.concatenate([self.parameters.take(update.indices), self.buffers])
        order = np.argsort(indices)
        values = np.concatenate([update.values.astype(np.float32), buffers.values])
        return ModelUpdate(self.size, indices[order], values[order])


def sent(update: ModelUpdate) -> Pieces:
    """Return the update itself as the only piece."""
    return (Piece("update", update),)


def named(pieces: Pieces, *names: str) -> list[ModelUpdate]:
    """Return the updates in the pieces of these names; ValueError unless they are all there, in this order."""
    if tuple(piece.name for piece in pieces) != names:
        found = ", ".join(piece.name for piece in pieces) or "nothing"
        raise ValueError(f"{found}, where {', '.join(names)} should have come")
    return [piece.update for piece in pieces]


def checked(update: ModelUpdate, size: int, dtypes: Sequence[str], *, dense: bool = False) -> ModelUpdate:
    """Return the update; ValueError unless it is of that length and of one of these types."""
    is_known = any(update.values.dtype == _dtype(name) for name in dtypes)
    if update.size != size or not is_known or (dense and update.indices is not None):
        kind = "dense" if update.indices is None else "sparse"
        raise ValueError(f"{kind} {update.values.dtype.name} of length {update.size}, not {dtypes[0]} of {size}")
    return update


@functools.cache
def _dtype(name: str) -> np.dtype[Any]:
    """Return the type of that name: to ask an array's type for its name takes much longer than to compare types."""
    return np.dtype(name)
