"""Where a computation stops being finite: the first tensor, in the order in which things are computed. Pure.

    what was given (parameters, buffers) ---> loss ---> gradient ---> update

Tensors are looked at one by one only where something is not finite; else a sum says that all is well.

Shapes: n entries of the flat vector that a layout cuts into tensors.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.core.plan import TensorLayout

Floats = NDArray[np.float32]
Layout = Sequence[TensorLayout]
What = Literal["parameter", "buffer", "loss", "gradient", "update", "inputs", "outputs"]


class NotFinite(NamedTuple):
    """The first thing that is infinite or no number."""

    what: What | str
    """Tensor, loss, or the measure of an evaluation that is not finite."""
    tensor: str = ""
    """Name of the parameter or buffer that is not finite, or whose gradient or update is not."""


def all_finite(values: NDArray[Any]) -> bool:
    """Whether no value is infinite or no number; the sum decides, unless finite values overflow in it."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(np.add.reduce(values, axis=None)) or np.isfinite(values).all())


def first_given(layout: Layout, theta: Floats) -> NotFinite | None:
    """Return the first tensor of (n,) weights that is not finite."""
    return _first(layout, theta, "parameter", "buffer")


def first_sent(layout: Layout, vector: Floats) -> NotFinite | None:
    """Return the first tensor of (n,) changes of the weights that is not finite."""
    return _first(layout, vector, "update", "update")


def first_computed(layout: Layout, theta: Floats, loss: float, slope: Floats) -> NotFinite | None:
    """Return the first that is not finite of (n,) weights, the loss there, and its (n,) gradient."""
    if math.isfinite(loss) and all_finite(slope):  # weights that are not finite do no harm then
        return None
    at_loss = None if math.isfinite(loss) else NotFinite("loss")
    return first_given(layout, theta) or at_loss or _first(layout, slope, "gradient", "update")


class CheckedGradient:
    """Wrapper of a function for (loss, gradient) that remembers what in it was first not finite."""

    def __init__(self, gradient: Callable[[Floats, NDArray[np.int64]], tuple[Floats, float]], layout: Layout) -> None:
        self.gradient = gradient
        self.layout = layout
        self.found: NotFinite | None = None

    def __call__(self, theta: Floats, batch: NDArray[np.int64]) -> tuple[Floats, float]:
        """Return what the function gives."""
        slope, loss = self.gradient(theta, batch)
        self.found = self.found or first_computed(self.layout, theta, loss, slope)
        return slope, loss


def _first(layout: Layout, vector: Floats, of_parameter: What, of_buffer: What) -> NotFinite | None:
    if all_finite(vector):
        return None
    start = 0
    for tensor in layout:
        end = start + tensor.size
        if not all_finite(vector[start:end]):
            return NotFinite(of_buffer if tensor.is_buffer else of_parameter, tensor.name)
        start = end
    return NotFinite(of_parameter)
