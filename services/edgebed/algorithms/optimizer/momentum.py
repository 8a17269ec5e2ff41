"""Gradient descent with momentum.

heavy ball   v <- m v + g ;  step alpha v:  Polyak 1964, Some methods of speeding up the convergence of iteration
methods, USSR Computational Mathematics and Mathematical Physics 4(5)
Nesterov     v <- m v + g ;  step alpha (g + m v): Sutskever, Martens, Dahl, Hinton 2013, On the importance of
initialization and momentum in deep learning, ICML, as torch.optim has it
"""

from dataclasses import dataclass
from typing import Any, Literal

from edgebed.algorithms.descent import Descent
from edgebed.algorithms.optimizer.rate import StepRate


@dataclass(frozen=True, kw_only=True)
class Config(StepRate):
    """Parameters follow a velocity, to which each gradient is added."""

    name: Literal["momentum"] = "momentum"
    momentum: float = 0.9
    """m, what is left of the velocity from one step to the next: heavy ball."""
    nesterov: bool = False
    """Nesterov's momentum: the step looks ahead along the velocity."""


class Optimizer(Descent):
    """The velocity is remembered."""

    moments = 1
    config: Config

    def step(
        self, parameters: Any, gradient: Any, moments: tuple[Any, ...], number: int, rate: float
    ) -> tuple[Any, tuple[Any, ...]]:
        """(n,) parameters, gradient and moments -> the step, and fresh moments."""
        gradient = self.pulled(parameters, gradient)
        velocity = self.config.momentum * moments[0] + gradient
        ahead = gradient + self.config.momentum * velocity if self.config.nesterov else velocity
        return rate * ahead, (velocity,)
