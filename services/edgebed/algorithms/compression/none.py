"""No compression: every entry is sent. The baseline is a peer of the others, not an `if`."""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.compressor import Compressor, Floats, Moment, Pieces, sent
from edgebed.algorithms.update import Update, as_dtype


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every entry of the gradient is sent."""

    name: Literal["none"] = "none"
    values: Literal["float32", "float16"] = "float32"
    """How a value travels; float16 halves the bytes and rounds the gradient."""


class Compression(Compressor):
    """Stateless: `compress` returns its input."""

    config: Config

    def compress(self, vector: Floats, memory: None, at: Moment) -> tuple[Pieces, None]:
        """(n,) vector -> all of it. There is no memory."""
        return sent(Update(self.size, None, as_dtype(vector, self.config.values))), memory
