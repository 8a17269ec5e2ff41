"""A fragment of a vector at a time: of what a worker has computed, the entries whose turn it is travel.

Which one is by the steps that the server has made, so that all workers of a round send the same. Positions travel, and
take next to nothing, since they are in a row.

Shapes: n entries.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgebed.algorithms.compressor import Compressor, Floats, Form, Pieces, StepContext, sent
from edgebed.algorithms.update import ModelUpdate, as_dtype
from edgebed.core.errors import ScenarioError


class Fragments(Compressor):
    """Sends a span of the vector, in turn, as it is."""

    def __init__(self, inner: Compressor, spans: Sequence[slice]) -> None:
        """`inner` is the compression `none`, of whose settings these are; `spans` cover the vector."""
        super().__init__(inner.config, inner.shapes)
        if len(spans) > self.size:
            raise ScenarioError(
                f"local_work.fragments: {len(spans)} are more than the {self.size} entries of the model"
            )
        self.spans_in_turn = spans
        self.longest: int = max(span.stop - span.start for span in spans)

    @property
    def forms(self) -> tuple[Form, ...]:
        """Chosen entries of the update."""
        return (Form("update", self.size, self.config.values, self.longest),)

    @property
    def share(self) -> float:
        """The longest span's."""
        return self.longest / max(1, self.size)

    @property
    def copies(self) -> float:
        """Positions of 8 bytes, and the entries."""
        return 3.0 * self.share

    def compress(self, vector: Floats, memory: Any, context: StepContext) -> tuple[Pieces, None]:
        """(n,) vector -> the span whose turn it is. There is no memory."""
        span = self.spans_in_turn[context.rounds % len(self.spans_in_turn)]
        values = as_dtype(vector[span].copy(), self.config.values)
        return sent(ModelUpdate(self.size, np.arange(span.start, span.stop), values)), None
