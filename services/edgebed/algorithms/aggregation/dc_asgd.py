"""DC-ASGD: a late gradient is corrected by how far the model has moved since its worker pulled.

Zheng, Meng, Wang, Chen, Yu, Ma, Liu 2017, Asynchronous stochastic gradient descent with delay compensation, ICML,
equation (10) and algorithm 2: g g stands for the diagonal of the Hessian, so that g + g g (Theta - Theta') is about the
gradient at Theta.

Theta (n,) the model; Theta' what the worker pulled; g its gradient; all by entry.

    Theta <- Theta - alpha (g + l g g (Theta - Theta'))

    constant   l = lambda                                                              DC-ASGD-c
    adaptive   l = lambda / sqrt(v + 1e-7) ,  v <- m v + (1 - m) g g                   DC-ASGD-a

Differs from the paper: of a sparse push v changes only where an entry was sent, and buffers, such as running means, are
not corrected.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import NO_INFO, PushInfo
from edgebed.algorithms.pulled import PulledAggregator
from edgebed.algorithms.schedule import Scheduled
from edgebed.algorithms.update import Applied, ModelUpdate

EPSILON = np.float32(1e-7)


@dataclass(frozen=True, kw_only=True)
class Config(Scheduled):
    """Each push is applied at once, corrected by how far the model has moved since its worker pulled."""

    name: Literal["dc-asgd"] = "dc-asgd"
    compensation: float = 0.04
    """lambda; larger means that late gradients are corrected more, 0 that they are not."""
    adaptive: bool = False
    """Divide the compensation by the root of the mean of the gradient's square; the paper's lambda is 2 then."""
    decay: float = 0.95
    """`adaptive`: m, what is left of that mean from one push to the next."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.compensation >= 0.0:
            raise ValueError(f"compensation: {self.compensation:g} is below 0")
        if not 0.0 <= self.decay < 1.0:
            raise ValueError(f"decay: {self.decay:g} is not from 0 to below 1")


class Aggregation(PulledAggregator):
    """The model, what each worker has of it, and the mean of squares."""

    config: Config

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.mean_square = np.zeros(len(theta) if config.adaptive else 0, np.float32)

    @classmethod
    def holds(cls, config: Config, workers: int, share: float | None) -> float:
        """A model for each worker, a mean of squares, which a checkpoint copies, and what is made of a push."""
        return workers + 5.0 * (1.0 if share is None else share) + 2.0 * config.adaptive

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied:
        """Apply `update`, corrected; its worker is answered with the new model."""
        k = slice(None) if update.indices is None else update.indices
        gradient = update.values.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # training that diverges is a result, and seen in its loss
            correction = np.float32(self.config.compensation) * gradient * gradient
            if self.config.adaptive:
                decay = np.float32(self.config.decay)
                mean = decay * self.mean_square[k] + (1 - decay) * gradient * gradient
                self.mean_square[k] = mean
                correction /= np.sqrt(mean + EPSILON)
            correction *= self.theta[k] - self.models[worker][k]
            if self.is_buffer is not None:
                correction[self.is_buffer[k]] = 0.0
            self.move(update.indices, gradient + correction)
        self.version += 1
        return Applied((worker,), update.indices)
