"""What a worker asks of local work: of the vectors that came down, what is to go up, and what is to be remembered.

    run(gradient, vectors, batches, memory, at) ---> changes by name, measures, memory for the next

One vector comes down and one goes up, of the same name: `theta`, the model. A method that has several names the others.

Shapes: n parameters, b examples in a mini-batch.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Floats, StepContext

Batch = NDArray[np.int64]
"""(b,) positions in the node's data."""
Gradient = Callable[[Floats, Batch], tuple[Floats, float]]
"""(n,) parameters and a mini-batch -> (n,) gradient of the mean loss, the mean loss.

In buffers, such as running means, the gradient is by how much the old value was larger.
"""
MODEL = "theta"


class Done(NamedTuple):
    """What came of local work."""

    vectors: Mapping[str, Floats]
    """What is to be compressed and pushed, by the name of its vector: of the model, what the server is to subtract,
    before its learning rate; of another, what the aggregation takes it for."""
    measures: Mapping[str, float]
    """`loss`: the mean loss of the mini-batches."""
    memory: Any = None
    """What is to be remembered until the next time; None: nothing."""


def one(vector: Floats, loss: float, memory: Any = None) -> Done:
    """Return what came of work on the model alone."""
    return Done({MODEL: vector}, {"loss": loss}, memory)


class LocalWork:
    """What a worker does between a pull and a push; base class of all local work."""

    vectors: ClassVar[tuple[str, ...]] = (MODEL,)
    """Vectors that come down and go up, the model first; those of the aggregation."""
    goes_with: ClassVar[str] = ""
    """Name of the one aggregation that knows what is pushed; empty: each does."""
    forgets_lost: ClassVar[bool] = False
    """Whether what it remembers is forgotten when the worker joins anew, or a push of it was refused: where the server
    keeps the same beside it (`Aggregator.forgotten`)."""
    has_own_model: ClassVar[bool] = False
    """Whether what it remembers is a model of the worker's own, (n,), which nobody else ever has."""

    def __init__(self, config: Any, is_buffer: NDArray[np.bool_] | None = None) -> None:
        """`is_buffer` (n,): where the vector holds buffers, which are no parameters; None: nowhere."""
        self.config = config
        self.is_buffer = is_buffer

    def batches(self, examples: int, batch_size: int) -> int:
        """Return the mini-batches between a pull and a push, for a worker with `examples` examples."""
        return 1

    @property
    def by_epoch(self) -> bool:
        """Whether no mini-batch spans two passes through the worker's data: the last one of a pass has what is left."""
        return False

    @property
    def copies(self) -> float | None:
        """How often the model is in memory while `run` works, at most, beside the model and one gradient.

        What is remembered from before is counted in. None: it does not say, and is measured.
        """
        return None

    def run(
        self, gradient: Gradient, vectors: Mapping[str, Floats], batches: Sequence[Batch], memory: Any, at: StepContext
    ) -> Done:
        """Return what is to be pushed, and what is to be remembered until the next time.

        A function of its arguments; `memory` is None at the first step. Nothing that is handed in is written to.
        """
        raise AssertionError(f"{type(self).__name__} does not say what it does")
