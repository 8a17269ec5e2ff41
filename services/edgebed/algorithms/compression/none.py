"""No compression: every entry is sent. The baseline is a peer of the others, not an `if`."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Compressor, Moment, Pieces, Shapes, sent
from edgebed.algorithms.update import Update, as_dtype


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every entry of the gradient is sent."""

    name: Literal["none"] = "none"
    values: Literal["float32", "float16"] = "float32"
    """How a value travels; float16 halves the bytes and rounds the gradient."""


class Compression(Compressor):
    """Stateless: `compress` returns its input."""

    def __init__(self, config: Config, shapes: Shapes) -> None:
        super().__init__(shapes)
        self.config = config

    def compress(self, vector: NDArray[np.float32], memory: None, at: Moment) -> tuple[Pieces, None]:
        """(n,) vector -> all of it. There is no memory."""
        return sent(Update(self.size, None, as_dtype(vector, self.config.values))), memory
