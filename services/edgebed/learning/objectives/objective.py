"""What is asked of an objective: the loss that training minimises, and what is measured of a model on the test set.

Shapes: B examples; the model gives (B, ...) outputs.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from edgebed.core.measures.task import TaskMeasure

if TYPE_CHECKING:
    from torch import Tensor


class Objective(ABC):
    """The base of all objectives. Planning reads what one declares: its module loads torch only where it computes."""

    measures: ClassVar[tuple[TaskMeasure, ...]]
    """What is measured, the headline first."""

    @abstractmethod
    def loss(self, outputs: "Tensor", labels: "Tensor") -> "Tensor":
        """Return the mean loss of the examples, which training minimises."""

    @abstractmethod
    def measured(self, outputs: "Tensor", labels: "Tensor") -> "dict[str, tuple[Tensor | float, float]]":
        """Return each measure's sum over the examples, and the sum's weight: mostly the number of examples."""
