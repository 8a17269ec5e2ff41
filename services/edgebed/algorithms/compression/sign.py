"""One bit an entry, and a scale for each tensor; what is lost is added the next time.

Karimireddy, Rebjock, Stich, Jaggi 2019, Error feedback fixes SignSGD and other gradient compression schemes, ICML,
algorithm 1 with the scaled sign: p = g + e; sent (||p||_1 / d) sign(p); e = p - sent. Differs: the memory is in units
of the gradient and not of the step, the same as long as the learning rate does not change; a scale for each tensor, as
in their experiments. Zero counts as positive. Without `residual` it is signSGD with that scale (Bernstein et al. 2018).

Shapes: n parameters in t tensors of d entries; ceil(n / 8) bytes of bits, lowest first, and (t,) float32 scales travel.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Compressor, Floats, Form, Piece, Pieces, StepContext, checked, named
from edgebed.algorithms.update import ModelUpdate


@dataclass(frozen=True, kw_only=True)
class Config:
    """The signs of all entries are sent, with a scale for each tensor."""

    name: Literal["sign"] = "sign"
    residual: bool = True
    """Whether what is lost is remembered, and added the next time."""


class Compression(Compressor):
    """Compression to signs; remembers what was lost, if anything."""

    travels = MappingProxyType(
        {
            "levels": "n bits as uint8, the lowest first, 1 for what is below zero",
            "scales": "of each tensor, float32",
        }
    )

    config: Config

    @property
    def forms(self) -> tuple[Form, ...]:
        """Bits, and scales."""
        return (Form("levels", -(-self.size // 8), "uint8"), Form("scales", len(self.sizes)))

    @property
    def copies(self) -> float:
        """Signs as numbers, what was left out, and what it was added to."""
        return 5.3 if self.config.residual else 1.2

    def compress(self, vector: Floats, memory: Floats | None, context: StepContext) -> tuple[Pieces, Floats | None]:
        """(n,) vector -> signs and scales."""
        whole = vector if memory is None else vector + memory
        is_negative = whole < 0.0
        scales = np.array([np.abs(whole[span]).mean() if span.stop > span.start else 0.0 for span in self.spans], "f4")
        left = whole - self._restored(is_negative.view(np.uint8), scales) if self.config.residual else None
        bits = np.packbits(is_negative, bitorder="little")
        return (
            Piece("levels", ModelUpdate(len(bits), None, bits)),
            Piece("scales", ModelUpdate(len(scales), None, scales)),
        ), left

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """Return plus or minus the scale of each entry's tensor."""
        signs, scales = named(pieces, "levels", "scales")
        checked(signs, -(-self.size // 8), ("uint8",), dense=True)
        checked(scales, len(self.sizes), ("float32",), dense=True)
        is_negative = np.unpackbits(signs.values, count=self.size, bitorder="little")
        return ModelUpdate(self.size, None, self._restored(is_negative, scales.values))

    def _restored(self, is_negative: NDArray[np.uint8], scales: Floats) -> Floats:
        """(n,) ones and zeros -> minus or plus the scale; by a product, as a choice between two takes far longer."""
        return np.repeat(scales, self.sizes) * (np.float32(1) - np.float32(2) * is_negative)
