"""What is asked of an objective: the loss that training minimises, and what is measured of a model.

The loss is a function of model and batch, so that several inputs, several outputs, auxiliary losses and training
without targets fit. What is measured is made of named sums over examples, which are added over batches, devices and
clients; the values of the measures are made of the whole sums, so that they do not depend on how the examples were cut.

Shapes: B examples of a batch.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from edgebed.core import imports
from edgebed.core.errors import OwnCodeError, ScenarioError
from edgebed.core.measures.task import Sums, TaskMeasure
from edgebed.core.plan import ArrayForm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

Arrays = Mapping[str, "NDArray[Any]"]
"""Targets of examples, (N, ...), by name; one array alone has the name ""."""
Measured = dict[str, "tuple[Tensor | float, float]"]
"""Named sums over a batch, each a number or an array of numbers, with the sum's weight: mostly the number of examples.
"""


class OtherTargetsError(ScenarioError):
    """The targets are of a kind or shape that another objective may take."""


@dataclass(frozen=True)
class Batch:
    """Examples as a model and an objective are given them."""

    inputs: "Tensor | dict[str, Tensor]"
    """(B, ...) one array, or several by name."""
    targets: "Tensor | dict[str, Tensor]"
    """(B, ...) one array, or several by name; an empty dict where the data has none."""
    size: int
    """B."""

    def outputs(self, model: "nn.Module") -> Any:
        """Return what the model gives for the inputs."""
        return called(model, self.inputs)


def called(model: "nn.Module", inputs: "Tensor | dict[str, Tensor]") -> Any:
    """Return what a model gives for inputs: it is given one array by position, several as keywords."""
    return model(**inputs) if isinstance(inputs, dict) else model(inputs)


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """An objective without settings."""


class Objective(ABC):
    """The base of all objectives. Planning reads what one declares: its module loads torch only where it computes."""

    Config: ClassVar[Any] = NoSettings
    """The settings: a frozen dataclass."""
    measures: tuple[TaskMeasure, ...]
    """What is measured, the headline first."""

    def __init__(self, config: Any = None) -> None:
        """`config`: settings; None: those that `Config` has by default."""
        self.config: Any = self.Config() if config is None else config

    @abstractmethod
    def loss(self, model: "nn.Module", batch: Batch) -> "Tensor":
        """Return the scalar that training minimises: the mean over the batch."""

    @abstractmethod
    def sums(self, model: "nn.Module", batch: Batch) -> Measured:
        """Return named sums over the batch, of which the measures are made."""

    def values(self, sums: Sums) -> dict[str, float]:
        """Return the value of each measure, of sums over all examples.

        By default of those that a sum has the name of, each that sum by its weight.
        """
        return {each.name: mean(sums, each.name) for each in self.measures if each.name in sums}

    def measured(self, sums: Sums) -> dict[str, float]:
        """Return the value of each measure as records have it: in the order of the declaration, as Python's numbers.

        OwnCodeError where `values` fails, or has none of a measure.
        """
        try:
            values = self.values(sums)
            return {each.name: float(values[each.name]) for each in self.measures}
        except (Exception, SystemExit) as error:
            told = imports.reason(error, type(self).values)
            raise OwnCodeError(f"objective {type(self).__name__}: no values of its measures: {told}") from error

    def outputs(self, targets: Sequence[Arrays], stated: int | None) -> int:
        """Return the number of the model's outputs that the targets of all parts of the data ask for.

        `stated`: the number that the data set itself gives; None: none. By default whole numbers are classes, and
        others are predicted themselves; 0 where there are several arrays, or none, and nothing follows from them.
        ScenarioError where the objective cannot take such targets.
        """
        if stated is not None:
            return stated
        alone = [part[""] for part in targets if "" in part]
        if not alone:
            return 0
        if all(each.dtype.kind in "iu" for each in alone):
            return int(max(each.max() for each in alone)) + 1
        return math.prod(alone[0].shape[1:])

    def labels(self, targets: Arrays) -> "NDArray[np.integer] | None":
        """Return the (N,) label of each example, by which examples are divided and counted; None: they have none."""
        return None

    def settled(self, targets: Arrays, outputs: int) -> dict[str, Any]:
        """Return settings that follow from the training targets, such as balanced weights; by default none do."""
        return {}


class Supervised(Objective):
    """An objective of what the model gives for its inputs, so that the model may also lie on several devices."""

    def loss(self, model: "nn.Module", batch: Batch) -> "Tensor":
        """Return the mean loss."""
        return self.loss_of(batch.outputs(model), batch.targets)

    def sums(self, model: "nn.Module", batch: Batch) -> Measured:
        """Return named sums over the batch."""
        return self.sums_of(batch.outputs(model), batch.targets)

    @abstractmethod
    def loss_of(self, outputs: Any, targets: Any) -> "Tensor":
        """Return the mean loss of (B, ...) outputs."""

    @abstractmethod
    def sums_of(self, outputs: Any, targets: Any) -> Measured:
        """Return named sums over (B, ...) outputs."""

    def shape(self, outputs: int, targets: Sequence[ArrayForm]) -> tuple[int, ...] | None:
        """Return the shape that the model's output has to have for an example; None: whatever the objective takes."""
        return None


def mean(sums: Sums, name: str) -> float:
    """Return a sum by its weight; NaN without weight. ScenarioError where it is an array."""
    total, weight = sums[name]
    if shape := getattr(total, "shape", ()):
        raise ScenarioError(f"its sum '{name}' is an array {tuple(shape)}; add it up, or write `values` as well")
    return float(total) / weight if weight else math.nan


def sole(targets: Sequence[Arrays], needs: str) -> "list[NDArray[Any]]":
    """Return each part's one array of targets; ScenarioError where a part has none, or more."""
    for part in targets:
        if not part:
            raise ScenarioError(f"it has no targets; {needs}")
        if set(part) != {""}:
            raise ScenarioError(f"its targets are {', '.join(sorted(part))}; {needs}")
    return [part[""] for part in targets]
