"""Local work done on the model alone, as a worker does it."""

from collections.abc import Sequence

from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.local_work.base import MODEL, Batch, Gradient, LocalWork

FIRST = StepContext(key=0)


def ran(
    work: LocalWork, gradient: Gradient, theta: Floats, batches: Sequence[Batch], at: StepContext = FIRST
) -> tuple[Floats, float]:
    """What is pushed, and the loss; nothing is remembered from before."""
    done = work.run(gradient, {MODEL: theta}, batches, None, at)
    return done.vectors[MODEL], done.measures["loss"]
