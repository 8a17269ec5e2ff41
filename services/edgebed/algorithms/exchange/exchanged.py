"""What shards send each other of an activation, or of a gradient: all values or some, each as a number of few bits.

Shapes: an array of any shape, with n values in C order, of which k are sent.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Exchanged(NamedTuple):
    """An array as it travels."""

    shape: tuple[int, ...]
    indices: NDArray[np.int64] | None
    """(k,) strictly increasing positions of the values; None: all are there, k = n."""
    values: NDArray[Any]
    """(k,) float32, float16 or int8."""
    scale: float | None = None
    """What a value of 1 stands for; None: 1."""

    def restored(self) -> NDArray[np.float32]:
        """The array as its receiver sees it; what was not sent is 0."""
        values = self.values
        if values.dtype != np.float32:
            values = values.astype(np.float32)
        if self.scale is not None:
            values = values * np.float32(self.scale)
        if self.indices is None:
            return values.reshape(self.shape)
        whole = np.zeros(self.shape, np.float32)
        whole.reshape(-1)[self.indices] = values
        return whole
