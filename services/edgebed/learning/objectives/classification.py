"""Classification: scores for K classes, of which the label's should be the highest.

Shapes: B examples, (B, K) scores, (B,) labels.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING

from edgebed.core.measures.task import TaskMeasure
from edgebed.learning.objectives.objective import Objective

if TYPE_CHECKING:
    from torch import Tensor

ACCURACY = TaskMeasure(
    name="accuracy", meaning="Share of the test set that is classified correctly.", unit="share", better="more"
)
LOSS = TaskMeasure(name="loss", meaning="Mean loss over the test set, as `task.loss` says.")


class Classification(Objective):
    """A classification, whatever its loss."""

    measures = (ACCURACY, LOSS)

    def loss(self, outputs: "Tensor", labels: "Tensor") -> "Tensor":
        """Return the mean loss."""
        return self.summed_loss(outputs, labels) / len(outputs)

    @abstractmethod
    def summed_loss(self, outputs: "Tensor", labels: "Tensor") -> "Tensor":
        """Return the loss summed over the examples."""

    def measured(self, outputs: "Tensor", labels: "Tensor") -> "dict[str, tuple[Tensor | float, float]]":
        """Return those classified correctly, and their loss."""
        correct = (outputs.argmax(dim=1) == labels).sum()
        return {
            ACCURACY.name: (correct, len(labels)),
            LOSS.name: (self.summed_loss(outputs, labels), len(labels)),
        }


class CrossEntropy(Classification):
    """The cross-entropy of the softmax of the scores, in nats."""

    def loss(self, outputs: "Tensor", labels: "Tensor") -> "Tensor":
        """Return the mean loss, as torch rounds it."""
        import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by

        return F.cross_entropy(outputs, labels)

    def summed_loss(self, outputs: "Tensor", labels: "Tensor") -> "Tensor":
        """Return the loss summed over the examples."""
        import torch.nn.functional as F  # noqa: N812

        return F.cross_entropy(outputs, labels, reduction="sum")


class Squared(Classification):
    """The squared distance of the softmax from the label as zeros and a one, from 0 to 2.

    Tong et al. 2016, Layer-wise asynchronous training of neural networks with synthetic gradients, as their programs
    have it.
    """

    def summed_loss(self, outputs: "Tensor", labels: "Tensor") -> "Tensor":
        """Return the loss summed over the examples."""
        import torch.nn.functional as F  # noqa: N812

        wanted = F.one_hot(labels, outputs.shape[1]).to(outputs.dtype)
        return (outputs.softmax(dim=1) - wanted).square().sum()
