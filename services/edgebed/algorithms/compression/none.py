"""No compression: every entry is sent. The baseline is a peer of the others, not an `if`."""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.compressor import Compressor, Floats, Form, Pieces, StepContext, sent
from edgebed.algorithms.update import ModelUpdate, as_dtype


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every entry of the gradient is sent."""

    name: Literal["none"] = "none"
    values: Literal["float32", "float16"] = "float32"
    """How a value travels; float16 halves the bytes and rounds the gradient."""


class Compression(Compressor):
    """Compression that has no state: `compress` returns its input."""

    config: Config

    @property
    def forms(self) -> tuple[Form, ...]:
        """All of the update."""
        return (Form("update", self.size, self.config.values),)

    @property
    def copies(self) -> float:
        """A rounded copy."""
        return 1.1 if self.config.values == "float16" else 0.0

    def compress(self, vector: Floats, memory: None, context: StepContext) -> tuple[Pieces, None]:
        """(n,) vector -> all of it. There is no memory."""
        return sent(ModelUpdate(self.size, None, as_dtype(vector, self.config.values))), memory
