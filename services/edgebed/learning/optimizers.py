"""Steps of gradient descent on a flat vector: plain, with momentum, and Adam. Nothing is written in place.

Whoever still holds the parameters of an earlier step, as a graph that has yet to be gone back through, goes on seeing
these. Each entry is computed by itself, so a model cut into pieces takes the same steps as the whole, bit for bit.

Kingma, Ba 2015, Adam: a method for stochastic optimization, ICLR, Algorithm 1.

Shapes: n parameters.
"""

import msgspec
import torch
from torch import Tensor

MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2}
"""Vectors of n entries that each remembers."""


class Optimizer(msgspec.Struct, frozen=True, kw_only=True):
    """How parameters follow their gradient; algorithms/optimizer/ has the settings as a scenario gives them."""

    name: str = "adam"
    """`sgd`, `momentum` or `adam`."""
    learning_rate: float = 1e-3
    """At the first step."""
    decay_at: tuple[int, ...] = ()
    """Steps at which the learning rate is multiplied by `decay_by`, counted from 0."""
    decay_by: float = 0.1
    momentum: float = 0.9
    """`momentum`: what is left of the velocity from one step to the next."""
    beta_1: float = 0.9
    """Adam: decay of the mean of the gradient."""
    beta_2: float = 0.999
    """Adam: decay of the mean of its square."""
    epsilon: float = 1e-8
    """Adam: keeps the denominator from zero."""

    def rate(self, step: int) -> float:
        """The learning rate of the step of this number, the first is 0."""
        rate = self.learning_rate
        for at in self.decay_at:
            if step >= at:
                rate *= self.decay_by
        return rate

    def begin(self, parameters: Tensor) -> tuple[Tensor, ...]:
        """The moments before the first step, (n,) zeros each."""
        return tuple(torch.zeros_like(parameters) for _ in range(MOMENTS[self.name]))

    def step(
        self, parameters: Tensor, gradient: Tensor, moments: tuple[Tensor, ...], number: int
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """(n,) parameters, gradient and moments -> fresh ones after the step of this number."""
        rate = self.rate(number)
        if self.name == "sgd":
            return parameters - rate * gradient, ()
        if self.name == "momentum":
            velocity = self.momentum * moments[0] + gradient
            return parameters - rate * velocity, (velocity,)
        mean = self.beta_1 * moments[0] + (1.0 - self.beta_1) * gradient
        square = self.beta_2 * moments[1] + (1.0 - self.beta_2) * gradient * gradient
        unbiased_mean = mean / (1.0 - self.beta_1 ** (number + 1))
        unbiased_square = square / (1.0 - self.beta_2 ** (number + 1))
        return parameters - rate * unbiased_mean / (unbiased_square.sqrt() + self.epsilon), (mean, square)
