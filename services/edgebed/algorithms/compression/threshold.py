"""Entries above a fixed threshold are sent.

The "thresholdSGD" that Tao, Li 2018, eSGD: communication efficient distributed deep learning on the edge, HotEdge,
compare with; they do not say which threshold. With `residual` what is not sent adds up until it passes the threshold:
Strom 2015, Scalable distributed DNN training using commodity GPU cloud computing, Interspeech; that work sends plus or
minus the threshold where here the value itself travels.

Shapes: n parameters; k entries pass, as many as happen to.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgebed.algorithms.compressor import Compressor, Floats, Form, Pieces, StepContext, sent
from edgebed.algorithms.update import ModelUpdate, as_dtype, remainder


@dataclass(frozen=True, kw_only=True)
class Config:
    """Entries whose magnitude is above a threshold are sent."""

    name: Literal["threshold"] = "threshold"
    threshold: float = 0.001
    """What a magnitude has to be above; larger means fewer bytes and slower learning."""
    residual: bool = False
    """Whether what is not sent is remembered, and added the next time."""
    values: Literal["float32", "float16"] = "float32"
    """How a value travels."""

    def __post_init__(self) -> None:
        if not self.threshold >= 0.0:
            raise ValueError(f"threshold: {self.threshold} is below 0")


class Compression(Compressor):
    """Compression by a threshold; remembers what was not sent, if anything."""

    config: Config

    @property
    def forms(self) -> tuple[Form, ...]:
        """As many entries of the update as pass, which may be all."""
        return (Form("update", self.size, self.config.values, self.size),)

    @property
    def copies(self) -> float:
        """Magnitudes and who passes; what was left out, and what it was added to."""
        return 4.8 if self.config.residual else 2.8

    @property
    def share(self) -> float:
        """Nobody knows before how many pass."""
        return 1.0

    def compress(self, vector: Floats, memory: Floats | None, context: StepContext) -> tuple[Pieces, Floats | None]:
        """(n,) vector -> its entries above the threshold."""
        whole = vector if memory is None else vector + memory
        indices = np.flatnonzero(~(np.abs(whole) <= self.config.threshold))  # what is no number is not held back
        update = ModelUpdate(self.size, indices, as_dtype(whole.take(indices), self.config.values))
        return sent(update), remainder(whole, update) if self.config.residual else None
