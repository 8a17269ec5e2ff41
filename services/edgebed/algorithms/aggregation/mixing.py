"""FedAsync: the model is mixed with each worker's as it comes, the less of it the staler it is.

Xie, Koyejo, Gupta 2019, Asynchronous federated optimization, arXiv:1903.03934, algorithm 1.

Theta (n,) the model; Theta' what the worker was sent; x its push, so that Theta' - x is its own model; tau the updates
applied since Theta'.

    Theta <- (1 - a) Theta + a (Theta' - x)                                    a = alpha s(tau)

    none    s = 1
    power   s = (1 + tau)^-exponent
    hinge   s = 1 where tau <= b, and 1 / (c (tau - b) + 1) beyond

The paper's workers hold their models to the one that they began with, as FedProx does: `local_work.proximal`, its rho.
Differs from the paper: tau is 0 where nothing came in between, where its t - tau is 1; its server sends the model to
workers that it picks at times, here a worker goes on as soon as its own push is in; a change travels in the place of
the model, so that it can be compressed, and the server keeps for each worker what that was sent. Buffers, such as
running means, are mixed as parameters are.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgebed.algorithms.aggregator import NO_INFO, PushInfo
from edgebed.algorithms.pulled import PulledAggregator
from edgebed.algorithms.schedule import Scheduled
from edgebed.algorithms.update import Applied, ModelUpdate


@dataclass(frozen=True, kw_only=True)
class Config(Scheduled):
    """The model is mixed with that of each worker, as it comes."""

    name: Literal["mixing"] = "mixing"
    learning_rate: float = 0.6
    """alpha, the share of the worker's model where nothing is stale; at most 1, with which that model is taken."""
    staleness: Literal["none", "power", "hinge"] = "power"
    """What alpha is multiplied by: nothing, (1 + tau)^-exponent, or less from some staleness on."""
    exponent: float = 0.5
    """Exponent of `power`."""
    hinge_at: float = 4.0
    """`hinge`: b, the largest staleness that changes nothing."""
    hinge_slope: float = 10.0
    """`hinge`: c, how fast it falls beyond; larger means that what is stale counts less."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning_rate > 1.0:
            raise ValueError(f"learning_rate: {self.learning_rate:g} is above 1, the whole of a worker's model")
        for name in ("exponent", "hinge_at", "hinge_slope"):
            if not getattr(self, name) >= 0.0:
                raise ValueError(f"{name}: {getattr(self, name):g} is below 0")

    def discount(self, tau: int) -> float:
        """Return s(tau)."""
        if self.staleness == "power":
            return float((1 + tau) ** -self.exponent)
        beyond = max(0.0, tau - self.hinge_at) if self.staleness == "hinge" else 0.0
        return 1.0 / (self.hinge_slope * beyond + 1.0)


class Aggregation(PulledAggregator):
    """The model, and what each worker began with."""

    config: Config

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied:
        """Mix the model with that of `worker`, which is answered with the new one."""
        share = np.float32(self.learning_rate * self.config.discount(self.version - base))
        with np.errstate(over="ignore", invalid="ignore"):  # training that diverges is a result, and seen in its loss
            towards = self.models[worker] - self.theta
            towards[slice(None) if update.indices is None else update.indices] -= update.values
            self.theta += share * towards
        self.version += 1
        return Applied((worker,), None)
