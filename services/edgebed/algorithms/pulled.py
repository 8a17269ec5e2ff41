"""An aggregation that keeps the model that each worker was sent, and applies each push at once.

What a worker was sent is the server's model at that moment. Where a `downlink` compresses it, the worker's own differs
from that by what it lacks still.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import Aggregator


class PulledAggregator(Aggregator):
    """Remembers the model of each worker's last pull."""

    session = ("models",)

    def __init__(self, config: Any, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.models: dict[str, NDArray[np.float32]] = {}
        """(n,) each, by worker."""

    @classmethod
    def together(cls, config: Any, workers: int) -> int:
        """Each push by itself."""
        return 1

    @classmethod
    def holds(cls, config: Any, workers: int, share: float | None) -> float:
        """A model for each worker, and what a step makes: all that a dense push does, or of a sparse one its entries.

        That is three vectors, or of each entry also its position.
        """
        return workers + 3.0

    def pulled(self, worker: str) -> None:
        """Remember what `worker` is being sent."""
        self.models[worker] = self.theta.copy()

    def left(self, worker: str) -> None:
        """Release the model of `worker`; nobody has waited for it."""
        self.models.pop(worker, None)
