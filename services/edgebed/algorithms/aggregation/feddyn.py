"""FedDyn's server: it averages models in rounds, and goes on by where those of all workers drift.

Acar, Zhao, Matas, Mattina, Whatmough, Saligrama 2021, Federated learning based on dynamic regularization, ICLR,
algorithm 1. Its workers are local_work/dynamic_steps.py.

x (n,) the model, y_i that of worker i, S the workers of a round, N all workers; s is the paper's h over its alpha.

    s <- s + 1/N sum over S of (x - y_i) ;  x <- mean over S of y_i - s

Differs from the paper: the learning rate is another factor of the step, 1 in the paper. A worker that was started anew,
or whose push was lost, has forgotten its own part of s, and so does the server, which keeps it. Rounds are those of
synchronous.py.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregation import synchronous
from edgebed.algorithms.aggregator import NO_INFO, PushInfo
from edgebed.algorithms.update import Applied, ModelUpdate


@dataclass(frozen=True, kw_only=True)
class Config(synchronous.Config):
    """A round's models are averaged, and the mean is moved by where the models of all have drifted."""

    name: Literal["feddyn"] = "feddyn"  # type: ignore[assignment] # of a part of its own

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("momentum", "optimizer", "mean", "clip", "weights"):
            if getattr(self, key) != getattr(synchronous.Config, key):
                raise ValueError(f"{key}: {getattr(self, key)} is not what its step is made of; leave it out")


class Aggregation(synchronous.Aggregation):
    """The round that is open, and how far the models of all workers have drifted."""

    goes_with = "dynamic-steps"
    session = ("ways",)

    @classmethod
    def holds(cls, config: synchronous.Config, workers: int, share: float | None) -> float:
        """The drift of all and of each worker, and of those of the round what came."""
        return synchronous.Aggregation.holds(config, workers, share) + 3.0 + 2.0 * workers

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.drift = np.zeros_like(theta)
        """(n,) s."""
        self.drifts: dict[str, NDArray[np.float32]] = {}
        """(n,) what each worker has in s."""
        self.ways: dict[str, ModelUpdate] = {}
        """The last update of each worker in this round, which it remembers."""

    def forgotten(self, worker: str) -> None:
        """Take out of s what the worker has in it."""
        self.ways.pop(worker, None)
        if worker in self.drifts:
            self.drift -= self.drifts.pop(worker)

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied | None:
        """Hold the update until the round ends, which may be now."""
        self.ways[worker] = update
        return super().push(worker, update, base, info)

    def _end(self) -> Applied:
        rate = np.float32(self.learning_rate)
        with np.errstate(over="ignore", invalid="ignore"):
            for worker in sorted(self.ways):
                part = self.ways[worker].dense() / np.float32(self.num_workers)
                if self.is_buffer is not None:
                    part[self.is_buffer] = 0.0
                self.drift += part
                self.drifts[worker] = part + self.drifts.get(worker, np.float32(0.0))
            self.theta -= rate * self.drift
        self.ways = {}
        return super()._end()._replace(changed=None)
