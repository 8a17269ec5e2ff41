"""Synthetic gradients: a module beside each shard predicts the gradient of its outputs, and nobody waits.

Jaderberg et al. 2017, Decoupled neural interfaces using synthetic gradients, ICML, section 2. What the module is taught
is either the gradient that the shard above computes from its own prediction (bootstrapped: Jaderberg et al., Chen et
al. 2019, Exploring the use of synthetic gradients for distributed deep learning across cloud and edge resources,
HotEdge, section 3.1), or the true gradient, which goes down later through the stored graphs (Tong et al. 2016).

`blend` is the lambda of BP(lambda) in the supplement of Jaderberg et al.: the share of the gradient from above in what
a shard learns from. Above 0 the shard waits for it; 1 is back-propagation with modules that nobody listens to.

With `send_every: k` the first shard makes every step, the others make the steps 0, k, 2k, ...: those whose outputs
go up, at every boundary. Gradient modules are taught on these steps alone, and are believed on all.

What a module `predicts` has a scale. The gradient of an example's own loss does not depend on the size of the
mini-batch, and the module's loss is its squared error, summed over features and averaged over the mini-batch. The
gradient of the mean loss, with a squared error averaged over all entries, is how a widespread implementation has it,
with Jaderberg et al.'s schedule (github.com/nitarshan/decoupled-neural-interfaces).

There is nothing to match by batch here (synthetic_inputs.py): a shard learns of what came to it, so its step is that of
its inputs.
"""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.layerwise.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of synthetic gradients."""

    name: Literal["synthetic-gradients"] = "synthetic-gradients"
    target: Literal["bootstrapped", "back-propagated"] = "bootstrapped"
    """What modules are taught: the gradient by the prediction above, one step late at most; or the true one, as it
    comes back from the loss."""
    blend: float = 0.0
    """Share of the gradient from above: 0 waits for nothing, 1 is back-propagation."""
    labels: bool = True
    """Whether modules see the labels."""
    predicts: Literal["example", "mini-batch"] = "example"
    """Whose gradient modules predict: that of each example's own loss; or that of the mini-batch's mean loss, which is
    smaller by the size of the mini-batch, so that Adam's steps, of one size, are coarse for it."""
    hidden_layers: int = 1
    """Hidden layers of a module; 0: it is linear."""
    hidden: int | None = None
    """Width of the hidden layers; None: 1,024, or for images as many channels as the layer has."""
    send_every: int = 1
    """n: outputs of every n-th step go up; shards above the first, and all gradient modules, learn of these steps
    alone. Larger: less traffic, and less learnt there."""

    def __post_init__(self) -> None:
        """Raise ValueError, `field: what`, where a setting is outside its range."""
        if not 0.0 <= self.blend <= 1.0:
            raise ValueError(f"blend: {self.blend:g} is not from 0 to 1")
        if self.blend and self.target == "back-propagated":
            raise ValueError("target: with a blend modules are taught the gradient that came, 'bootstrapped'")
        if self.send_every < 1:
            raise ValueError(f"send_every: {self.send_every} is below 1")
        if self.blend and self.send_every > 1:
            raise ValueError("send_every: with a blend a shard waits for the gradient of every step; leave it at 1")
        if self.hidden_layers < 0:
            raise ValueError(f"hidden_layers: {self.hidden_layers} is below 0")
        if self.hidden is not None and self.hidden < 1:
            raise ValueError(f"hidden: {self.hidden} is below 1")


def rule(config: Config) -> Rule:
    """Return what a shard does with synthetic gradients."""
    if config.blend:
        return Rule(source="blend", down="gradient", blend=config.blend, modules_apart=True)
    down: Literal["gradient", "true-gradient"] = "gradient" if config.target == "bootstrapped" else "true-gradient"
    return Rule(source="module", down=down, send_every=config.send_every, modules_apart=True)
