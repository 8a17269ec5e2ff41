"""Classification: scores for K classes, of which the label's should be the highest.

`cross-entropy`     of the softmax of the scores, in nats.
`squared-softmax`   the squared distance of the softmax from the label as zeros and a one, from 0 to 2: Tong et al.
                    2016, Layer-wise asynchronous training of neural networks with synthetic gradients, as their
                    programs have it.

Options: `label_smoothing` (Szegedy et al. 2016, Rethinking the inception architecture, CVPR), `focal` (Lin et al. 2017,
Focal loss for dense object detection, ICCV), `class_weights`, which scale the loss of an example by its class, and are
divided out of the mean; `balanced` weights are N / (K N_k). What is measured has no weights in it.

Shapes: B examples, (B, K) scores, (B,) labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.plan import ArrayForm
from edgebed.learning.objectives.objective import Arrays, Measured, OtherTargetsError, Supervised, sole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

ACCURACY = TaskMeasure(
    name="accuracy", meaning="Share of the examples that are classified correctly.", unit="share", better="more"
)
LOSS = TaskMeasure(name="loss", meaning="Mean loss over the examples, as `task.objective` says.")


@dataclass(frozen=True, kw_only=True)
class Config:
    """The class with the highest score is the answer."""

    loss: Literal["cross-entropy", "squared-softmax"] = "cross-entropy"
    """`cross-entropy`; or `squared-softmax`, the squared distance of the softmax of the scores from the label as zeros
    and a one, which is from 0 to 2."""
    label_smoothing: float = 0.0
    """Share of the label that is spread over all classes."""
    focal: float = 0.0
    """Exponent of (1 - p), by which the loss of an example with probability p of its label is scaled."""
    class_weights: Literal["balanced"] | list[float] | None = None
    """A weight for each class, in the loss that training minimises; `balanced`: the rarer, the heavier."""

    def __post_init__(self) -> None:
        """ValueError where a setting is impossible."""
        if not 0.0 <= self.label_smoothing < 1.0:
            raise ValueError(f"label_smoothing: {self.label_smoothing} is not from 0 to below 1")
        if self.focal < 0.0:
            raise ValueError(f"focal: {self.focal} is below 0")
        weights = self.class_weights
        if isinstance(weights, list) and not (weights and min(weights) >= 0.0 and max(weights) > 0.0):
            raise ValueError("class_weights: give one for each class, none below 0 and not all of them 0")
        others = (
            ("label_smoothing", self.label_smoothing),
            ("focal", self.focal),
            ("class_weights", self.class_weights),
        )
        if self.loss != "cross-entropy" and (given := [name for name, value in others if value]):
            raise ValueError(f"{given[0]}: the loss {self.loss} has no such option; leave it out")


class Classification(Supervised):
    """A classification."""

    Config = Config
    measures = (ACCURACY, LOSS)

    def loss_of(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the mean loss."""
        if self.config.loss == "squared-softmax":
            return self._squared(outputs, targets) / len(targets)
        if self.config.loss == "cross-entropy" and not (self.config.focal or self.config.class_weights):
            return self._cross_entropy(outputs, targets, "mean", None)
        weights = self._weights(outputs)
        if weights is None:
            return self._summed(outputs, targets) / len(targets)
        total = self._focal(outputs, targets, weights).sum()
        return total / weights[targets].sum().clamp_min(1e-12)  # of examples without weight it is 0

    def sums_of(self, outputs: "Tensor", targets: "Tensor") -> Measured:
        """Return those classified correctly, and their loss."""
        correct = (outputs.argmax(dim=1) == targets).sum()
        return {
            ACCURACY.name: (correct, len(targets)),
            LOSS.name: (self._summed(outputs, targets), len(targets)),
        }

    def outputs(self, targets: Sequence[Arrays], stated: int | None) -> int:
        """Return the number of classes: the highest label plus one, where the data does not state it."""
        of_parts = sole(targets, "a classification has one array of labels, (examples,)")
        for labels in of_parts:
            if labels.dtype.kind not in "iu":
                raise OtherTargetsError(f"targets are {labels.dtype}; labels are whole numbers from 0")
            if labels.ndim != 1:
                raise OtherTargetsError(f"targets have shape {labels.shape}; a label for each example has one axis")
        lowest, highest = (int(pick(pick(labels) for labels in of_parts)) for pick in (min, max))
        classes = highest + 1 if stated is None else stated
        if lowest < 0 or highest >= classes:
            raise ScenarioError(
                f"labels are from {lowest} to {highest}; {classes} classes are numbered 0 to {classes - 1}"
            )
        if classes < 2:
            raise ScenarioError(f"{classes} class; there have to be at least two")
        if isinstance(self.config.class_weights, list) and len(self.config.class_weights) != classes:
            raise ScenarioError(f"class_weights: {len(self.config.class_weights)} of them for {classes} classes")
        return classes

    def labels(self, targets: Arrays) -> "NDArray[np.integer]":
        """Return the (N,) labels."""
        return targets[""]

    def settled(self, targets: Arrays, outputs: int) -> dict[str, Any]:
        """Return the weights of the classes that balance the training examples; a class without any has weight 0."""
        if self.config.class_weights != "balanced":
            return {}
        import numpy as np

        counts = np.bincount(targets[""], minlength=outputs)
        weights = np.divide(counts.sum(), outputs * counts, out=np.zeros(outputs), where=counts > 0)
        return {"class_weights": [float(weight) for weight in weights]}

    def shape(self, outputs: int, targets: Sequence[ArrayForm]) -> tuple[int, ...]:
        """Return the shape of the scores of an example: one for each class."""
        return (outputs,)

    def _summed(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the loss without weights, summed over the examples."""
        if self.config.loss == "squared-softmax":
            return self._squared(outputs, targets)
        if self.config.focal:
            return self._focal(outputs, targets, None).sum()
        return self._cross_entropy(outputs, targets, "sum", None)

    def _squared(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the summed distance."""
        import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by

        wanted = F.one_hot(targets, outputs.shape[1]).to(outputs.dtype)
        return (outputs.softmax(dim=1) - wanted).square().sum()

    def _focal(self, outputs: "Tensor", targets: "Tensor", weights: "Tensor | None") -> "Tensor":
        """Return the (B,) losses, each scaled by how improbable its label is."""
        losses = self._cross_entropy(outputs, targets, "none", weights)
        right = outputs.softmax(dim=1).gather(1, targets[:, None])[:, 0]
        scaled: Tensor = (1 - right) ** self.config.focal * losses
        return scaled

    def _cross_entropy(
        self, outputs: "Tensor", targets: "Tensor", reduction: str, weights: "Tensor | None"
    ) -> "Tensor":
        import torch.nn.functional as F  # noqa: N812

        smoothing = self.config.label_smoothing
        return F.cross_entropy(outputs, targets, weight=weights, reduction=reduction, label_smoothing=smoothing)

    def _weights(self, outputs: "Tensor") -> "Tensor | None":
        """Return the (K,) weights of the classes in the loss; None: all count alike."""
        given = self.config.class_weights
        return outputs.new_tensor(given) if isinstance(given, list) else None
