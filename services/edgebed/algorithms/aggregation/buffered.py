"""Buffered asynchronous aggregation: the model moves after every K-th push, and nobody waits for it.

n-softsync: Zhang, Gupta, Lian, Liu 2016, Staleness-aware async-SGD for distributed deep learning, IJCAI: the server
updates after K = floor(lambda / n) of lambda learners' gradients, each divided by its staleness (`staleness: divide`).
FedBuff: Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba 2022, Federated learning with buffered asynchronous
aggregation, AISTATS, algorithm 1: K changes of the model, each weighted by (1 + tau)^-1/2 (`staleness: power`).

Theta (n,) the model; x_1 ... x_K what was held; tau_k how often the model moved between x_k's pull and now.

    Theta <- Theta - alpha / K (s(tau_1) x_1 + ... + s(tau_K) x_K)

A worker is answered with the present model as soon as it has pushed. The sum is taken in order of arrival.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import NO_INFO, PushInfo
from edgebed.algorithms.descent import check_moments
from edgebed.algorithms.schedule import Scheduled
from edgebed.algorithms.stepped import Stepped, SteppedAggregator, copies_of
from edgebed.algorithms.update import Applied, ModelUpdate, total


@dataclass(frozen=True, kw_only=True)
class Config(Stepped, Scheduled):
    """The mean of every K pushes is applied in one step; nobody waits for it."""

    name: Literal["buffered"] = "buffered"
    count: int = 10
    """K, pushes that the model moves by at a time; more mean less noise and fewer steps."""
    staleness: Literal["none", "divide", "power"] = "divide"
    """What a push is weighted by: nothing, 1 / max(1, tau), or (1 + tau)^-exponent."""
    exponent: float = 0.5
    """Exponent of `power`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_moments(self)
        check_counted(self)


class Aggregation(SteppedAggregator):
    """The pushes that the model has yet to move by."""

    config: Config
    session = ("held",)

    @classmethod
    def together(cls, config: Config, workers: int) -> int:
        """As many as it waits for."""
        return config.count

    @classmethod
    def holds(cls, config: Config, workers: int, share: float | None) -> float:
        """Each push as it came, with positions of 8 bytes, and weighted; their sum; what its optimizer remembers."""
        if share is None:
            return 1.0 + 2.0 * config.count + copies_of(config)
        return 1.0 + copies_of(config) + 4.0 * share * config.count + 3.0 * min(1.0, share * config.count)

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.held: list[tuple[ModelUpdate, int]] = []
        """Held pushes, each with the version that it was computed at."""

    @property
    def num_held(self) -> int:
        """Number of pushes that the next step is made of."""
        return max(1, len(self.held))

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied:
        """Hold `update`; the K-th moves the model. Its worker continues at once."""
        self.held.append((update, base))
        if len(self.held) < self.config.count:
            return Applied((worker,), np.zeros(0, np.int64), buffered=True)
        weighted = [self._weighted(each, base) for each, base in self.held]
        with np.errstate(over="ignore", invalid="ignore"):  # training that diverges is a result, and seen in its loss
            _, indices, values = total(weighted)
            indices = self.descend(indices, values, len(self.held))
        self.version += len(self.held)
        self.held = []
        return Applied((worker,), indices)

    def _weighted(self, update: ModelUpdate, base: int) -> ModelUpdate:
        tau = (self.version - base) // self.config.count
        if self.config.staleness == "none":
            return update
        weight = 1 / max(1, tau) if self.config.staleness == "divide" else (1 + tau) ** -self.config.exponent
        return update._replace(values=np.float32(weight) * update.values)


def check_counted(config: Any) -> None:
    """Raise ValueError, `field: what`, where a number of pushes, or the exponent of their weights, is out of range."""
    if config.count < 1:
        raise ValueError(f"count: {config.count} is below 1")
    if not config.exponent >= 0.0:
        raise ValueError(f"exponent: {config.exponent:g} is below 0")
