"""Steps of gradient descent on a flat vector of torch's; the arithmetic is that of algorithms/optimizer/.

Shapes: n parameters.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from edgebed.algorithms.descent import Descent
from edgebed.algorithms.registry import descent_of
from edgebed.core.plan import Part


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """How the parameters of one network follow their gradient."""

    descent: Descent
    every: int = 1
    """It learns of every so many mini-batches, and its rate falls at the same ones as everybody's."""
    is_frozen: bool = False
    """Whether the parameters stay as they are."""

    def rate(self, step: int) -> float:
        """The learning rate of the step of this number, the first is 0."""
        rate: float = 0.0 if self.is_frozen else self.descent.config.at(step * self.every, self.every)
        return rate

    def begin(self, parameters: Tensor) -> tuple[Tensor, ...]:
        """The moments before the first step, (n,) zeros each."""
        return tuple(torch.zeros_like(parameters) for _ in range(self.descent.moments))

    def step(
        self, parameters: Tensor, gradient: Tensor, moments: tuple[Tensor, ...], number: int
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """(n,) parameters, gradient and moments -> fresh ones after the step of this number."""
        step, moments = self.descent.step(parameters, gradient, moments, number, self.rate(number))
        return parameters - step, moments


def optimizer(name: str = "adam", **settings: Any) -> Optimizer:
    """The one of that name, with these of its settings and its defaults for the others."""
    return Optimizer(descent=descent_of(Part(name=name, settings=settings)))
