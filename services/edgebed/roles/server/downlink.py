"""The model on its way down, compressed: what a worker lacks of it, as the method's `downlink` sends such a thing.

The server knows what each worker has, to the bit, because it restores what it sends as the worker does. What was left
out, or rounded, is part of what the worker lacks the next time: nothing is lost, as long as less is left out than was
lacking (`check_downlink` of a compression's settings), and nothing else is remembered. Workers that have the same get
the same message, and share one copy here: in rounds there is one.

Tang, Yu, Lian, Zhang, Liu 2019, DoubleSqueeze: parallel stochastic gradient descent with double-pass error-compensated
compression, ICML, compress both ways in rounds; for workers of different versions it is the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Compressor, StepContext
from edgebed.algorithms.update import ModelUpdate
from edgebed.core import chance
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import Buffer, encode_pieces


class Copy(NamedTuple):
    """A model that workers have."""

    theta: NDArray[np.float32]
    """(n,) weights of the model."""
    version: int
    """Version that the copy came from."""
    number: int
    """Number of the copy, which no other has."""


class CopyDelta(NamedTuple):
    """An update that makes one copy of another."""

    since: int
    tensors: tuple[Tensor, ...]
    frames: Sequence[Buffer]


class Downlink:
    """Copies of the model that workers have."""

    transient = ("compressor", "seed")
    """Attributes that do not outlast the server."""

    def __init__(self, compressor: Compressor, seed: int) -> None:
        self.compressor = compressor
        self.seed = seed
        self.copies: dict[str, Copy] = {}
        self._made: dict[int, tuple[Copy, CopyDelta]] = {}
        """By the number of a copy: the copy that it became to be the present model's, and what was sent."""
        self._present = -1
        self._whole: Copy | None = None
        self._count = 0

    def whole(self, worker: str, theta: NDArray[np.float32], version: int) -> None:
        """Note that `worker` is being sent all of the present model."""
        self._turn(version)
        if self._whole is None:
            self._whole = self._copy(theta.copy(), version)
        self.copies[worker] = self._whole

    def changes(self, worker: str, theta: NDArray[np.float32], version: int, epoch: float = 0.0) -> CopyDelta | None:
        """Return what makes the worker's copy about the present model; None: it has none that is known.

        `epoch` is the number of passes through all data.
        """
        known = self.copies.get(worker)
        if known is None:
            return None
        self._turn(version)
        if known.number not in self._made:
            self._made[known.number] = self._make(known, theta, version, epoch)
        self.copies[worker], sent = self._made[known.number]
        return sent

    def forget(self, worker: str) -> None:
        """Forget the copy of a worker: nobody knows what it has."""
        self.copies.pop(worker, None)

    def _turn(self, version: int) -> None:
        if version != self._present:
            self._present, self._whole = version, None
            self._made.clear()

    def _make(self, known: Copy, theta: NDArray[np.float32], version: int, epoch: float) -> tuple[Copy, CopyDelta]:
        key = chance.key(self.seed, "downlink", str(known.number), version)
        with np.errstate(all="ignore"):  # training that diverges is a result, and seen in its loss
            pieces, _ = self.compressor.compress(theta - known.theta, None, StepContext(key, epoch=epoch))
            after = known.theta.copy()
            add(after, self.compressor.restore(pieces))
        return self._copy(after, version), CopyDelta(known.version, *encode_pieces(pieces))

    def _copy(self, theta: NDArray[np.float32], version: int) -> Copy:
        self._count += 1
        return Copy(theta, version, self._count)


def add(theta: NDArray[np.float32], update: ModelUpdate) -> None:
    """Add an update to a (n,) model, the same to the bit wherever that is done."""
    if update.indices is None:
        theta += update.values
    else:
        theta[update.indices] += update.values
