"""Adam: Kingma, Ba 2015, Adam: a method for stochastic optimization, ICLR, Algorithm 1.

The arithmetic is in learning/optimizers.py.
"""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.optimizer.rate import Rate


@dataclass(frozen=True, kw_only=True)
class Config(Rate):
    """Parameters follow the mean of their gradient, divided by the root of the mean of its square."""

    name: Literal["adam"] = "adam"
    beta_1: float = 0.9
    """Decay of the mean of the gradient."""
    beta_2: float = 0.999
    """Decay of the mean of its square."""
    epsilon: float = 1e-8
    """Keeps the denominator from zero."""
