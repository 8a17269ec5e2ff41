"""Direct minimisation of the gradient loss: layers learn to have gradients that can be predicted.

Tong et al. 2016, Layer-wise asynchronous training of neural networks with synthetic gradients, sections 5.1 and 7.1. It
is back-propagation, and everybody waits; beside each shard but the last a module M learns to predict the gradient d of
its outputs h, as with synthetic gradients. Nobody uses what it predicts. Its loss is added to the model's:

    total loss = loss + weight * (L_1 + L_2 + ...),   L_i = mean over the batch of |d_i - M_i(h_i)|^2

and the layers follow the gradient of the total. d_i is that of all that lies above h_i, their L included; in L_i it is
a constant. So what reaches the layers below h_i is d_i + weight * dL_i/dh_i.

Scale: M predicts the gradient of each example's own loss, B times that of the mean over a batch of B; see
learning/shards/predictor.py. The sum over a batch of the squared errors in gradients of a mean is L_i / B, so whoever
means that one, as the report's formula may be read, sets the weight to 1 / B.

The report's modules do not see the labels. With a weight of 0 it is back-propagation, bit for bit.
"""

import math
from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.layerwise.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Config:
    """Back-propagation of the loss and of what modules cannot predict of the gradients."""

    name: Literal["direct-minimisation"] = "direct-minimisation"
    weight: float = 1.0
    """Weight of the modules' losses in the total; 0 is back-propagation with modules that nobody listens to."""
    labels: bool = False
    """Whether modules see the labels."""
    hidden_layers: int = 1
    """Hidden layers of a module; 0: it is linear."""
    hidden: int | None = None
    """Width of the hidden layers; None: 1,024, or for images as many channels as the layer has."""

    def __post_init__(self) -> None:
        """Raise ValueError, `field: what`, where a setting is outside its range."""
        if not 0.0 <= self.weight < math.inf:
            raise ValueError(f"weight: {self.weight:g} is not a number from 0")
        if self.hidden_layers < 0:
            raise ValueError(f"hidden_layers: {self.hidden_layers} is below 0")
        if self.hidden is not None and self.hidden < 1:
            raise ValueError(f"hidden: {self.hidden} is below 1")


def rule(config: Config) -> Rule:
    """Return what a shard does in direct minimisation."""
    return Rule(source="direct", down="gradient", weight=config.weight)
