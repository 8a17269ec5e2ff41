"""Delayed Nesterov momentum: each push moves the model at once, and momentum once in every N of them.

Liu, Chhaparia, Douillard, Kale, Rusu, Shen, Szlam, Ranzato 2024, Asynchronous local-SGD training for language modeling,
arXiv:2401.09135, algorithm 3: momentum at every arrival would add up what is stale, and diverges.

Theta (n,) the model; x a push; A what has come since momentum moved the model last; tau the pushes applied since the
one that x was computed at.

    each push      x <- s(tau) x ;  Theta <- Theta - alpha / N x ;  A <- A + x
    each N-th      m <- b m + A / N ;  Theta <- Theta - alpha b m ;  A <- 0

With N workers that push in turn these are the steps of Nesterov's momentum for the mean of a round, taken early.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregation.buffered import check_counted
from edgebed.algorithms.aggregator import NO_INFO, Aggregator, PushInfo
from edgebed.algorithms.descent import check_moments
from edgebed.algorithms.schedule import Scheduled
from edgebed.algorithms.update import Applied, ModelUpdate, total


@dataclass(frozen=True, kw_only=True)
class Config(Scheduled):
    """Each push is applied at once, and momentum after every N of them."""

    name: Literal["delayed-nesterov"] = "delayed-nesterov"
    count: int = 4
    """N, pushes after which momentum moves the model."""
    momentum: float = 0.9
    """b, what is left of the velocity each time."""
    staleness: Literal["none", "power"] = "none"
    """What a push is weighted by: nothing, or (1 + tau)^-exponent."""
    exponent: float = 0.5
    """Exponent of `power`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_moments(self)
        check_counted(self)


class Aggregation(Aggregator):
    """The velocity, and what has come since it moved the model."""

    config: Config

    @classmethod
    def together(cls, config: Config, workers: int) -> int:
        """Each push by itself."""
        return 1

    @classmethod
    def holds(cls, config: Config, workers: int, share: float | None) -> float:
        """The velocity and what has come, each as it is and as it becomes, in a checkpoint, and a step."""
        return 6.0

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.velocity = np.zeros_like(theta)
        self.added = np.zeros_like(theta)
        self.pushes = 0
        """Pushes since the velocity moved the model."""

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied:
        """Apply `update`, computed at version `base`; its worker is answered with the new model."""
        config, changed = self.config, update.indices
        if config.staleness == "power":
            weight = (1 + self.version - base) ** -config.exponent
            update = update._replace(values=np.float32(weight) * update.values)
        with np.errstate(over="ignore", invalid="ignore"):  # training that diverges is a result, and seen in its loss
            self.move(update.indices, update.values, config.count)
            self.added = total([ModelUpdate(len(self.theta), None, self.added), update]).values
            self.pushes += 1
            if self.pushes == config.count:
                self.velocity = np.float32(config.momentum) * self.velocity + self.added / np.float32(config.count)
                step = np.float32(self.learning_rate * config.momentum) * self.velocity
                self.theta -= step if self.is_buffer is None else np.where(self.is_buffer, np.float32(0.0), step)
                self.added, self.pushes, changed = np.zeros_like(self.theta), 0, None
        self.version += 1
        return Applied((worker,), changed)
