"""One mini-batch gradient at the pulled model; the worker never steps its own copy (Hardy et al. 2017, Algorithm 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Gradient = Callable[[NDArray[np.float32], NDArray[np.int64]], tuple[NDArray[np.float32], float]]
"""(n,) parameters and (b,) positions in the node's data -> (n,) gradient of the mean loss, the mean loss.

In buffers, such as running means, the gradient is by how much the old value was larger.
"""


@dataclass(frozen=True, kw_only=True)
class Config:
    """One gradient of one mini-batch."""

    name: Literal["gradient-step"] = "gradient-step"


class LocalWork:
    """What a worker does between a pull and a push."""

    def __init__(self, config: Config, is_buffer: NDArray[np.bool_] | None = None) -> None:
        """`is_buffer` (n,): where the vector holds buffers, which are no parameters; None: nowhere."""
        self.config = config
        self.is_buffer = is_buffer

    def batches(self, examples: int, batch_size: int) -> int:
        """Return the mini-batches between a pull and a push, for a worker with `examples` examples."""
        return 1

    @property
    def copies(self) -> float:
        """How often the model is in memory while `run` works, at most, beside the model and one gradient."""
        return 0.0

    def run(
        self, gradient: Gradient, theta: NDArray[np.float32], batches: Sequence[NDArray[np.int64]]
    ) -> tuple[NDArray[np.float32], float]:
        """Return the vector to compress and push, and the loss."""
        (batch,) = batches
        return gradient(theta, batch)
