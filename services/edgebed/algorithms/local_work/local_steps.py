"""Several steps of gradient descent on the worker's own copy; what is sent is how far it went.

McMahan, Moore, Ramage, Hampson, Aguera y Arcas 2017, Communication-efficient learning of deep networks from
decentralized data, AISTATS, algorithm 1 (FedAvg): E epochs over the client's own data. With `proximal` it is FedProx:
Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith 2020, Federated optimization in heterogeneous networks, MLSys, equation (2).

    y <- x ;  for each mini-batch: y <- y - step of (grad f(y) + mu (y - x))          sent: x - y

The step is alpha times that, or what another optimizer makes of it (stepped.py), whose moments begin at rest with each
push or are kept. With AdamW, and a server that steps by Nesterov's momentum, it is DiLoCo: Douillard, Feng, Rusu,
Chhaparia, Donchev, Kuncoro, Ranzato, Szlam, Shen 2023, DiLoCo: distributed low-communication training of language
models, arXiv:2311.08105, algorithm 1. alpha may change from mini-batch to mini-batch (schedule.py), by how often the
worker has gone through its own data, or by its steps or pushes as the server counts them: one that was restarted goes
on where the training is. A gradient's norm may be bounded: Pascanu, Mikolov, Bengio 2013, On the difficulty of training
recurrent neural networks, ICML, 3.2.

A server that subtracts the mean of what is sent, with a learning rate of 1, has averaged the models. What is sent is
added up step by step, and so is right where it is far smaller than the model.

Shapes: n parameters, b examples in a mini-batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
    optimizer: Literal["sgd", "adam", "adamw", "yogi", "adagrad"] = "sgd"  # type: ignore[assignment] # one more of them
    """What steps along the gradient: gradient descent, with `momentum` or without; or one that adapts to it."""
    weight_decay: float = 0.0
    """How often the parameters are added to their gradient; `adamw`: to the step, times the learning rate."""
    clip_norm: float | None = None
    """The largest Euclidean norm of a gradient; a larger one is scaled down to it. None: as large as it is."""
    moments: Literal["anew", "kept"] = "anew"
    """Whether what the optimizer remembers begins anew with each push, or is kept, until the worker is restarted."""
    counted_in: Literal["epochs", "steps", "pushes"] = "epochs"
    """What `warm_up`, `zero_at` and `decay_at` count: passes through its own data, its steps, or its pushes."""
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
        if self.clip_norm is not None and not self.clip_norm > 0.0:
            raise ValueError(f"clip_norm: {self.clip_norm:g} is not above 0; leave it out to have none")


def plain_objection(config: Any) -> str:
    """Return which setting makes the way gone something else than a sum of gradients by their rates; empty: none."""
    plain = {"optimizer": "sgd", "momentum": 0.0, "clip_norm": None, "proximal": 0.0, "moments": "anew"}
    other = (key for key, value in plain.items() if getattr(config, key, value) != value)
    return next((f"{key}: {getattr(config, key)}" for key in other), "")


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
        """The way gone, the copy of the model, and a step; moments, and what else is made of a gradient."""
        config = self.config
        optimizer = {"sgd": (1.0 + config.nesterov) * (config.momentum > 0.0), "adagrad": 5.0}.get(
            config.optimizer, 7.0
        )
        decays = 0.0 if not config.weight_decay else 1.0 + (optimizer > 0.0 and config.optimizer != "adamw")
        is_clipped = config.clip_norm is not None and optimizer + decays > 0.0
        kept = descent_by(config).moments if config.moments == "kept" else 0
        return 3.0 + optimizer + decays + is_clipped + (config.proximal > 0.0) + kept

    def run(
        self,
        gradient: base.Gradient,
        vectors: Mapping[str, Floats],
        batches: Sequence[base.Batch],
        memory: Any,
        at: StepContext,
    ) -> base.Done:
        """Return how far the steps went in all, the mean loss before them, and the moments, if they are kept."""
        theta, mu, config = vectors[base.MODEL], np.float32(self.config.proximal), self.config
        descent, gone, losses = descent_by(config), np.zeros_like(theta), []
        moments, before = memory or (tuple(np.zeros_like(theta) for _ in range(descent.moments)), 0)
        for number, batch in enumerate(batches):
            here = theta - gone
            slope, loss = gradient(here, batch)
            if not config.weight_decay:
                here = theta  # an optimizer looks at parameters only to let them decay
            pull = slope - mu * gone if config.proximal else slope
            rate = config.at(*self._time(at, number, len(batches)))
            step, moments = descent.step(here, self._clipped(pull), moments, before + number, rate)
            gone += step if self.is_buffer is None else np.where(self.is_buffer, slope, step)
            del here, step  # while the next gradient is computed
            losses.append(loss)
        kept = (moments, before + len(batches)) if config.moments == "kept" else None
        return base.one(gone, float(np.mean(losses)), kept)

    def _time(self, at: StepContext, number: int, steps: int) -> tuple[float, float]:
        """Return the time of a step, and how long it takes, in what the schedule counts."""
        if self.config.counted_in == "epochs":
            return at.epoch + number * at.epochs / steps, at.epochs / steps
        pushes = round(at.epoch / at.epochs, 9) if at.epochs else 0.0
        return (pushes, 1.0) if self.config.counted_in == "pushes" else (pushes * steps + number, 1.0)

    def _clipped(self, slope: Floats) -> Floats:
        if self.config.clip_norm is None:
            return slope
        parameters = slope if self.is_buffer is None else slope[~self.is_buffer]
        norm = float(np.linalg.norm(parameters))
        return slope if norm <= self.config.clip_norm else np.float32(self.config.clip_norm / norm) * slope
