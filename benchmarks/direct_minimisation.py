"""What it costs to minimise the gradient loss as well, with the gradient as a constant in it and without.

Tong et al. 2016, section 7.1: the report gives its loss the squared errors of modules that predict gradients, and finds
an epoch to take about three times as long. edgebed has the gradient as a constant in these errors. A framework that
builds the gradient as part of its graph differentiates it, too, where nobody says otherwise: second derivatives. Here
are both on one node, a whole model in one graph, beside back-propagation. Times are medians of CPU time of one thread,
in turns.
"""

import time

import numpy as np
import torch
from torch import Tensor

from edgebed.learning.models.layered import cifar_cnn
from edgebed.learning.shards.gradient_modules import GradientModule

IMAGE = (3, 32, 32)
CLASSES = 10
SUBJECTS: dict[str, bool | None] = {"none": None, "constant": True, "differentiated": False}
"""What is measured: whether the gradient is a constant in the gradient loss; None: there is no such loss."""


class Model:
    """The report's net for CIFAR-10 with a linear module beside each layer but the last."""

    def __init__(self, images: int) -> None:
        torch.manual_seed(0)
        self.inputs, self.labels = torch.randn((images, *IMAGE)), torch.randint(CLASSES, (images,))
        self.layers = cifar_cnn(IMAGE, CLASSES)
        shapes = [tuple(each.shape[1:]) for each in self.outputs()[:-1]]
        self.modules = [GradientModule(shape, CLASSES, hidden_layers=0, labels=False) for shape in shapes]
        self.parameters: list[Tensor] = list(self.layers.parameters())
        self.optimizer = torch.optim.Adam([*self.parameters, *self.of_modules()])

    def of_modules(self) -> list[Tensor]:
        """The modules' parameters."""
        return [parameter for module in self.modules for parameter in module.parameters()]

    def outputs(self) -> list[Tensor]:
        """The layers' outputs."""
        found = [self.inputs]
        for layer in self.layers.children():
            found.append(layer(found[-1]))
        return found[1:]

    def step(self, *, constant: bool | None) -> None:
        """One step; `constant` as in SUBJECTS."""
        *hidden, scores = self.outputs()
        loss = torch.nn.functional.cross_entropy(scores, self.labels)
        wanted = self.parameters
        if constant is not None:
            wanted = [*wanted, *self.of_modules()]
            found = torch.autograd.grad(loss, hidden, retain_graph=True, create_graph=not constant)
            for module, h, gradient in zip(self.modules, hidden, found, strict=True):
                loss = loss + len(h) * (module(h, self.labels) - gradient).square().sum()
        for parameter, gradient in zip(wanted, torch.autograd.grad(loss, wanted), strict=True):
            parameter.grad = gradient
        self.optimizer.step()


def measure(*, quick: bool) -> dict[str, float]:
    """Seconds of CPU time a step by subject."""
    torch.set_num_threads(1)
    rounds, images = (1, 16) if quick else (15, 128)
    model = Model(images)
    spent_s: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    for _ in range(1 + rounds):
        for name, constant in SUBJECTS.items():
            begin = time.thread_time()
            model.step(constant=constant)
            spent_s[name].append(time.thread_time() - begin)
    return {name: float(np.median(each[1:])) for name, each in spent_s.items()}  # the first one warms up
