"""A tiny task for each built-in objective and for two of one's own: data, a model, and what a scenario says of them.

The file is a module of a user's own, too: tests copy it beside their scenarios.
"""

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from edgebed import DataSet, Objective, Supervised, TaskMeasure

SIZE, TRAINING, VOCABULARY, PLACES = 130, 90, 7, 6


def parts(x: Any, y: Any) -> DataSet:
    """The first examples are for training, the others for testing."""

    def cut(given: Any, which: slice) -> Any:
        return {name: each[which] for name, each in given.items()} if isinstance(given, dict) else given[which]

    train, test = slice(0, TRAINING), slice(TRAINING, SIZE)
    outputs = VOCABULARY if isinstance(x, np.ndarray) and x.dtype.kind == "i" else None
    return DataSet(
        train=(cut(x, train), cut(y, train)),
        test=(cut(x, test), cut(y, test)),
        outputs=2 if isinstance(x, dict) else outputs,
    )


def points() -> tuple[Any, Any]:
    """Points, and three numbers that follow from each, but for noise."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(SIZE, 4)).astype("f4")
    return x, x @ rng.normal(size=(4, 3)) + rng.normal(0.0, 0.3, (SIZE, 3))


def classes() -> DataSet:
    """The number that is the largest."""
    x, numbers = points()
    return parts(x, numbers.argmax(axis=1))


def labels() -> DataSet:
    """The numbers that are positive; no example for testing has the last label."""
    x, numbers = points()
    marks = (numbers > 0).astype("u1")
    marks[TRAINING:, 2] = 0
    return parts(x, marks)


def numbers() -> DataSet:
    """The numbers; the last one never changes."""
    x, found = points()
    found[:, 2] = 4.0
    return parts(x, found)


def tokens() -> DataSet:
    """Tokens that count, each example from where it begins; what is beyond its length is ignored."""
    rng = np.random.default_rng(6)
    x = (rng.integers(0, VOCABULARY, (SIZE, 1)) + np.arange(PLACES + 1)) % VOCABULARY
    y = np.where(np.arange(PLACES) < rng.integers(1, PLACES + 1, (SIZE, 1)), x[:, 1:], -100)
    return parts(x[:, :-1], y)


def named() -> DataSet:
    """Two inputs and two targets by name."""
    x, found = points()
    return parts({"place": x, "kind": found.argmin(axis=1)}, {"side": found[:, 0] > 0, "far": found[:, 1]})


def net(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """A hidden layer."""
    return nn.Sequential(nn.Linear(input_shape[0], 8), nn.Tanh(), nn.Linear(8, outputs))


def by_token(outputs: int) -> nn.Module:
    """Scores at each place, of the token there alone."""
    return nn.Sequential(nn.Embedding(outputs, 8), nn.Tanh(), nn.Linear(8, outputs))


class Two(nn.Module):
    """A model of two inputs and two outputs, both by name."""

    def __init__(self) -> None:
        super().__init__()
        self.look, self.side, self.far = nn.Embedding(3, 4), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, place: torch.Tensor, kind: torch.Tensor) -> dict[str, torch.Tensor]:
        """(B, 4) and (B,) to (B,) each."""
        hidden = torch.cat((place, self.look(kind)), dim=1)
        return {"side": self.side(hidden)[:, 0], "far": self.far(hidden)[:, 0]}


class Quantile(Supervised):
    """The loss of a quantile of 0.9 (Koenker, Bassett 1978), with the share of targets below it."""

    measures = (TaskMeasure("loss"), TaskMeasure("below", unit="share", better="more"))

    def loss_of(self, outputs: Any, targets: Any) -> Any:
        """Return the mean loss."""
        return self.losses(outputs, targets).mean()

    def sums_of(self, outputs: Any, targets: Any) -> Any:
        """Return the loss, and how many targets are below."""
        losses, size = self.losses(outputs, targets), targets.numel()
        return {"loss": (losses.sum(), size), "below": ((targets < outputs).sum(), size)}

    def losses(self, outputs: Any, targets: Any) -> Any:
        """Return the loss of each number."""
        above = targets - outputs
        return torch.maximum(0.9 * above, -0.1 * above)


class Both(Objective):
    """Two losses of a model with several outputs, the second beside the first."""

    measures = (TaskMeasure("right", unit="share", better="more"), TaskMeasure("far_off"))

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """Return the mean of both."""
        outputs, targets = batch.outputs(model), batch.targets
        side = functional.binary_cross_entropy_with_logits(outputs["side"], targets["side"].to(outputs["far"].dtype))
        return side + 0.1 * functional.mse_loss(outputs["far"], targets["far"])

    def sums(self, model: nn.Module, batch: Any) -> Any:
        """Return how many sides are right, and the squared distance."""
        outputs, targets = batch.outputs(model), batch.targets
        right, off = (outputs["side"] > 0) == targets["side"], outputs["far"] - targets["far"]
        return {"right": (right.sum(), batch.size), "off": (off.square().sum(), batch.size)}

    def values(self, sums: Any) -> dict[str, float]:
        """Return the share, and the root of the mean."""
        return {"right": sums["right"][0] / sums["right"][1], "far_off": np.sqrt(sums["off"][0] / sums["off"][1])}


def task(data: str, model: str, objective: Any, module: str = "tiny_tasks") -> dict[str, Any]:
    """What a scenario says of a task of this file, under the name that the file has there."""
    named = f"{module}:{objective}" if isinstance(objective, str) and objective[0].isupper() else objective
    return {"data": f"{module}:{data}", "model": f"{module}:{model}", "objective": named}


TASKS: dict[str, tuple[str, str, Any]] = {
    "classification": ("classes", "net", "classification"),
    "squared": ("classes", "net", {"name": "classification", "loss": "squared-softmax"}),
    "focal": ("classes", "net", {"name": "classification", "focal": 2.0, "class_weights": "balanced"}),
    "multi-label": ("labels", "net", {"name": "multi-label", "positive_weights": "balanced"}),
    "regression": ("numbers", "net", "regression"),
    "huber": ("numbers", "net", {"name": "regression", "loss": "huber", "delta": 0.5}),
    "next-token": ("tokens", "by_token", "next-token"),
    "quantile": ("numbers", "net", "Quantile"),
    "both": ("named", "Two", "Both"),
}
"""By name: data, model and objective, for `task`."""
