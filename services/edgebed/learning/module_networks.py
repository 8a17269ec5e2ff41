"""All gradient modules of a model on one node, by the shard that each belongs to."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from edgebed.algorithms.layerwise.rule import At
from edgebed.learning.gradient_modules import GradientModule
from edgebed.learning.optimizers import Optimizer
from edgebed.learning.predictor import Floats, Predictor
from edgebed.learning.trained import join_states, split_state


class ModuleNetworks:
    """What learning/shard_network.py is to a shard, without layers."""

    def __init__(self, modules: Mapping[str, GradientModule], optimizer: Optimizer) -> None:
        """By owner, from the bottom."""
        torch.set_num_threads(1)
        self.predictors = {owner: Predictor(module, optimizer) for owner, module in modules.items()}
        self._beginning = [each.trained.weights() for each in self.predictors.values()]

    def predict(self, owner: str, at: At, outputs: Floats, labels: NDArray[np.int64]) -> Floats:
        """(B, ...) outputs of the owner's layers, (B,) labels -> the gradient of the mean loss there, as predicted."""
        self.predictors[owner].see(at, torch.from_numpy(outputs).clone(), torch.from_numpy(labels))
        return self.predictors[owner].predict(at)

    def teach(self, owner: str, at: At, target: Floats) -> float:
        """The owner's module learns what the (B, ...) gradient was; returns its loss before."""
        return self.predictors[owner].teach(at, target)

    def begin(self, weights: Floats) -> None:
        """All as they once began; of the model's own (0,) weights there is nothing here."""
        for each, beginning in zip(self.predictors.values(), self._beginning, strict=True):
            each.trained.begin(beginning)
            each.untaught.clear()

    def state(self) -> Floats:
        """Fresh (s,) state of all."""
        return join_states([each.trained for each in self.predictors.values()])

    def restore(self, state: Floats) -> None:
        """Go on from there; ValueError where it is the state of something else."""
        split_state(state, [each.trained for each in self.predictors.values()])
        for each in self.predictors.values():
            each.untaught.clear()
