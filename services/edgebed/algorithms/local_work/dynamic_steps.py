"""Local steps of FedDyn: the loss of each worker is bent so that all have their least where that of all together is.

Acar, Zhao, Matas, Mattina, Whatmough, Saligrama 2021, Federated learning based on dynamic regularization, ICLR,
algorithm 1. Its server is aggregation/feddyn.py.

    y <- x ;  for each mini-batch: y <- y - step of (grad f_i(y) - l_i + mu (y - x))
    l_i <- l_i + mu (x - y)                                                    sent: x - y

mu is the paper's alpha, and l_i the gradient that it has at the end of the round before: zero at first, and when the
worker was started anew, or a push of it was lost. Differs from the paper: the least of the bent loss is sought by the
steps of local_steps.py. In buffers, such as running means, l_i is zero.

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
    """Several steps along the gradient of a loss that is bent by what came of the rounds before."""

    name: Literal["dynamic-steps"] = "dynamic-steps"  # type: ignore[assignment] # of a part of its own
    proximal: float = 0.01
    """mu, how strongly the copy is held to the model that it began with, and its own gradient is made up for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.proximal > 0.0:
            raise ValueError("proximal: 0 bends no loss; give one, e.g. proximal: 0.01, or take local-steps")
        if self.moments == "kept":
            raise ValueError("moments: what is remembered is the worker's own gradient, so they begin anew")


class LocalWork(local_steps.LocalWork):
    """How far the steps went is pushed; the worker's gradient at the end of them is remembered."""

    config: Config
    goes_with: ClassVar[str] = "feddyn"
    forgets_lost: ClassVar[bool] = True

    @property
    def copies(self) -> float:
        """The worker's gradient, and a slope without it, where no step is made of more."""
        config = self.config
        return super().copies + 1.0 + (config.optimizer == "sgd" and not (config.nesterov or config.weight_decay))

    def run(
        self,
        gradient: base.Gradient,
        vectors: Mapping[str, Floats],
        batches: Sequence[base.Batch],
        memory: Any,
        at: StepContext,
    ) -> base.Done:
        """Return how far the steps went, the mean loss before them, and the gradient at their end."""

        def bent(theta: Floats, batch: base.Batch) -> tuple[Floats, float]:
            slope, loss = gradient(theta, batch)
            return (slope if memory is None else slope - memory), loss

        done = super().run(bent, vectors, batches, None, at)
        own = np.float32(self.config.proximal) * done.vectors[base.MODEL]
        if memory is not None:
            own += memory
        if self.is_buffer is not None:
            own[self.is_buffer] = 0.0
        return done._replace(memory=own)
