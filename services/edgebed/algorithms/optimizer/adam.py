"""Adam: Kingma, Ba 2015, Adam: a method for stochastic optimization, ICLR, Algorithm 1."""

from dataclasses import dataclass
from typing import Any, Literal

from edgebed.algorithms.descent import Descent
from edgebed.algorithms.optimizer.rate import StepRate


@dataclass(frozen=True, kw_only=True)
class Config(StepRate):
    """Parameters follow the mean of their gradient, divided by the root of the mean of its square."""

    name: Literal["adam"] = "adam"
    beta_1: float = 0.9
    """Decay of the mean of the gradient."""
    beta_2: float = 0.999
    """Decay of the mean of the gradient's square."""
    epsilon: float = 1e-8
    """Keeps the denominator from zero."""


class Optimizer(Descent):
    """Remember both means."""

    moments = 2
    config: Config

    def step(
        self, parameters: Any, gradient: Any, moments: tuple[Any, ...], number: int, rate: float
    ) -> tuple[Any, tuple[Any, ...]]:
        """(n,) parameters, gradient and moments -> the step, and fresh moments."""
        beta_1, beta_2 = self.config.beta_1, self.config.beta_2
        mean = beta_1 * moments[0] + (1.0 - beta_1) * gradient
        square = beta_2 * moments[1] + (1.0 - beta_2) * gradient * gradient
        unbiased_mean = mean / (1.0 - beta_1 ** (number + 1))
        unbiased_square = square / (1.0 - beta_2 ** (number + 1))
        return rate * unbiased_mean / (unbiased_square**0.5 + self.config.epsilon), (mean, square)
