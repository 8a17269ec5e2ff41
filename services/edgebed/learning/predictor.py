"""A gradient module at work: it predicts the gradient of outputs, and is taught when the gradient comes.

Shapes: B examples of a (micro-)batch.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgebed.algorithms.layerwise.rule import At
from edgebed.learning.gradient_modules import GradientModule
from edgebed.learning.optimizers import Optimizer
from edgebed.learning.trained import Trained

Floats = NDArray[np.float32]


class Predictor:
    """One module. What it has seen it remembers until it is taught."""

    def __init__(self, module: GradientModule, optimizer: Optimizer) -> None:
        self.trained = Trained(module, optimizer)
        self.untaught: dict[At, tuple[Tensor, Tensor]] = {}
        """Outputs and labels of which it has yet to hear."""

    def see(self, at: At, outputs: Tensor, labels: Tensor) -> None:
        """(B, ...) outputs of the layers and their (B,) labels."""
        self.untaught[at] = outputs, labels

    def predict(self, at: At) -> Floats:
        """(B, ...) gradient of the batch's mean loss by what it has seen."""
        outputs, labels = self.untaught[at]
        with torch.no_grad():
            predicted: Floats = (self.trained(outputs, labels) / len(outputs)).numpy()
        return predicted

    def teach(self, at: At, target: Floats) -> float:
        """One step towards (B, ...) `target`; returns the loss before.

        The loss is the squared error of B times the gradient, summed over features and averaged over the batch: of the
        gradient of a mean itself it would be lost beside Adam's epsilon.
        """
        outputs, labels = self.untaught.pop(at)
        loss = self._loss(outputs, labels, target)
        self.trained.step(torch.autograd.grad(loss, self.trained.parameters))
        return loss.item()

    def teach_both(self, at: At, target: Floats) -> tuple[Floats, float]:
        """Likewise; returns also the (B, ...) gradient of that loss by the outputs, which could learn of it, too."""
        outputs, labels = self.untaught.pop(at)
        outputs = outputs.detach().requires_grad_()
        loss = self._loss(outputs, labels, target)
        gradient, *gradients = torch.autograd.grad(loss, [outputs, *self.trained.parameters])
        self.trained.step(gradients)
        return gradient.contiguous().numpy(), loss.item()

    def _loss(self, outputs: Tensor, labels: Tensor, target: Floats) -> Tensor:
        predicted = self.trained(outputs, labels)
        wanted = torch.from_numpy(target).clone().view(predicted.shape) * len(predicted)
        return (predicted - wanted).square().sum() / len(predicted)
