"""SCAFFOLD's server: it averages models in rounds, and keeps the mean of what steers each worker.

Karimireddy, Kale, Mohri, Reddi, Stich, Suresh 2020, SCAFFOLD: stochastic controlled averaging for federated learning,
ICML, algorithm 1. Its workers are local_work/controlled_steps.py.

x (n,) the model, c (n,) the control variate of all, c_i (n,) that of worker i, S the workers of a round, N all workers.

    x <- x - alpha mean over S of (x - y_i) ;  c <- c + 1/N sum over S of (c_i+ - c_i)

Differs from the paper: workers send c_i+ and not how far it is from c_i, and the server keeps each c_i. What travels is
as much; a push that was lost, or a worker that was started anew and has forgotten its own, leaves no trace in c.

What is kept of a worker is under its name, and outlasts its lives. Rounds are those of synchronous.py.
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
    """A round's models are averaged, and so are the control variates that came with them."""

    name: Literal["scaffold"] = "scaffold"  # type: ignore[assignment] # of a part of its own


class Aggregation(synchronous.Aggregation):
    """The round that is open, and the control variates of all workers."""

    vectors = ("theta", "control")
    goes_with = "controlled-steps"
    session = ("came",)

    @classmethod
    def holds(cls, config: synchronous.Config, workers: int, share: float | None) -> float:
        """The control variates: of all, of each worker, and of those of the round what came."""
        return synchronous.Aggregation.holds(config, workers, share) + 2.0 + 2.0 * workers

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.control = np.zeros_like(theta)
        """(n,) c."""
        self.controls: dict[str, NDArray[np.float32]] = {}
        """(n,) c_i by worker."""
        self.came: dict[str, ModelUpdate] = {}
        """The last control variate that came of each worker in this round."""

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied | None:
        """Hold the update and the control variate until the round ends, which may be now."""
        (self.came[worker],) = info.beside
        return super().push(worker, update, base, info)

    def _end(self) -> Applied:
        with np.errstate(over="ignore", invalid="ignore"):
            for worker in sorted(self.came):
                now, before = self.came[worker].dense(), self.controls.get(worker)
                change = now if before is None else now - before
                self.control += change / np.float32(self.num_workers)
                self.controls[worker] = now
        self.came = {}
        return super()._end()._replace(changed=None)
