"""Values of largest magnitude of activations and gradients between shards; what is not sent counts as 0.

The selection is that of Shokri, Shmatikov 2015, Privacy-preserving deep learning, ACM CCS, of gradients of a model:
the largest across the whole tensor of a batch, and nothing is remembered of the others.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compression import top_k
from edgebed.algorithms.exchange.exchanged import Exchanged
from edgebed.algorithms.shares import check_share


@dataclass(frozen=True, kw_only=True)
class Config:
    """The largest values are sent."""

    name: Literal["top-k"] = "top-k"
    fraction: float = 0.1
    """Share of the values that is sent, in (0, 1]."""
    values: Literal["float32", "float16"] = "float32"
    """How a value travels."""

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)


def exchange(array: NDArray[np.float32], config: Config) -> Exchanged:
    """Choose max(1, floor(n * fraction)) values; of equal magnitudes the ones at lower positions."""
    settings = top_k.Config(fraction=config.fraction, scope="model", values=config.values)
    update = top_k.Compression(settings, [(array.size,)]).choose(array.reshape(-1))
    return Exchanged(array.shape, update.indices, update.values)
