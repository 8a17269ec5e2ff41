"""Random-k: entries drawn at random are sent, the others discarded or remembered.

The other selection of Shokri, Shmatikov 2015, Privacy-preserving deep learning, ACM CCS, beside that of the largest
entries (top-k). Scaled by n / k the update is right on average: Konečný, McMahan, Yu, Richtárik, Suresh, Bacon 2016,
Federated learning: strategies for improving communication efficiency, arXiv:1610.05492, "subsampling". With `residual`
what is not sent is added the next time: Stich, Cordonnier, Jaggi 2018, Sparsified SGD with memory, NeurIPS. Differs
from these: positions travel, where a seed would do.

Shapes: n parameters; k = max(1, floor(n * fraction)).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgebed.algorithms.compressor import FixedShare, Floats, Pieces, StepContext, sent
from edgebed.algorithms.shares import check_share
from edgebed.algorithms.update import ModelUpdate, as_dtype, remainder

FEW = 50
"""Numpy shuffles all positions where more than one in so many is drawn."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Entries of the gradient that are drawn at random are sent."""

    name: Literal["random-k"] = "random-k"
    fraction: float = 0.01
    """Share of the entries that is sent, in (0, 1]; smaller means fewer bytes and slower learning."""
    residual: bool = False
    """Whether what is not sent is remembered, and added the next time."""
    scaled: bool = False
    """Whether what is sent is multiplied by n / k: right on average, and it varies more."""
    values: Literal["float32", "float16"] = "float32"
    """How a value travels; float16 saves two bytes an entry and rounds the gradient."""

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)
        if self.residual and self.scaled:
            raise ValueError("scaled: with a residual what is not sent is made up for twice; set one of the two")


class Compression(FixedShare):
    """Selection by a random draw; remembers the others, if anything."""

    config: Config

    @property
    def copies(self) -> float:
        """Positions of 8 bytes, all of them unless few are drawn; what was left out, and what it was added to."""
        return (2.5 if self.count * FEW > self.size else 0.5) + (3.0 if self.config.residual else 0.0)

    def compress(self, vector: Floats, memory: Floats | None, context: StepContext) -> tuple[Pieces, Floats | None]:
        """(n,) vector -> (k,) of its entries, drawn by the key of this moment."""
        whole = vector if memory is None else vector + memory
        indices = np.sort(context.draws().choice(self.size, self.count, replace=False))
        values = whole.take(indices)
        if self.config.scaled:
            values *= np.float32(self.size / self.count)
        update = ModelUpdate(self.size, indices, as_dtype(values, self.config.values))
        return sent(update), remainder(whole, update) if self.config.residual else None
