"""Local work tried without a model: on a small vector, with a gradient that is a formula.

It shows whether local work is a function of its arguments, and how often it has the model in memory.
"""

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.local_work.base import Batch, Done, LocalWork

SMALL, LARGE = 64, 100_000
"""Parameters that local work is tried with: to see what it does, and to see what it holds."""
EXAMPLES = 2
"""Mini-batches that its worker has examples for."""


def gradient(theta: NDArray[np.float32], batch: NDArray[np.int64]) -> tuple[NDArray[np.float32], float]:
    """Return the gradient of a bowl whose bottom is elsewhere for each mini-batch, and its depth."""
    slope = theta - np.float32(batch.mean())
    return slope, float(slope[0])


def ran(work: LocalWork, batch_size: int, memory: Any = None, step: int = 0) -> Done:
    """Return what `work` makes of a small model; it may not write to what it is given."""
    return work.run(gradient, *_given(work, SMALL, batch_size), memory, StepContext(key=step, step=step))


def copies_held(work: LocalWork, batch_size: int) -> float:
    """Return how often the model is in memory while `work` runs, at most, beside the model and one gradient."""
    given, was_tracing = _given(work, LARGE, batch_size), tracemalloc.is_tracing()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    try:
        memory = work.run(gradient, *given, None, StepContext(key=0)).memory
        tracemalloc.reset_peak()
        work.run(gradient, *given, memory, StepContext(key=1, step=1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return max(0.0, (peak - before) / (4 * LARGE) - 1.0)


def _given(work: LocalWork, size: int, batch_size: int) -> tuple[dict[str, Floats], list[Batch]]:
    """Return a model of so many parameters, and mini-batches, as a worker is given them."""
    given = {name: np.linspace(-1.0, 1.0 + k, size, dtype=np.float32) for k, name in enumerate(work.vectors)}
    count = work.batches(EXAMPLES * batch_size, batch_size)
    batches = [np.arange(place, place + batch_size) for place in range(count)]
    arrays: list[NDArray[Any]] = [*given.values(), *batches]
    for each in arrays:
        each.flags.writeable = False
    return given, batches


def attributes_of(work: LocalWork) -> dict[str, Any]:
    """Return plain values by attribute, which are equal where all that the attribute leads to is as it was."""
    return {name: plain(value) for name, value in vars(work).items()}


def plain(value: Any, above: Sequence[int] = ()) -> Any:
    """Return what is equal where all that the value leads to is; `above` are the ids of what leads to it."""
    if id(value) in above:
        return None
    inside = (*above, id(value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, dict):
        return [(repr(key), plain(each, inside)) for key, each in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each, inside) for each in value]
    if isinstance(value, bool | int | float | complex | str | bytes | None):
        return repr(value)
    return type(value).__name__, plain(getattr(value, "__dict__", {}), inside)
