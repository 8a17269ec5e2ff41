"""What tests say of a task's data."""

from typing import Any

from numpy.typing import NDArray

from edgebed.core.plan import ArrayForm
from edgebed.learning.data_sets.examples import Examples


def one_array(shape: tuple[int, ...], dtype: str = "float32") -> tuple[ArrayForm, ...]:
    """Inputs that are one array of this shape."""
    return (ArrayForm("", shape, dtype),)


def examples_of(x: NDArray[Any], y: NDArray[Any]) -> Examples:
    """Examples whose inputs and targets are an array each."""
    return Examples({"": x}, {"": y})
