"""One mini-batch gradient at the pulled model; the worker never steps its own copy (Hardy et al. 2017, Algorithm 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.local_work import base


@dataclass(frozen=True, kw_only=True)
class Config:
    """One gradient of one mini-batch."""

    name: Literal["gradient-step"] = "gradient-step"


class LocalWork(base.LocalWork):
    """The gradient itself is pushed."""

    @property
    def copies(self) -> float:
        """Nothing beside the gradient."""
        return 0.0

    def run(
        self,
        gradient: base.Gradient,
        vectors: Mapping[str, Floats],
        batches: Sequence[base.Batch],
        memory: None,
        at: StepContext,
    ) -> base.Done:
        """Return the gradient, and the loss."""
        (batch,) = batches
        return base.one(*gradient(vectors[base.MODEL], batch))
