"""The optimizer that a server, or a worker of its own, steps by: its settings, and a server's step.

sgd      alpha g, or with `momentum` along a velocity (optimizer/momentum.py)
others   as in optimizer/, by their names
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import Aggregator
from edgebed.algorithms.descent import Descent
from edgebed.algorithms.optimizer import OPTIMIZERS


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """How steps follow their gradient."""

    optimizer: Literal["sgd", "adam", "yogi", "adagrad"] = "sgd"
    """What steps along the gradient: gradient descent, with `momentum` or without; or one that adapts to it."""
    momentum: float = 0.0
    """`sgd`: what is left of the velocity from one step to the next: heavy ball."""
    nesterov: bool = False
    """`momentum`: Nesterov's: the step looks ahead along the velocity."""
    beta_1: float = 0.9
    """All but `sgd`: decay of the mean of the gradient."""
    beta_2: float = 0.999
    """`adam`, `yogi`: decay of the mean of the gradient's square."""
    epsilon: float = 1e-8
    """All but `sgd`: keeps the denominator from zero."""
    corrected: bool = True
    """`adam`, `yogi`: whether both means are corrected for beginning at zero."""


def descent_by(config: Stepped) -> Descent:
    """Return the optimizer that the settings name."""
    descent: Descent = OPTIMIZERS["momentum" if config.momentum else config.optimizer].Optimizer(config)
    return descent


def copies_of(config: Stepped) -> float:
    """Return how often the model is in what a server's step makes: moments, the next ones, and a checkpoint of them."""
    return 5.0 * descent_by(config).moments


class SteppedAggregator(Aggregator):
    """Steps by an optimizer along what several pushes come to."""

    transient = ("descent",)

    def __init__(self, config: Any, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.descent = descent_by(config)
        self.moments = tuple(np.zeros_like(theta) for _ in range(self.descent.moments))
        """(n,) each, what the optimizer remembers."""
        self.steps = 0

    def descend(
        self, indices: NDArray[np.int64] | None, values: NDArray[Any], divisor: float
    ) -> NDArray[np.int64] | None:
        """Step along values / divisor, at some entries or at all; return which may have changed, None for all.

        Heavy ball's velocity has the learning rate in it. Buffers follow the values themselves.
        """
        if not self.descent.moments:
            self.move(indices, values, divisor)
            return indices
        if indices is not None and getattr(self.config, "entries", "all") == "sent":
            return self._descend_at(indices, values, divisor)
        within = self.config.optimizer == "sgd"
        scale = self.rates(indices, divisor) if within else np.float32(1.0 / divisor)
        gradient = np.zeros_like(self.theta)
        gradient[slice(None) if indices is None else indices] = scale * values
        rate = 1.0 if within else self.learning_rate
        step, self.moments = self.descent.step(self.theta, gradient, self.moments, self.steps, rate)
        self.steps += 1
        self.theta -= step if self.is_buffer is None else np.where(self.is_buffer, gradient, step)
        return None

    def _descend_at(self, indices: NDArray[np.int64], values: NDArray[Any], divisor: float) -> NDArray[np.int64]:
        """Step some entries alone: of others neither the model nor what the optimizer remembers changes."""
        within = self.config.optimizer == "sgd"
        gradient = (self.rates(indices, divisor) if within else np.float32(1.0 / divisor)) * values
        here, rate = tuple(each[indices] for each in self.moments), 1.0 if within else self.learning_rate
        step, after = self.descent.step(self.theta[indices], gradient, here, self.steps, rate)
        for each, now in zip(self.moments, after, strict=True):
            each[indices] = now
        self.steps += 1
        self.theta[indices] -= step if self.is_buffer is None else np.where(self.is_buffer[indices], gradient, step)
        return indices
