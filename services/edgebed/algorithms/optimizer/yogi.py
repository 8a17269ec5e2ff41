"""Yogi: Zaheer, Reddi, Sachan, Kale, Kumar 2018, Adaptive methods for nonconvex optimization, NeurIPS, Algorithm 2.

    v <- v - (1 - b2) sign(v - g^2) g^2          the rest is Adam's

Uncorrected it is the server's step of FedYogi: Reddi et al. 2021, Adaptive federated optimization, ICLR, Algorithm 2.
Differs from both: v begins at zero.
"""

from dataclasses import dataclass
from typing import Any, Literal

from edgebed.algorithms.optimizer import adam


@dataclass(frozen=True, kw_only=True)
class Config(adam.Config):
    """As Adam, with a mean of squares that falls no faster than a gradient's square."""

    name: Literal["yogi"] = "yogi"  # type: ignore[assignment] # of a part of its own
    epsilon: float = 1e-3
    """Keeps the denominator from zero."""


class Optimizer(adam.Optimizer):
    """Remember what Adam does."""

    def square(self, before: Any, squared: Any) -> Any:
        """(n,) what is remembered of the gradient's square, after one more of it."""
        change = (1.0 - self.config.beta_2) * squared
        return before + change * (before < squared) - change * (before > squared)
