"""Regression: the model gives the K numbers that are asked for.

`squared`    the mean squared error.
`absolute`   the mean absolute error.
`huber`      squared / 2 up to `delta`, and straight beyond it: Huber 1964, Robust estimation of a location parameter,
             Annals of Mathematical Statistics.

R2 is 1 minus the squared error by the squared distance of the targets from their mean, for each of the K numbers, and
averaged over those. As scikit-learn has it, it is 0 for a number that never changes, or 1 if there is no error; where
none of them changes, as of a single example, it is undefined, and NaN.

Shapes: B examples, (B, K) or (B,) outputs and targets.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import Sums, TaskMeasure
from edgebed.core.plan import ArrayForm
from edgebed.learning.objectives.objective import Arrays, Measured, OtherTargetsError, Supervised, sole

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 1e-13
"""A variance below this share of the mean square is what rounding has left of none."""
MAE = TaskMeasure(name="mae", label="MAE", meaning="Mean absolute error, in the targets' unit.")
RMSE = TaskMeasure(name="rmse", label="RMSE", meaning="Root of the mean squared error, in the targets' unit.")
R2 = TaskMeasure(
    name="r2", label="R2", meaning="Share of the targets' variance that is explained, at most 1.", better="more"
)
LOSS = TaskMeasure(name="loss", meaning="Mean loss over the examples, as `task.objective` says.")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Targets are numbers."""

    loss: Literal["squared", "absolute", "huber"] = "squared"
    """`squared`, `absolute`, or `huber`: squared near the target, straight beyond `delta`."""
    delta: float = 1.0
    """With `huber`: the error beyond which the loss is straight."""
    unit: str = ""
    """The targets' unit, e.g. mmHg, in which errors are told; empty: none."""

    def __post_init__(self) -> None:
        """ValueError where a setting is impossible."""
        if not self.delta > 0.0:
            raise ValueError(f"delta: {self.delta} is not above 0")


class Regression(Supervised):
    """Numbers are predicted."""

    Config = Config
    measures: tuple[TaskMeasure, ...] = (MAE, RMSE, R2, LOSS)

    def __init__(self, config: Any = None) -> None:
        """Errors are in the targets' unit."""
        super().__init__(config)
        if unit := self.config.unit:
            errors = (msgspec.structs.replace(each, unit=unit) for each in (MAE, RMSE))
            self.measures = (*errors, *self.measures[2:])

    def loss_of(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the mean loss."""
        return self._losses(outputs, targets).mean()

    def sums_of(self, outputs: "Tensor", targets: "Tensor") -> Measured:
        """Return errors and targets of each number, in double precision: a variance is a small difference of them."""
        size, losses = len(targets), self._losses(outputs, targets)
        wanted = targets.reshape(size, -1).double()
        errors = outputs.reshape(size, -1).double() - wanted
        return {
            MAE.name: (errors.abs().sum(), errors.numel()),
            "squared_error": (errors.square().sum(dim=0), size),
            "target": (wanted.sum(dim=0), size),
            "squared_target": (wanted.square().sum(dim=0), size),
            LOSS.name: (losses.sum(), losses.numel()),
        }

    def values(self, sums: Sums) -> dict[str, float]:
        """Return the errors, the explained share of the variance, and the mean loss."""
        import numpy as np

        names = ("squared_error", "target", "squared_target")
        error, target, squared = (np.asarray(sums[name][0], np.float64) / sums[name][1] for name in names)
        variance = squared - target**2
        changes = variance > ROUNDING * squared
        r2 = 1.0 - np.divide(error, variance, out=np.sign(error), where=changes)
        known = float(r2.mean()) if changes.any() else math.nan
        return {**super().values(sums), RMSE.name: float(np.sqrt(error.mean())), R2.name: known}

    def outputs(self, targets: Sequence[Arrays], stated: int | None) -> int:
        """Return how many numbers are predicted."""
        of_parts = sole(targets, "a regression has one array of numbers, (examples,) or (examples, numbers)")
        for numbers in of_parts:
            if numbers.dtype.kind not in "fiu" or numbers.ndim not in (1, 2):
                raise OtherTargetsError(
                    f"targets are {numbers.dtype} of shape {numbers.shape}; a regression has numbers, (examples,) or "
                    "(examples, numbers)"
                )
        shape = of_parts[0].shape[1:]
        count = int(shape[0]) if shape else 1
        if stated not in (None, count):
            raise ScenarioError(f"targets have {count} numbers, but the data set gives {stated} outputs")
        return count

    def shape(self, outputs: int, targets: Sequence[ArrayForm]) -> tuple[int, ...]:
        """Return the shape of an example's output: (1,) or () for one number."""
        return (outputs,)

    def _losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the (B, K) losses."""
        import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by

        given = outputs.reshape(len(targets), -1)
        wanted = targets.reshape(len(targets), -1).to(given.dtype)
        if self.config.loss == "huber":
            return F.huber_loss(given, wanted, delta=self.config.delta, reduction="none")
        losses = F.mse_loss if self.config.loss == "squared" else F.l1_loss
        return losses(given, wanted, reduction="none")
