"""8-bit integers with a scale for each tensor, or one for the model: every entry is sent, in a quarter of the bytes.

Edgify 2019, Large batch training on edge devices, "F2I": floats to integers, then zip. The posts leave open how: here
the largest magnitude of the entries that share a scale becomes 127 and each entry the nearest integer, so zero stays
zero. With `scope: model` tensors of small entries become coarse, or nothing at all, and the integers pack better.
DEFLATE, the method of zip, is a switch. `rounding: stochastic` is right on average; with `residual` what rounding took
away is added the next time (Seide et al. 2014, 1-bit stochastic gradient descent, Interspeech).

Shapes: n parameters in t tensors; (n,) int8 levels and (t,) float32 scales travel, with `scope: model` a single one.
"""

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Compressor, Floats, Form, Piece, Pieces, Shapes, StepContext, checked, named
from edgebed.algorithms.update import ModelUpdate

LARGEST = 127


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every entry is sent as an 8-bit integer, with a scale for each tensor or for the model."""

    name: Literal["int8"] = "int8"
    scope: Literal["tensor", "model"] = "tensor"
    """Entries that share a scale: those of a tensor, or all of the model."""
    rounding: Literal["nearest", "stochastic"] = "nearest"
    """`stochastic`: up or down by chance, so that it is right on average."""
    residual: bool = False
    """Whether what rounding takes away is remembered, and added the next time."""
    deflate: bool = False
    """Pack the integers with DEFLATE: fewer bytes, more CPU time."""


class Compression(Compressor):
    """Compression to 8-bit integers; remembers what rounding took away, if anything."""

    travels = MappingProxyType(
        {
            "levels": "of all n entries, int8",
            "scales": "of each tensor, or one of the model, float32",
        }
    )

    config: Config

    def __init__(self, config: Config, shapes: Shapes) -> None:
        one_tensor = [(sum(math.prod(shape) for shape in shapes),)]
        super().__init__(config, one_tensor if config.scope == "model" else shapes)

    @property
    def forms(self) -> tuple[Form, ...]:
        """Levels, and scales."""
        return (Form("levels", self.size, "int8", deflate=self.config.deflate), Form("scales", len(self.sizes)))

    @property
    def copies(self) -> float:
        """Levels before they are rounded; what was left out, and what it was added to."""
        return 4.5 if self.config.residual else 2.5

    def compress(self, vector: Floats, memory: Floats | None, context: StepContext) -> tuple[Pieces, Floats | None]:
        """(n,) vector -> levels and scales."""
        whole = vector if memory is None else vector + memory
        rng = context.draws() if self.config.rounding == "stochastic" else None
        levels, scales = np.empty(self.size, np.int8), np.empty(len(self.sizes), np.float32)
        for k, span in enumerate(self.spans):
            scales[k] = scale = np.float32(np.abs(whole[span]).max(initial=0.0) / LARGEST)
            levels[span] = quantised(whole[span], scale, rng)
        left = whole - restored(levels, scales, self.sizes) if self.config.residual else None
        pieces = (
            Piece("levels", ModelUpdate(self.size, None, levels), self.config.deflate),
            Piece("scales", ModelUpdate(len(scales), None, scales)),
        )
        return pieces, left

    def restore(self, pieces: Pieces) -> ModelUpdate:
        """Return levels times scales."""
        levels, scales = named(pieces, "levels", "scales")
        checked(levels, self.size, ("int8",), dense=True)
        checked(scales, len(self.sizes), ("float32",), dense=True)
        return ModelUpdate(self.size, None, restored(levels.values, scales.values, self.sizes))


def quantised(values: Floats, scale: np.float32, rng: np.random.Generator | None = None) -> NDArray[np.int8]:
    """Round (k,) values in units of `scale` to the nearest integer; with `rng` up or down, right on average."""
    if not scale > 0.0 or not np.isfinite(scale):
        return np.zeros(len(values), np.int8)
    scaled = values / scale
    rounded = np.rint(scaled) if rng is None else np.floor(scaled + rng.random(len(scaled), np.float32))
    levels: NDArray[np.int8] = np.clip(rounded, -LARGEST, LARGEST, out=rounded).astype(np.int8)
    return levels


def restored(levels: NDArray[np.int8], scales: Floats, sizes: list[int]) -> Floats:
    """Return the (n,) numbers that the levels stand for."""
    values: Floats = levels.astype(np.float32) * np.repeat(scales, sizes)
    return values
