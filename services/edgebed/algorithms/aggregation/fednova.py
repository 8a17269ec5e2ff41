"""FedNova's server: each worker's way counts by how many steps it is of, so that who makes many pulls no harder.

Wang, Liu, Liang, Joshi, Poor 2020, Tackling the objective inconsistency problem in heterogeneous federated
optimization, NeurIPS, equation (9) with plain local steps, for which a_i is the number of them.

x (n,) the model, x - y_i the way of worker i in tau_i steps, p_i its weight.

    x <- x - alpha tau_eff sum of p_i (x - y_i) / tau_i ,  tau_eff = sum of p_i tau_i

Where all make as many steps it is the mean of synchronous.py, whose rounds and weights these are. Differs from the
paper: local momentum and a proximal term, for which it has other a_i, are refused.
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
    """A round's updates are divided by their numbers of steps, and their mean is multiplied by the mean number."""

    name: Literal["fednova"] = "fednova"  # type: ignore[assignment] # of a part of its own


class Aggregation(synchronous.Aggregation):
    """The round that is open, and the steps that its updates are of."""

    wants_plain_steps = True
    session = ("steps_made",)

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.steps_made = 0.0
        """Steps of this round's updates, each as often as the update weighs."""

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied | None:
        """Hold what a step of the update comes to until the round ends, which may be now."""
        self.steps_made += info.steps * self.weight_of(info)
        return super().push(worker, update._replace(values=update.values / np.float32(info.steps)), base, info)

    @property
    def divisor(self) -> float:
        """The weight of all updates, over the mean number of their steps."""
        return self.weight**2 / self.steps_made

    def _end(self) -> Applied:
        applied = super()._end()
        self.steps_made = 0.0
        return applied
