"""Plain stochastic gradient descent."""

from dataclasses import dataclass
from typing import Any, Literal

from edgebed.algorithms.descent import Descent
from edgebed.algorithms.optimizer.rate import StepRate


@dataclass(frozen=True, kw_only=True)
class Config(StepRate):
    """Parameters follow their gradient."""

    name: Literal["sgd"] = "sgd"


class Optimizer(Descent):
    """Nothing is remembered."""

    moments = 0
    config: Config

    def step(
        self, parameters: Any, gradient: Any, moments: tuple[Any, ...], number: int, rate: float
    ) -> tuple[Any, tuple[Any, ...]]:
        """(n,) parameters, gradient and moments -> the step, and fresh moments."""
        return rate * self.pulled(parameters, gradient), ()
