"""Activations and gradients between shards as 8-bit integers with one scale a tensor, to the nearest.

Linear and symmetric, as in Jacob et al. 2018, Quantization and training of neural networks for efficient
integer-arithmetic-only inference, CVPR, section 2.1, with a zero point of 0.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.exchange.exchanged import Exchanged

LARGEST = 127


@dataclass(frozen=True, kw_only=True)
class Config:
    """All values are sent as 8-bit integers, in a quarter of the bytes."""

    name: Literal["int8"] = "int8"


def exchange(array: NDArray[np.float32], config: Config) -> Exchanged:
    """Round each value to the nearest of 255 from minus the largest magnitude to the largest; not finite ones to 0."""
    finite = np.nan_to_num(array.reshape(-1), nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(finite).max(initial=0.0))
    scale = float(np.float32(largest / LARGEST)) or 1.0
    values = np.clip(np.rint(finite / np.float32(scale)), -LARGEST, LARGEST).astype(np.int8)
    return Exchanged(array.shape, None, values, scale)
