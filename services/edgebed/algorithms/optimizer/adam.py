"""Adam: Kingma, Ba 2015, Adam: a method for stochastic optimization, ICLR, Algorithm 1.

    m <- b1 m + (1 - b1) g ;  v <- b2 v + (1 - b2) g^2 ;  step alpha m' / (sqrt(v') + epsilon)

m' = m / (1 - b1^t) and v' = v / (1 - b2^t) correct for where means begin; `corrected: false` leaves that out, as Reddi
et al. 2021 do (FedAdam).
"""

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
    corrected: bool = True
    """Whether both means are corrected for beginning at zero."""


class Optimizer(Descent):
    """Remember both means."""

    moments = 2
    config: Config

    def step(
        self, parameters: Any, gradient: Any, moments: tuple[Any, ...], number: int, rate: float
    ) -> tuple[Any, tuple[Any, ...]]:
        """(n,) parameters, gradient and moments -> the step, and fresh moments."""
        beta_1 = self.config.beta_1
        gradient = self.pulled(parameters, gradient)
        mean = beta_1 * moments[0] + (1.0 - beta_1) * gradient
        square = self.square(moments[1], gradient * gradient)
        if not self.is_corrected:
            return rate * mean / (square**0.5 + self.config.epsilon), (mean, square)
        unbiased_mean = mean / (1.0 - beta_1 ** (number + 1))
        unbiased_square = square / (1.0 - self.config.beta_2 ** (number + 1))
        return rate * unbiased_mean / (unbiased_square**0.5 + self.config.epsilon), (mean, square)

    @property
    def is_corrected(self) -> bool:
        """Whether both means are corrected for beginning at zero."""
        return self.config.corrected

    def square(self, before: Any, squared: Any) -> Any:
        """(n,) what is remembered of the gradient's square, after one more of it."""
        return self.config.beta_2 * before + (1.0 - self.config.beta_2) * squared
