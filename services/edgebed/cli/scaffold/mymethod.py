"""The method: a compression that sends the largest entries and remembers the others. See docs/creating-a-method.md."""

from dataclasses import dataclass

import numpy as np

from edgebed.algorithms.compressor import Compressor, Floats, Pieces, StepContext, sent
from edgebed.algorithms.update import ModelUpdate


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of the compression, which a scenario may change."""

    fraction: float = 0.1
    """Share of the entries that is sent, in (0, 1]; smaller means fewer bytes and older news."""

    def __post_init__(self) -> None:
        if not 0.0 < self.fraction <= 1.0:
            raise ValueError(f"fraction: {self.fraction} is not in (0, 1]")


class Compression(Compressor):
    """Sends the largest entries of the gradient; what is left out is added to the next one."""

    config: Config

    @property
    def copies(self) -> float:
        """How often the model is in memory meanwhile, what is remembered included."""
        return 4.5

    @property
    def share(self) -> float:
        """The largest share of the entries that is ever sent."""
        return self._count() / self.size

    def compress(self, vector: Floats, memory: Floats | None, context: StepContext) -> tuple[Pieces, Floats]:
        """(n,) gradient, with what was left out before -> (k,) of its entries, and what is left out now."""
        whole = vector if memory is None else vector + memory
        indices = np.sort(np.argsort(np.abs(whole))[-self._count() :])
        rest = whole.copy()
        rest[indices] = 0.0
        return sent(ModelUpdate(self.size, indices, whole[indices])), rest

    def _count(self) -> int:
        return max(1, int(self.size * self.config.fraction))
