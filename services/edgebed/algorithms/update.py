"""What a worker sends: the chosen entries of a flat vector, or all of them.

Shapes: n parameters, k chosen entries.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FLOAT16_MAX = 65504.0


class ModelUpdate(NamedTuple):
    """A sparse update (`indices` given) or a dense one (`indices` None, one value per parameter)."""

    size: int
    """n, the length of the flat vector."""
    indices: NDArray[np.int64] | None
    """(k,) strictly increasing positions."""
    values: NDArray[Any]
    """(k,) or (n,) float32; float16 where the method asks for it, since it changes the method; others in its pieces."""

    @property
    def entries(self) -> int:
        """Number of values sent."""
        return len(self.values)

    @property
    def bits(self) -> int:
        """Bits that the algorithm needs: a value, and 32 bits for the index of each chosen entry."""
        index_bits = 0 if self.indices is None else 32
        return self.entries * (self.values.itemsize * 8 + index_bits)

    def dense(self) -> NDArray[np.float32]:
        """(n,) the update in single precision, in memory of its own, with zeros where nothing was sent."""
        values = np.zeros(self.size, np.float32)
        values[slice(None) if self.indices is None else self.indices] = self.values
        return values


class Applied(NamedTuple):
    """What an aggregation did with the pushes that it held: all of them are applied, or they are held still."""

    released: tuple[str, ...]
    """The workers that are answered with the model as it is now; each takes part."""
    changed: NDArray[np.int64] | None
    """(k,) positions of the entries whose value may have changed; None: all of them."""
    buffered: bool = False
    """Whether the pushes are still held, and the model is as it was."""


def total(updates: Sequence[ModelUpdate]) -> ModelUpdate:
    """Return the sum in single precision, in the order given; dense if one of the updates is."""
    size = updates[0].size
    values = np.full(size, -0.0, np.float32)  # what added to any number leaves it as it is, minus zero too
    for update in updates:
        if update.indices is None:
            values += update.values
        else:
            values[update.indices] += update.values
    if any(update.indices is None for update in updates):
        return ModelUpdate(size, None, values)
    is_sent = np.zeros(size, bool)
    for update in updates:
        is_sent[update.indices] = True
    indices = np.flatnonzero(is_sent)
    return ModelUpdate(size, indices, values[indices])


def remainder(whole: NDArray[np.float32], update: ModelUpdate) -> NDArray[np.float32]:
    """(n,) what a sparse update of a vector leaves out of it, including what rounding took away."""
    assert update.indices is not None
    left = whole.copy()
    left[update.indices] -= update.values
    return left


def as_dtype(values: NDArray[np.float32], dtype: str) -> NDArray[np.float32] | NDArray[np.float16]:
    """Convert values as they travel; float16 saturates at its largest number instead of overflowing to infinity."""
    if dtype == "float16":
        return np.clip(values, -FLOAT16_MAX, FLOAT16_MAX).astype(np.float16)
    return values
