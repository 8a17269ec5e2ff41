"""The updates of a trial as arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Updates:
    """The U updates the server applied, in order; every array has shape (U,)."""

    t: Floats
    """Seconds since the trial began."""
    worker: Ints
    """Index into `Series.workers`."""
    incarnation: Ints
    step: Ints
    """The worker's own count of its pushes, from 0."""
    version: Ints
    """The model's version after the update."""
    base: Ints
    staleness: Ints
    """Updates applied between the worker's pull and this push."""
    entries: Ints
    bits: Ints
    bytes: Ints
    """Payload of the push, in bytes."""
    loss: Floats
    """The worker's mini-batch loss; NaN where training diverged."""
    ingress_bytes: Ints
    """Payload of this push and all before it, with those that were lost with a server: what went up."""
    egress_bytes: Floats
    """Payload of the models sent to workers before this update was applied, with the answers to pushes that were lost
    with a server: what went down. The answer to this push is not among it. NaN: not known."""

    def __len__(self) -> int:
        """Number of updates, U."""
        return len(self.t)

    @property
    def traffic_bytes(self) -> Floats:
        """Payload up and down together, in bytes; NaN: not known."""
        return self.ingress_bytes + self.egress_bytes
