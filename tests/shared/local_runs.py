"""Local work done on the model alone, as a worker does it."""

from collections.abc import Sequence
from typing import Any

from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.local_work.base import MODEL, Batch, Done, Gradient, LocalWork

FIRST = StepContext(key=0)


def done(
    work: LocalWork, gradient: Gradient, theta: Floats, batches: Sequence[Batch], at: StepContext = FIRST,
    memory: Any = None,
) -> Done:  # fmt: skip
    """What comes of it, with what is to be remembered."""
    return work.run(gradient, {MODEL: theta}, batches, memory, at)


def ran(
    work: LocalWork, gradient: Gradient, theta: Floats, batches: Sequence[Batch], at: StepContext = FIRST
) -> tuple[Floats, float]:
    """What is pushed, and the loss; nothing is remembered from before."""
    found = done(work, gradient, theta, batches, at)
    return found.vectors[MODEL], found.measures["loss"]
