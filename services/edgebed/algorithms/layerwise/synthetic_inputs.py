"""Synthetic gradients and synthetic inputs: a shard waits for nobody, neither above nor below.

Jaderberg et al. 2017, Decoupled neural interfaces using synthetic gradients, ICML, section 2.3; Tong et al. 2016,
Layer-wise asynchronous training of neural networks with synthetic gradients, section 8.3. A second module predicts a
shard's inputs from the model's own inputs, which every shard therefore has; it learns when the inputs come. What a
shard sends up are its outputs for the inputs as predicted.
"""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.layerwise.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings."""

    name: Literal["synthetic-inputs"] = "synthetic-inputs"
    labels: bool = True
    """Whether gradient modules see the labels."""
    hidden_layers: int = 1
    """Of a gradient module; 0: it is linear."""
    hidden: int | None = None
    """Their width; None: 1,024, or for images as many channels as the layer has."""
    input_hidden: int | None = None
    """Width of the hidden layer of an input module; None: it has none."""

    def __post_init__(self) -> None:
        """ValueError, `field: what`, where a setting is outside its range."""
        if self.hidden_layers < 0:
            raise ValueError(f"hidden_layers: {self.hidden_layers} is below 0")
        for field in ("hidden", "input_hidden"):
            width = getattr(self, field)
            if width is not None and width < 1:
                raise ValueError(f"{field}: {width} is below 1")


def rule(config: Config) -> Rule:
    """What a shard does."""
    return Rule(source="module", down="gradient", synthetic_inputs=True)
