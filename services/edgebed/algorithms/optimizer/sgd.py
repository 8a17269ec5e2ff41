"""Plain stochastic gradient descent; the arithmetic is in learning/optimizers.py."""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.optimizer.rate import Rate


@dataclass(frozen=True, kw_only=True)
class Config(Rate):
    """Parameters follow their gradient."""

    name: Literal["sgd"] = "sgd"
