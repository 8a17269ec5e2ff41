"""Multi-label classification: for each of K labels a score, above 0 where an example has it.

The loss is the binary cross-entropy of the sigmoid of each score, averaged over examples and labels. F1 is 2 TP /
(2 TP + FP + FN): of all labels together (micro), or the mean over labels (macro), in which one without any true or
predicted example counts as 0, as scikit-learn has it.

Shapes: B examples, (B, K) scores, (B, K) targets of zeros and ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import Sums, TaskMeasure
from edgebed.core.plan import ArrayForm
from edgebed.learning.objectives.objective import Arrays, Measured, OtherTargetsError, Supervised, sole

if TYPE_CHECKING:
    from torch import Tensor

F1_MICRO = TaskMeasure(
    name="f1_micro", label="F1 micro", meaning="F1 score of all labels together, from 0 to 1.", better="more"
)
F1_MACRO = TaskMeasure(
    name="f1_macro", label="F1 macro", meaning="Mean of the labels' F1 scores, from 0 to 1.", better="more"
)
LOSS = TaskMeasure(name="loss", meaning="Mean binary cross-entropy over examples and labels, without weights.")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Each example has any number of labels."""

    positive_weights: Literal["balanced"] | list[float] | None = None
    """For each label the weight of the examples that have it, in the loss that training minimises; `balanced`: how many
    have it not for each that has it."""
    focal: float = 0.0
    """Exponent of (1 - p), by which the loss of a label with probability p of what is right is scaled."""

    def __post_init__(self) -> None:
        """ValueError where a setting is impossible."""
        if self.focal < 0.0:
            raise ValueError(f"focal: {self.focal} is below 0")
        given = self.positive_weights
        if isinstance(given, list) and (not given or min(given) < 0.0):
            raise ValueError("positive_weights: give one for each label, none below 0")


class MultiLabel(Supervised):
    """A classification in which an example may have several labels, or none."""

    Config = Config
    measures = (F1_MICRO, F1_MACRO, LOSS)

    def loss_of(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the mean loss."""
        given = self.config.positive_weights
        return self._losses(outputs, targets, outputs.new_tensor(given) if isinstance(given, list) else None).mean()

    def sums_of(self, outputs: "Tensor", targets: "Tensor") -> Measured:
        """Return counts of each label, and the loss."""
        predicted, actual = outputs > 0, targets > 0
        losses, size = self._losses(outputs, targets, None), len(targets)
        return {
            "hits": ((predicted & actual).sum(dim=0), size),
            "predicted": (predicted.sum(dim=0), size),
            "actual": (actual.sum(dim=0), size),
            LOSS.name: (losses.sum(), losses.numel()),
        }

    def values(self, sums: Sums) -> dict[str, float]:
        """Return the F1 scores, and means."""
        import numpy as np

        hits, predicted, actual = (np.asarray(sums[name][0], np.float64) for name in ("hits", "predicted", "actual"))
        marked = predicted + actual
        of_labels = np.divide(2 * hits, marked, out=np.zeros_like(hits), where=marked > 0)
        micro = float(2 * hits.sum() / marked.sum()) if marked.sum() else 0.0
        return {**super().values(sums), F1_MICRO.name: micro, F1_MACRO.name: float(of_labels.mean())}

    def outputs(self, targets: Sequence[Arrays], stated: int | None) -> int:
        """Return the number of labels."""
        import numpy as np

        of_parts = sole(targets, "a multi-label classification has one array of zeros and ones, (examples, labels)")
        for marks in of_parts:
            if marks.ndim != 2 or not np.isin(marks, (0, 1)).all():
                raise OtherTargetsError(
                    f"targets are {marks.dtype} of shape {marks.shape}; a multi-label classification has zeros and "
                    "ones, (examples, labels)"
                )
        labels = int(of_parts[0].shape[1])
        if stated not in (None, labels):
            raise ScenarioError(f"targets have {labels} labels, but the data set gives {stated} outputs")
        given = self.config.positive_weights
        if isinstance(given, list) and len(given) != labels:
            raise ScenarioError(f"positive_weights: {len(given)} of them for {labels} labels")
        return labels

    def settled(self, targets: Arrays, outputs: int) -> dict[str, Any]:
        """Return the weights of the examples that have a label, where they balance the training examples."""
        if self.config.positive_weights != "balanced":
            return {}
        import numpy as np

        have = np.asarray(targets[""], np.float64).sum(axis=0)
        weights = np.divide(len(targets[""]) - have, have, out=np.ones(outputs), where=have > 0)
        return {"positive_weights": [float(weight) for weight in weights]}

    def shape(self, outputs: int, targets: Sequence[ArrayForm]) -> tuple[int, ...]:
        """Return the shape of the scores of an example: one for each label."""
        return (outputs,)

    def _losses(self, outputs: "Tensor", targets: "Tensor", weights: "Tensor | None") -> "Tensor":
        """Return the (B, K) losses."""
        import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by

        wanted = targets.to(outputs.dtype)
        losses = F.binary_cross_entropy_with_logits(outputs, wanted, pos_weight=weights, reduction="none")
        if not self.config.focal:
            return losses
        right = (outputs * (2 * wanted - 1)).sigmoid()
        scaled: Tensor = (1 - right) ** self.config.focal * losses
        return scaled
