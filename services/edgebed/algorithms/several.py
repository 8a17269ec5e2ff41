"""Several vectors that travel together, one after another in a row, each compressed by itself.

A push has the pieces of the model under their own names, those of another vector behind that vector's name and a slash.

Shapes: v vectors of n entries each.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from edgebed.algorithms.compressor import Compressor, Floats, Form, Pieces, StepContext
from edgebed.algorithms.update import ModelUpdate


class Several(Compressor):
    """Compresses each vector of a row by a compression of its own."""

    def __init__(self, inner: Mapping[str, Compressor]) -> None:
        """`inner` has a compression for each vector, by its name; the first is the model."""
        super().__init__(None, [shape for each in inner.values() for shape in each.shapes])
        self.inner = inner
        self.model = next(iter(inner))
        self.size = sum(each.size for each in inner.values())

    @property
    def forms(self) -> tuple[Form, ...] | None:
        """The forms of all, if each has some."""
        found = list[Form]()
        for name, each in self.inner.items():
            if each.forms is None:
                return None
            found += [form._replace(name=self._named(name, form.name)) for form in each.forms]
        return tuple(found)

    @property
    def copies(self) -> float:
        """The mean of all, of a row that is so much longer."""
        return sum(each.copies for each in self.inner.values()) / len(self.inner)

    @property
    def share(self) -> float | None:
        """The mean share, if each sends chosen entries."""
        shares = [each.share for each in self.inner.values()]
        return None if None in shares else sum(map(float, shares)) / len(shares)  # type: ignore[arg-type] # none is None

    def compress(self, vector: Floats, memory: Any, context: StepContext) -> tuple[Pieces, Any]:
        """(v n,) vectors -> the pieces of each, with draws of its own."""
        found, kept = Pieces(), list[Any]()
        parts = np.split(vector, len(self.inner))
        for k, (name, each) in enumerate(self.inner.items()):
            at = context._replace(key=context.key ^ k)
            pieces, remembered = each.compress(parts[k], memory and memory[k], at)
            found += tuple(piece._replace(name=self._named(name, piece.name)) for piece in pieces)
            kept.append(remembered)
        return found, tuple(kept) if any(each is not None for each in kept) else None

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """Return the update of all, dense if one of them is. ValueError where the pieces are not of these vectors."""
        found: dict[str, Pieces] = dict.fromkeys(self.inner, ())
        for piece in pieces:
            head, slash, name = piece.name.rpartition("/")
            vector = head if slash else self.model
            if vector not in found or (slash and vector == self.model):
                raise ValueError(f"{piece.name:.80}, which is of none of {', '.join(self.inner)}")
            found[vector] += (piece._replace(name=name),)
        return _in_a_row([each.restore(found[name]) for name, each in self.inner.items()])

    def _named(self, vector: str, piece: str) -> str:
        return piece if vector == self.model else f"{vector}/{piece}"


def apart(update: ModelUpdate, vectors: int) -> list[ModelUpdate]:
    """Return the update of each of so many vectors, of one of them all in a row."""
    if vectors == 1:
        return [update]
    size = update.size // vectors
    if update.indices is None:
        return [ModelUpdate(size, None, values) for values in np.split(update.values, vectors)]
    ends = np.searchsorted(update.indices, [size * k for k in range(vectors + 1)])
    return [
        ModelUpdate(size, update.indices[start:end] - k * size, update.values[start:end])
        for k, (start, end) in enumerate(itertools.pairwise(ends))
    ]


def _in_a_row(updates: list[ModelUpdate]) -> ModelUpdate:
    starts = np.cumsum([0, *(each.size for each in updates)])
    size = int(starts[-1])
    if all(each.indices is not None for each in updates):
        indices = np.concatenate([start + each.indices for start, each in zip(starts, updates, strict=False)])
        return ModelUpdate(size, indices, np.concatenate([each.values for each in updates]))
    values = np.zeros(size, np.float32)
    for start, each in zip(starts, updates, strict=False):
        values[start : start + each.size][slice(None) if each.indices is None else each.indices] = each.values
    return ModelUpdate(size, None, values)
