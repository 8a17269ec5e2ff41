"""What a worker asks of a compression, and the server of it: a vector becomes pieces that travel, and an update again.

    worker   compress(vector, memory, at) ---> pieces, memory for the next step
    server   restore(pieces) ---> update

A method that chooses entries sends one piece, the update itself. One that writes them as other numbers, such as levels
with a scale, sends these and says how they are read.

Shapes: n parameters in tensors of given shapes, one after the other in the flat vector.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.update import Update

Floats = NDArray[np.float32]
Shapes = Sequence[tuple[int, ...]]
"""Of the tensors that make up the flat vector, in order."""


class Moment(NamedTuple):
    """Where in its training a worker is."""

    key: int
    """The only source of chance: 128 bits that seed, worker and step determine."""
    step: int = 0
    """How many vectors it has compressed before."""
    epoch: float = 0.0
    """How often it has gone through its own data by the version that it computed at, if all push alike.

    So a worker that is started anew is where the training is.
    """
    loss: float = 0.0
    """Mean loss of the mini-batch that the vector comes from."""
    workers: int = 1
    """How many the scenario has."""

    def draws(self) -> np.random.Generator:
        """Chance that the key alone decides, the same each time it is asked for."""
        return np.random.Generator(np.random.Philox(key=self.key))


class Piece(NamedTuple):
    """Numbers that travel: a flat tensor, or chosen entries of one."""

    name: str
    update: Update
    deflate: bool = False
    """Whether its bytes are packed with DEFLATE."""


Pieces = tuple[Piece, ...]


class Compressor:
    """Of a model whose tensors have these shapes."""

    def __init__(self, config: Any, shapes: Shapes) -> None:
        self.config = config
        self.shapes = [tuple(shape) for shape in shapes]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)
        """n"""

    @property
    def spans(self) -> list[slice]:
        """Where each tensor lies in the flat vector."""
        ends = np.cumsum(self.sizes, dtype=int).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    def compress(self, vector: Floats, memory: Any, at: Moment) -> tuple[Pieces, Any]:
        """(n,) gradient or change of the model -> what is sent of it, and what is to be remembered until the next.

        A function of its arguments; `memory` is None at the first step. Nothing that is handed in is written to.
        Training that diverges is a result: numpy does not warn where this is called.
        """
        raise AssertionError(f"{type(self).__name__} does not say what it sends")

    def restore(self, pieces: Pieces) -> Update:
        """The update that the pieces stand for. ValueError where they are not of this method and these settings."""
        (piece,) = named(pieces, "update")
        return checked(piece, self.size, ("float32", "float16"))


class Apart(Compressor):
    """Compresses parameters alone: what modules keep beside them, running means and the like, travels whole."""

    def __init__(self, inner: Compressor, kept: NDArray[np.bool_]) -> None:
        """`kept` (n,) says where the vector is no parameter; `inner` is for the rest of it."""
        super().__init__(inner.config, [(len(kept),)])
        self.inner = inner
        self.kept = np.flatnonzero(kept)
        self.parameters = np.flatnonzero(~kept)

    def compress(self, vector: Floats, memory: Any, at: Moment) -> tuple[Pieces, Any]:
        """(n,) vector -> the pieces of its parameters, and the rest."""
        pieces, memory = self.inner.compress(vector.take(self.parameters), memory, at)
        return (*pieces, Piece("kept", Update(len(self.kept), None, vector.take(self.kept)))), memory

    def restore(self, pieces: Pieces) -> Update:
        """Both together again."""
        (kept,) = named(pieces[-1:], "kept")
        checked(kept, len(self.kept), ("float32",), dense=True)
        update = self.inner.restore(pieces[:-1])
        if update.indices is None:
            values = np.empty(self.size, np.float32)
            values[self.parameters], values[self.kept] = update.values, kept.values
            return Update(self.size, None, values)
        indices = np.concatenate([self.parameters.take(update.indices), self.kept])
        order = np.argsort(indices)
        values = np.concatenate([update.values.astype(np.float32), kept.values])
        return Update(self.size, indices[order], values[order])


def sent(update: Update) -> Pieces:
    """The update itself travels."""
    return (Piece("update", update),)


def named(pieces: Pieces, *names: str) -> list[Update]:
    """What the pieces of these names carry; ValueError unless they are all, in this order."""
    if tuple(piece.name for piece in pieces) != names:
        found = ", ".join(piece.name for piece in pieces) or "nothing"
        raise ValueError(f"{found}, where {', '.join(names)} should have come")
    return [piece.update for piece in pieces]


def checked(update: Update, size: int, dtypes: Sequence[str], *, dense: bool = False) -> Update:
    """The same; ValueError unless it is of that length and of one of these types."""
    if update.size != size or update.values.dtype.name not in dtypes or (dense and update.indices is not None):
        kind = "dense" if update.indices is None else "sparse"
        raise ValueError(f"{kind} {update.values.dtype.name} of length {update.size}, not {dtypes[0]} of {size}")
    return update
