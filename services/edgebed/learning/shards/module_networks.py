"""All gradient modules of a model on one node, by the shard that each belongs to."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.learning import torch_device
from edgebed.learning.inputs import targets_of
from edgebed.learning.optimizers import Optimizer
from edgebed.learning.shards.gradient_modules import GradientModule
from edgebed.learning.shards.predictor import Floats, Predictor
from edgebed.learning.trained import join_states, split_state


class ModuleNetworks:
    """All gradient modules of a model: what a `ShardNetwork` is to a shard, without layers."""

    def __init__(
        self, modules: Mapping[str, GradientModule], optimizer: Optimizer, device: str = torch_device.CPU
    ) -> None:
        """`modules` by owner, from the bottom; torch computes on `device`."""
        torch.set_num_threads(1)
        self.predictors = {owner: Predictor(module, optimizer, device) for owner, module in modules.items()}
        self._beginning = [each.trained.weights() for each in self.predictors.values()]

    def predict(self, owner: str, at: BatchPart, outputs: Floats, targets: Mapping[str, NDArray[Any]]) -> Floats:
        """(B, ...) outputs of the owner's layers, and targets -> the gradient of the mean loss there, as predicted."""
        predictor = self.predictors[owner]
        device = predictor.trained.device
        predictor.see(at, torch_device.own_tensor(outputs, device), targets_of(targets, device))
        return predictor.predict(at)

    def teach(self, owner: str, at: BatchPart, target: Floats) -> float:
        """Teach the owner's module what the (B, ...) gradient was; return its loss before."""
        return self.predictors[owner].teach(at, target)

    def begin(self, weights: Floats) -> None:
        """Reset all modules to their beginning; there are no layers here, so `weights` is (0,)."""
        for each, beginning in zip(self.predictors.values(), self._beginning, strict=True):
            each.trained.begin(beginning)
            each.untaught.clear()

    def state(self) -> Floats:
        """Return the fresh (s,) state of all modules."""
        return join_states([each.trained for each in self.predictors.values()])

    def restore(self, state: Floats) -> None:
        """Restore all modules from (s,) `state`; ValueError where it is the state of something else."""
        split_state(state, [each.trained for each in self.predictors.values()])
        for each in self.predictors.values():
            each.untaught.clear()
