"""No compression: every entry is sent. The baseline is a peer of the others, not an `if`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.update import Update, as_dtype


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every entry of the gradient is sent."""

    name: Literal["none"] = "none"
    values: Literal["float32", "float16"] = "float32"
    """How a value travels; float16 halves the bytes and rounds the gradient."""


class Compression:
    """Stateless: `compress` returns its input."""

    def __init__(self, config: Config, sizes: Sequence[int]) -> None:
        """`sizes` are the lengths of the tensors that make up the flat vector, in order."""
        self.config = config
        self.size = sum(sizes)

    def compress(self, gradient: NDArray[np.float32], memory: None, key: int) -> tuple[Update, None]:
        """(n,) gradient -> all of it. There is no memory."""
        return Update(self.size, None, as_dtype(gradient, self.config.values)), memory
