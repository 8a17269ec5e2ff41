"""Several steps of gradient descent on the worker's own copy; what is sent is how far it went.

McMahan, Moore, Ramage, Hampson, Aguera y Arcas 2017, Communication-efficient learning of deep networks from
decentralized data, AISTATS, algorithm 1 (FedAvg): E epochs over the client's own data. With `proximal` it is FedProx:
Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith 2020, Federated optimization in heterogeneous networks, MLSys, equation (2).

    y <- x ;  for each mini-batch: y <- y - step of (grad f(y) + mu (y - x))          sent: x - y

The step is alpha times that, along a velocity with `momentum`, or Adam's (stepped.py), whose moments begin at rest with
each push. alpha may change from mini-batch to mini-batch (schedule.py), by how often the worker has gone through its
own data.

A server that subtracts the mean of what is sent, with a learning rate of 1, has averaged the models. What is sent is
added up step by step, and so is right where it is far smaller than the model.

Shapes: n parameters, b examples in a mini-batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgebed.algorithms.batches import batches_of
from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.descent import check_moments
from edgebed.algorithms.local_work import base
from edgebed.algorithms.schedule import Rate
from edgebed.algorithms.stepped import Stepped, descent_by


@dataclass(frozen=True, kw_only=True)
class Config(Stepped, Rate):
    """Several steps on the worker's own copy of the model; how far it went is sent."""

    name: Literal["local-steps"] = "local-steps"
    epochs: float = 1.0
    """E, how often it goes through its own data between a pull and a push; the last mini-batch has what is left."""
    steps: int | None = None
    """Mini-batches between a pull and a push, instead of epochs."""
    proximal: float = 0.0
    """mu, how strongly the copy is held to the model that it began with."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_moments(self)
        if not self.epochs > 0.0:
            raise ValueError(f"epochs: {self.epochs:g} is not above 0")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps: {self.steps} is below 1")
        if not self.proximal >= 0.0:
            raise ValueError(f"proximal: {self.proximal:g} is below 0")


class LocalWork(base.LocalWork):
    """How far the steps went is pushed."""

    config: Config

    def batches(self, examples: int, batch_size: int) -> int:
        """Return the mini-batches between a pull and a push, for a worker with `examples` examples."""
        return self.config.steps or max(1, round(self.config.epochs * batches_of(examples, batch_size)))

    @property
    def by_epoch(self) -> bool:
        """As the paper has it; so many steps are of a stream without end."""
        return self.config.steps is None

    @property
    def copies(self) -> float:
        """The way gone, the copy of the model, and a step; moments, and with `proximal` its pull."""
        momentum = (1.0 + self.config.nesterov) * (self.config.momentum > 0.0)
        return 3.0 + (7.0 if self.config.optimizer == "adam" else momentum) + (self.config.proximal > 0.0)

    def run(
        self,
        gradient: base.Gradient,
        vectors: Mapping[str, Floats],
        batches: Sequence[base.Batch],
        memory: None,
        at: StepContext,
    ) -> base.Done:
        """Return how far the steps went in all, and the mean loss before them."""
        theta, mu, takes = vectors[base.MODEL], np.float32(self.config.proximal), at.epochs / len(batches)
        descent, gone, losses = descent_by(self.config), np.zeros_like(theta), []
        moments: tuple[Floats, ...] = tuple(np.zeros_like(theta) for _ in range(descent.moments))
        for number, batch in enumerate(batches):
            slope, loss = gradient(theta - gone, batch)
            pull = slope - mu * gone if self.config.proximal else slope
            rate = self.config.at(at.epoch + number * takes, takes)
            step, moments = descent.step(theta, pull, moments, number, rate)  # neither looks at parameters
            gone += step if self.is_buffer is None else np.where(self.is_buffer, slope, step)
            del step  # while the next gradient is computed
            losses.append(loss)
        return base.one(gone, float(np.mean(losses)))
