"""Stale-synchronous parallel: each push is applied at once, and nobody gets more than so many steps ahead.

Ho, Cipar, Cui, Kim, Gibbons, Gibson, Ganger, Xing 2013, More effective distributed ML via a stale synchronous parallel
parameter server, NIPS, section 2: a worker at clock c waits while c > s + the clock of the slowest. Differs from the
paper: workers have no caches, each pull is of all that was applied. With s = 0 all are at one clock at a time.

Theta (n,) the model; g a push.

    Theta <- Theta - alpha g

A worker's clock is how often it has pushed. One that joins begins at the clock of the slowest, so that nobody waits for
what it has missed; one that has left is not waited for.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import NO_INFO, Aggregator, PushInfo
from edgebed.algorithms.schedule import Scheduled
from edgebed.algorithms.update import Applied, ModelUpdate


@dataclass(frozen=True, kw_only=True)
class Config(Scheduled):
    """Each push is applied at once; a worker too far ahead of the slowest waits."""

    name: Literal["stale-synchronous"] = "stale-synchronous"
    bound: int = 3
    """s, steps that a worker may be ahead of the slowest; fewer mean less staleness and more waiting."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bound < 0:
            raise ValueError(f"bound: {self.bound} is below 0")


class Aggregation(Aggregator):
    """The model, and everybody's clock."""

    config: Config
    session = ("clocks", "waiting")

    @classmethod
    def together(cls, config: Config, workers: int) -> int:
        """Each push by itself."""
        return 1

    @classmethod
    def holds(cls, config: Config, workers: int, share: float | None) -> float:
        """Clocks alone."""
        return 0.0

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.clocks: dict[str, int] = {}
        self.waiting: dict[str, None] = {}
        """Workers that are too far ahead, in the order in which they came."""

    def expected(self, worker: str) -> None:
        """Let nobody get too far ahead of `worker` before it has joined."""
        self.clocks.setdefault(worker, min(self.clocks.values(), default=0))

    def joined(self, worker: str) -> Applied | None:
        """Let `worker` begin beside the slowest; release workers that waited for what it was before."""
        self.waiting.pop(worker, None)
        self.clocks.pop(worker, None)
        self.clocks[worker] = min(self.clocks.values(), default=0)
        return self._let_go()

    def left(self, worker: str) -> Applied | None:
        """Release the workers that waited for `worker` alone."""
        self.clocks.pop(worker, None)
        self.waiting.pop(worker, None)
        return self._let_go()

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied:
        """Apply `update`; its worker continues unless it is too far ahead, and so may others that waited for it."""
        with np.errstate(over="ignore", invalid="ignore"):  # training that diverges is a result, and seen in its loss
            self.move(update.indices, update.values)
        self.version += 1
        self.clocks[worker] += 1
        self.waiting[worker] = None
        return Applied(self._released(), update.indices)

    def _let_go(self) -> Applied | None:
        released = self._released()
        return Applied(released, np.zeros(0, np.int64)) if released else None

    def _released(self) -> tuple[str, ...]:
        """Return the workers that need not wait any more."""
        furthest = min(self.clocks.values(), default=0) + self.config.bound
        released = tuple(worker for worker in self.waiting if self.clocks[worker] <= furthest)
        for worker in released:
            del self.waiting[worker]
        return released
