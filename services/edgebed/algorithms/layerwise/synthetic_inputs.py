"""Synthetic gradients and synthetic inputs: a shard waits for nobody, neither above nor below.

Jaderberg et al. 2017, Decoupled neural interfaces using synthetic gradients, ICML, section 2.3; Tong et al. 2016,
Layer-wise asynchronous training of neural networks with synthetic gradients, section 8.3. A second module predicts a
shard's inputs from the model's own inputs, which every shard therefore has; it learns when the inputs come. What a
shard sends up are its outputs for the inputs as predicted.

`match: batch` is the batch trick of Tong et al., section 8.3.1. All epochs have the same N batches in the same order,
as many whole ones as there are, and the examples that are left over are in none. What came is stored by the number of
its batch, the step modulo N; a newer one takes the place of the older one. Between two steps a shard teaches either
module what has come longest ago of a batch of which it has made a prediction, so that a matched pair may be of two
epochs: the journal has how far they are apart. What came is used once, and so are outputs. So nobody is held up by who
is slower, and of each kind at most N activations are stored: what came from below and from above, what a module has
to be taught about, what has yet to be sent. Differs from the report: modules see outputs and predict their gradient,
not that of weights; and no more messages are on their way than the queue takes, later ones wait where they were made.

What is stored by batch is in no backup: after a roll-back modules learn from what is made from there on.

With `send_every: k` every shard makes every step, since it predicts its inputs, and of the steps 0, k, 2k, ... alone
outputs go up and gradients come down: both modules are taught on these, and are believed on all.
"""

from dataclasses import dataclass
from typing import Literal

from edgebed.algorithms.layerwise.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of synthetic gradients and inputs."""

    name: Literal["synthetic-inputs"] = "synthetic-inputs"
    labels: bool = True
    """Whether gradient modules see the labels."""
    hidden_layers: int = 1
    """Hidden layers of a gradient module; 0: it is linear."""
    hidden: int | None = None
    """Width of the hidden layers; None: 1,024, or for images as many channels as the layer has."""
    input_hidden: int | None = None
    """Width of the hidden layer of an input module; None: it has none."""
    match: Literal["step", "batch"] = "step"
    """What modules are taught with what they predicted: what came of the same step, so that the queue holds up who is
    ahead; or the newest of the same batch, of any epoch, so that nobody waits and an epoch's activations are stored.
    `batch` has the same batches in the same order in every epoch."""
    send_every: int = 1
    """n: outputs go up, and gradients come down, of every n-th step; modules learn of these alone. Larger: less
    traffic, and predictions that are worse."""

    def __post_init__(self) -> None:
        """Raise ValueError, `field: what`, where a setting is outside its range."""
        if self.send_every < 1:
            raise ValueError(f"send_every: {self.send_every} is below 1")
        if self.hidden_layers < 0:
            raise ValueError(f"hidden_layers: {self.hidden_layers} is below 0")
        for field in ("hidden", "input_hidden"):
            width = getattr(self, field)
            if width is not None and width < 1:
                raise ValueError(f"{field}: {width} is below 1")


def rule(config: Config) -> Rule:
    """Return what a shard does with synthetic gradients and inputs."""
    return Rule(
        source="module",
        down="gradient",
        synthetic_inputs=True,
        send_every=config.send_every,
        match=config.match,
    )
