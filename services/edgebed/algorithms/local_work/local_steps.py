"""Several steps of gradient descent on the worker's own copy; what is sent is how far it went.

McMahan, Moore, Ramage, Hampson, Aguera y Arcas 2017, Communication-efficient learning of deep networks from
decentralized data, AISTATS, algorithm 1 (FedAvg): E epochs over the client's own data. With `proximal` it is FedProx:
Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith 2020, Federated optimization in heterogeneous networks, MLSys, equation (2).

    y <- x ;  for each mini-batch: d <- m d + grad f(y) + mu (y - x) ;  y <- y - alpha d          sent: x - y

A server that subtracts the mean of what is sent, with a learning rate of 1, has averaged the models. What is sent is
added up step by step, and so is right where it is far smaller than the model.

Shapes: n parameters, b examples in a mini-batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.local_work import base


@dataclass(frozen=True, kw_only=True)
class Config:
    """Several steps on the worker's own copy of the model; how far it went is sent."""

    name: Literal["local-steps"] = "local-steps"
    learning_rate: float = 0.1
    """alpha, of the worker's own steps."""
    epochs: float = 1.0
    """E, how often it goes through its own data between a pull and a push."""
    steps: int | None = None
    """Mini-batches between a pull and a push, instead of epochs."""
    momentum: float = 0.0
    """m, what is left of the velocity from one step to the next; each push begins at rest."""
    proximal: float = 0.0
    """mu, how strongly the copy is held to the model that it began with."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "epochs"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name}: {getattr(self, name):g} is not above 0")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps: {self.steps} is below 1")
        if not 0.0 <= self.momentum < 1.0:
            raise ValueError(f"momentum: {self.momentum:g} is not from 0 to below 1")
        if not self.proximal >= 0.0:
            raise ValueError(f"proximal: {self.proximal:g} is below 0")


class LocalWork(base.LocalWork):
    """How far the steps went is pushed."""

    config: Config

    def batches(self, examples: int, batch_size: int) -> int:
        """Return the mini-batches between a pull and a push, for a worker with `examples` examples."""
        return self.config.steps or max(1, round(self.config.epochs * examples / batch_size))

    @property
    def copies(self) -> float:
        """The way gone, the copy of the model, and a step; with momentum a velocity, with `proximal` its pull."""
        return 3.0 + (self.config.momentum > 0.0) + (self.config.proximal > 0.0)

    def run(
        self,
        gradient: base.Gradient,
        vectors: Mapping[str, Floats],
        batches: Sequence[base.Batch],
        memory: None,
        at: StepContext,
    ) -> base.Done:
        """Return how far the steps went in all, and the mean loss before them."""
        alpha, m, mu = (
            np.float32(each) for each in (self.config.learning_rate, self.config.momentum, self.config.proximal)
        )
        theta = vectors[base.MODEL]
        gone, velocity = np.zeros_like(theta), np.zeros_like(theta)
        losses = []
        for batch in batches:
            slope, loss = gradient(theta - gone, batch)
            pull = slope - mu * gone if self.config.proximal else slope
            velocity = m * velocity + pull if self.config.momentum else pull
            gone += alpha * velocity if self.is_buffer is None else np.where(self.is_buffer, slope, alpha * velocity)
            losses.append(loss)
        return base.one(gone, float(np.mean(losses)))
