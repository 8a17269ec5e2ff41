"""Local steps on a model of the worker's own, which it keeps: what the others have learnt never reaches it.

    y <- what it was after the push before ;  for each mini-batch: y <- y - step of grad f(y)

The steps are those of local_steps.py. It begins with the model that it first pulls, and looks at no later one. With the
compression `nothing` this is training without communication, what federated methods are measured against.

Shapes: n parameters, b examples in a mini-batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.local_work import base, local_steps


@dataclass(frozen=True, kw_only=True)
class Config(local_steps.Config):
    """Steps on the worker's own model, which no other model ever replaces."""

    name: Literal["alone"] = "alone"  # type: ignore[assignment] # of a part of its own

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.proximal:
            raise ValueError("proximal: there is no other model that the worker's own could be held to")
        if self.moments == "kept":
            raise ValueError("moments: what is remembered is the worker's own model, so they begin anew")


class LocalWork(local_steps.LocalWork):
    """The worker's own model is remembered."""

    config: Config
    has_own_model: ClassVar[bool] = True

    @property
    def copies(self) -> float:
        """The worker's own model beside the steps; the one after them takes the place of the copy that they made."""
        return super().copies + 1.0

    def run(
        self,
        gradient: base.Gradient,
        vectors: Mapping[str, Floats],
        batches: Sequence[base.Batch],
        memory: Any,
        at: StepContext,
    ) -> base.Done:
        """Return how far the steps went, the mean loss before them, and the model that they lead to."""
        own = vectors[base.MODEL] if memory is None else memory
        done = super().run(gradient, {base.MODEL: own}, batches, None, at)
        return done._replace(memory=np.subtract(own, done.vectors[base.MODEL]))
