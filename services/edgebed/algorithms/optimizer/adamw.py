"""AdamW: Loshchilov, Hutter 2019, Decoupled weight decay regularization, ICLR, Algorithm 2, as torch.optim has it.

step alpha (Adam's + weight_decay theta)
"""

from dataclasses import dataclass
from typing import Any, Literal

from edgebed.algorithms.optimizer import adam


@dataclass(frozen=True, kw_only=True)
class Config(adam.Config):
    """As Adam, with weights that decay whatever their gradient's size."""

    name: Literal["adamw"] = "adamw"  # type: ignore[assignment] # of a part of its own
    weight_decay: float = 0.01
    """What decays of the parameters in a step, times the learning rate."""


class Optimizer(adam.Optimizer):
    """Remember what Adam does."""

    def step(
        self, parameters: Any, gradient: Any, moments: tuple[Any, ...], number: int, rate: float
    ) -> tuple[Any, tuple[Any, ...]]:
        """(n,) parameters, gradient and moments -> the step, and fresh moments."""
        step, moments = super().step(parameters, gradient, moments, number, rate)
        return step + rate * self.config.weight_decay * parameters, moments

    def pulled(self, parameters: Any, gradient: Any) -> Any:
        """(n,) the gradient alone: decay is no part of it."""
        return gradient
