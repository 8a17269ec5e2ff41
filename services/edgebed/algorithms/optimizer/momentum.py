"""Stochastic gradient descent with momentum."""

from dataclasses import dataclass
from typing import Any, Literal

from edgebed.algorithms.descent import Descent
from edgebed.algorithms.optimizer.rate import Rate


@dataclass(frozen=True, kw_only=True)
class Config(Rate):
    """Parameters follow a velocity, to which each gradient is added."""

    name: Literal["momentum"] = "momentum"
    momentum: float = 0.9
    """What is left of the velocity from one step to the next."""


class Optimizer(Descent):
    """The velocity is remembered."""

    moments = 1
    config: Config

    def step(
        self, parameters: Any, gradient: Any, moments: tuple[Any, ...], number: int, rate: float
    ) -> tuple[Any, tuple[Any, ...]]:
        """(n,) parameters, gradient and moments -> fresh ones."""
        velocity = self.config.momentum * moments[0] + gradient
        return parameters - rate * velocity, (velocity,)
