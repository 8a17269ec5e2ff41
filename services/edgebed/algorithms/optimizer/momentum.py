"""Stochastic gradient descent with momentum; the arithmetic is in learning/optimizers.py."""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.optimizer.rate import Rate


@dataclass(frozen=True, kw_only=True)
class Config(Rate):
    """Parameters follow a velocity, to which each gradient is added."""

    name: Literal["momentum"] = "momentum"
    momentum: float = 0.9
    """What is left of the velocity from one step to the next."""
