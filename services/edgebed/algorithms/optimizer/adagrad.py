"""Adagrad: Duchi, Hazan, Singer 2011, Adaptive subgradient methods for online learning, JMLR 12, figure 1.

    v <- v + g^2 ;  step alpha g / (sqrt(v) + epsilon)

With `beta_1` it steps along the mean of the gradient, uncorrected: FedAdagrad, Reddi et al. 2021, Adaptive federated
optimization, ICLR, Algorithm 2. Differs from that: v begins at zero.
"""

from dataclasses import dataclass
from typing import Any, Literal

from edgebed.algorithms.optimizer import adam
from edgebed.algorithms.optimizer.rate import StepRate


@dataclass(frozen=True, kw_only=True)
class Config(StepRate):
    """Parameters follow their gradient, divided by the root of the sum of its squares."""

    name: Literal["adagrad"] = "adagrad"
    beta_1: float = 0.0
    """Decay of the mean of the gradient; 0: the gradient itself."""
    epsilon: float = 1e-3
    """Keeps the denominator from zero."""


class Optimizer(adam.Optimizer):
    """Remember the mean and the sum of squares."""

    @property
    def is_corrected(self) -> bool:
        """A sum is no mean."""
        return False

    def square(self, before: Any, squared: Any) -> Any:
        """(n,) what is remembered of the gradient's square, after one more of it."""
        return before + squared
