"""Asynchronous parameter server: each push is applied at once, in order of arrival, divided by its staleness.

Zhang, Gupta, Lian, Liu 2016, Staleness-aware async-SGD for distributed deep learning, IJCAI (`whole-update`).
Hardy, Le Merrer, Sericola 2017, Distributed deep learning on edge-devices: feasibility via adaptive compression, IEEE
NCA, equations 3 to 5 (`per-parameter`, AdaComp). Without division (`none`) it is Downpour SGD of Dean et al. 2012.

Theta (n,) the model; i its version, the number of updates applied; j the version a worker pulled; g its gradient.

    none           Theta_k <- Theta_k - alpha g_k
    whole-update   Theta_k <- Theta_k - alpha / max(1, i - j) g_k
    per-parameter  Theta_k <- Theta_k - alpha / max(1, sigma_k) g_k

sigma_k counts the updates of [j, i - 1] that touched parameter k. The paper searches the history of updates for it;
here a counter for each parameter, remembered at every pull, gives the same number at a cost linear in the push.
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
    """Each push is applied at once, divided by its staleness."""

    name: Literal["asynchronous"] = "asynchronous"
    staleness: Literal["none", "whole-update", "per-parameter"] = "whole-update"
    """What divides the learning rate: nothing, the updates since the pull, or those of them that touched the entry."""
    indicator: Literal["nonzero", "selected"] = "nonzero"
    """per-parameter: an entry counts as touched if its sent value is not zero (the paper), or if it was sent at all."""


class Aggregation(Aggregator):
    """The model, and what the staleness of each parameter is counted by."""

    config: Config
    session = ("counts", "counts_at_pull")

    @classmethod
    def together(cls, config: Config, workers: int) -> int:
        """Each push by itself."""
        return 1

    @classmethod
    def holds(cls, config: Config, workers: int, share: float | None) -> float:
        """A counter for each parameter, and as it was at each worker's pull; of a dense push each entry's own rate."""
        if config.staleness != "per-parameter":
            return 0.0
        return 1.0 + workers + (4.0 if share is None else 0.0)

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.counts = np.zeros(len(theta) if config.staleness == "per-parameter" else 0, np.int32)  # (n,)
        self.counts_at_pull: dict[str, NDArray[np.int32]] = {}

    def left(self, worker: str) -> None:
        """Release the counters of `worker`; nobody has waited for it."""
        self.counts_at_pull.pop(worker, None)

    def pulled(self, worker: str) -> None:
        """Note that `worker` is being sent the present model: its staleness counts from here."""
        if self.config.staleness == "per-parameter":
            remembered = self.counts_at_pull.setdefault(worker, np.empty_like(self.counts))
            np.copyto(remembered, self.counts)

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied:
        """Apply `update`, computed at version `base`; its worker is answered with the new model."""
        with np.errstate(over="ignore", invalid="ignore"):  # training that diverges is a result, and seen in its loss
            if self.config.staleness == "per-parameter":
                self._apply_per_parameter(worker, update)
            else:
                self._apply_whole(update, self.version - base)
        self.version += 1
        return Applied((worker,), update.indices)

    def _apply_whole(self, update: ModelUpdate, staleness: int) -> None:
        divisor = max(1, staleness) if self.config.staleness == "whole-update" else 1
        self.move(update.indices, update.values, divisor)

    def _apply_per_parameter(self, worker: str, update: ModelUpdate) -> None:
        at_pull = self.counts_at_pull[worker]
        if update.indices is None:
            sigma = self.counts - at_pull  # (n,)
            self.move(None, update.values, np.maximum(sigma, 1))
            self.counts += (update.values != 0) if self.config.indicator == "nonzero" else 1
            return
        k = update.indices
        counts = self.counts.take(k)  # (k,)
        self.move(k, update.values, np.maximum(counts - at_pull.take(k), 1))
        counts += (update.values != 0) if self.config.indicator == "nonzero" else 1
        self.counts[k] = counts
