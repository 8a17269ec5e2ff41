"""Local steps of SCAFFOLD: each is steered by how the worker's own gradients differ from those of all.

Karimireddy, Kale, Mohri, Reddi, Stich, Suresh 2020, SCAFFOLD: stochastic controlled averaging for federated learning,
ICML, algorithm 1, with option II for the new control variate. Its server is aggregation/scaffold.py.

    y <- x ;  for each mini-batch: y <- y - alpha_k (grad f_i(y) - c_i + c)
    c_i <- c_i - c + (x - y) / (alpha_1 + … + alpha_K)                        sent: x - y, and c_i as it is now

x and c come down. c_i is zero at first, and when the worker was started anew; what comes of a round, the mean gradient
of its steps, does not depend on it. In buffers, such as running means, there is no control variate.

The steps are gradient descent alone: with momentum, an optimizer that adapts, a bounded norm or a proximal term the way
gone is no sum of gradients, and these are refused. Weight decay is part of the gradient.

Shapes: n parameters, b examples in a mini-batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.local_work import base, local_steps

CONTROL = "control"


@dataclass(frozen=True, kw_only=True)
class Config(local_steps.Config):
    """Steps of gradient descent on the worker's own copy, each corrected by control variates."""

    name: Literal["controlled-steps"] = "controlled-steps"  # type: ignore[assignment] # of a part of its own

    def __post_init__(self) -> None:
        super().__post_init__()
        if objection := local_steps.plain_objection(self):
            raise ValueError(f"{objection} makes steps that are no sum of gradients, which control variates are of")


class LocalWork(local_steps.LocalWork):
    """How far the steps went is pushed, and the worker's control variate, which it remembers."""

    config: Config
    vectors: ClassVar[tuple[str, ...]] = (base.MODEL, CONTROL)
    goes_with: ClassVar[str] = "scaffold"

    @property
    def copies(self) -> float:
        """The worker's control variate, the correction, and a corrected gradient, unless what decays is made of it."""
        return super().copies + 2.0 + (self.config.weight_decay == 0.0)

    def run(
        self,
        gradient: base.Gradient,
        vectors: Mapping[str, Floats],
        batches: Sequence[base.Batch],
        memory: Any,
        at: StepContext,
    ) -> base.Done:
        """Return how far the steps went, the mean loss before them, and the control variate that comes of them."""
        correction = vectors[CONTROL] if memory is None else vectors[CONTROL] - memory

        def corrected(theta: Floats, batch: base.Batch) -> tuple[Floats, float]:
            slope, loss = gradient(theta, batch)
            return slope + correction, loss

        done = super().run(corrected, {base.MODEL: vectors[base.MODEL]}, batches, None, at)
        rates = sum(self.config.at(*self._time(at, k, len(batches))) for k in range(len(batches)))
        if rates > 0.0:
            control = done.vectors[base.MODEL] / np.float32(rates) - correction
        else:
            control = np.zeros_like(correction) if memory is None else memory
        if self.is_buffer is not None:
            control[self.is_buffer] = 0.0
        return done._replace(vectors={**done.vectors, CONTROL: control}, memory=control)
