"""A gradient module at work: it predicts the gradient of outputs, and is taught when the gradient comes.

Shapes: B examples of a (micro-)batch.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgebed.algorithms.layerwise.rule import BatchPart
from edgebed.learning import torch_device
from edgebed.learning.optimizers import Optimizer
from edgebed.learning.shards.gradient_modules import GradientModule
from edgebed.learning.trained import Trained

Floats = NDArray[np.float32]


class Predictor:
    """One gradient module, which remembers what it has seen until it is taught."""

    def __init__(self, module: GradientModule, optimizer: Optimizer, device: str = torch_device.CPU) -> None:
        self.trained = Trained(module, optimizer, device)
        self.is_of_mean = module.predicts == "mini-batch"
        self.untaught: dict[BatchPart, tuple[Tensor, Any]] = {}
        """Outputs and targets whose gradient has yet to come."""

    def see(self, at: BatchPart, outputs: Tensor, targets: Any) -> None:
        """Remember (B, ...) outputs of the layers and their (B, ...) targets."""
        self.untaught[at] = outputs, targets

    def predict(self, at: BatchPart) -> Floats:
        """Return the (B, ...) gradient of the batch's mean loss, as predicted from what the module has seen."""
        outputs, targets = self.untaught[at]
        with torch.no_grad():
            predicted = self.trained(outputs, targets)
        return torch_device.to_numpy(predicted if self.is_of_mean else predicted / len(outputs))

    def teach(self, at: BatchPart, target: Floats) -> float:
        """Make one step towards (B, ...) `target`; return the loss before.

        The loss is the squared error of B times the gradient, summed over features and averaged over the batch; of the
        gradient of the mean itself, where that is predicted, it is averaged over all entries.
        """
        outputs, targets = self.untaught.pop(at)
        loss = self._loss(outputs, targets, target)
        self.trained.step(torch.autograd.grad(loss, self.trained.parameters))
        return loss.item()

    def teach_both(self, at: BatchPart, target: Floats) -> tuple[Floats, float]:
        """Make one step as `teach` does; return also the (B, ...) gradient of its loss by the outputs.

        The outputs could learn of that gradient, too.
        """
        outputs, targets = self.untaught.pop(at)
        outputs = outputs.detach().requires_grad_()
        loss = self._loss(outputs, targets, target)
        gradient, *gradients = torch.autograd.grad(loss, [outputs, *self.trained.parameters])
        self.trained.step(gradients)
        return torch_device.to_numpy(gradient), loss.item()

    def _loss(self, outputs: Tensor, targets: Any, target: Floats) -> Tensor:
        predicted = self.trained(outputs, targets)
        wanted = torch_device.own_tensor(target, self.trained.device).view(predicted.shape)
        if self.is_of_mean:
            return (predicted - wanted).square().mean()
        return (predicted - wanted * len(predicted)).square().sum() / len(predicted)
