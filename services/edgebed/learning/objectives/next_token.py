"""Next token: at each of T places, scores for each of V tokens, of which the one that follows should be the highest.

The loss is the cross-entropy, averaged over the tokens that count: all but those that are `ignore`d, such as padding.
Perplexity is the exponential of the mean loss over all tokens, in nats.

Shapes: B examples, (B, T, V) scores, (B, T) targets.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import Sums, TaskMeasure
from edgebed.core.plan import ArrayForm
from edgebed.learning.objectives.objective import Arrays, Measured, OtherTargetsError, Supervised, mean, sole

if TYPE_CHECKING:
    from torch import Tensor

PERPLEXITY = TaskMeasure(
    name="perplexity", meaning="Exponential of the mean loss: tokens that seem equally probable.", scale="log"
)
LOSS = TaskMeasure(name="loss", meaning="Mean cross-entropy over the tokens, in nats.")
ACCURACY = TaskMeasure(
    name="accuracy", meaning="Share of the tokens that are predicted correctly.", unit="share", better="more"
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Each place predicts the token that follows."""

    ignore: int = -100
    """The target of places that do not count, such as padding."""
    label_smoothing: float = 0.0
    """Share of the target that is spread over all tokens, in the loss that training minimises."""

    def __post_init__(self) -> None:
        """ValueError where a setting is impossible."""
        if not 0.0 <= self.label_smoothing < 1.0:
            raise ValueError(f"label_smoothing: {self.label_smoothing} is not from 0 to below 1")


class NextToken(Supervised):
    """A language model."""

    Config = Config
    measures = (PERPLEXITY, LOSS, ACCURACY)

    def loss_of(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the mean loss; 0 where no token counts."""
        total, count = self._loss(outputs, targets, self.config.label_smoothing)
        return total / count.clamp_min(1)

    def sums_of(self, outputs: "Tensor", targets: "Tensor") -> Measured:
        """Return the loss of the tokens, and those that are predicted correctly."""
        total, count = self._loss(outputs, targets, 0.0)
        tokens = float(count)
        return {LOSS.name: (total, tokens), ACCURACY.name: ((outputs.argmax(dim=-1) == targets).sum(), tokens)}

    def values(self, sums: Sums) -> dict[str, float]:
        """Return the means, and the exponential of the loss."""
        loss = mean(sums, LOSS.name)
        perplexity = math.exp(loss) if loss < math.log(1e300) else math.inf
        return {**super().values(sums), PERPLEXITY.name: perplexity}

    def outputs(self, targets: Sequence[Arrays], stated: int | None) -> int:
        """Return the size of the vocabulary: the highest token plus one, where the data does not state it."""
        of_parts = sole(targets, "a language model has one array of tokens, (examples, places)")
        for tokens in of_parts:
            if tokens.dtype.kind not in "iu" or tokens.ndim != 2:
                raise OtherTargetsError(
                    f"targets are {tokens.dtype} of shape {tokens.shape}; tokens are whole numbers, (examples, places)"
                )
        counted = [tokens[tokens != self.config.ignore] for tokens in of_parts]
        if not any(tokens.size for tokens in counted):
            raise ScenarioError("no target counts: all are ignored")
        lowest = int(min(tokens.min() for tokens in counted if tokens.size))
        highest = int(max(tokens.max() for tokens in counted if tokens.size))
        size = highest + 1 if stated is None else stated
        if lowest < 0 or highest >= size:
            raise ScenarioError(
                f"targets are tokens from {lowest} to {highest}; {size} tokens are numbered 0 to {size - 1}"
            )
        return size

    def shape(self, outputs: int, targets: Sequence[ArrayForm]) -> tuple[int, ...]:
        """Return the shape of the scores of an example: at each place one for each token."""
        return (*targets[0].shape, outputs)

    def _loss(self, outputs: "Tensor", targets: "Tensor", smoothing: float) -> "tuple[Tensor, Tensor]":
        """Return the loss summed over the tokens that count, and their number."""
        import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by

        ignore = self.config.ignore
        scores, wanted = outputs.flatten(0, -2), targets.flatten()
        total = F.cross_entropy(scores, wanted, ignore_index=ignore, reduction="sum", label_smoothing=smoothing)
        return total, (wanted != ignore).sum()
