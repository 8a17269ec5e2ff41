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

from edgebed import chance
from edgebed.algorithms.compressor import Compressor, Moment
from edgebed.algorithms.update import Update
from edgebed.wire.messages import Tensor
from edgebed.wire.tensors import Buffer, encode_pieces


class Copy(NamedTuple):
    """A model that workers have."""

    theta: NDArray[np.float32]
    """(n,)"""
    version: int
    """That it came from."""
    number: int
    """No other has it."""


class Sent(NamedTuple):
    """What makes one copy of another."""

    since: int
    tensors: tuple[Tensor, ...]
    frames: Sequence[Buffer]


class Downlink:
    """Who has which copy."""

    def __init__(self, compressor: Compressor, seed: int) -> None:
        self.compressor = compressor
        self.seed = seed
        self.copies: dict[str, Copy] = {}
        self._made: dict[int, tuple[Copy, Sent]] = {}
        """From each copy to the present model's: what it became, and what was sent."""
        self._present = -1
        self._whole: Copy | None = None
        self._count = 0

    def whole(self, worker: str, theta: NDArray[np.float32], version: int) -> None:
        """It is being sent all of the present model."""
        self._turn(version)
        if self._whole is None:
            self._whole = self._copy(theta.copy(), version)
        self.copies[worker] = self._whole

    def changes(self, worker: str, theta: NDArray[np.float32], version: int, epoch: float = 0.0) -> Sent | None:
        """What it is being sent to have about the present model; None: it has none that is known.

        `epoch` is how often all data has been gone through.
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
        """Nobody knows what it has."""
        self.copies.pop(worker, None)

    def _turn(self, version: int) -> None:
        if version != self._present:
            self._present, self._whole = version, None
            self._made.clear()

    def _make(self, known: Copy, theta: NDArray[np.float32], version: int, epoch: float) -> tuple[Copy, Sent]:
        key = chance.key(self.seed, "downlink", str(known.number), version)
        with np.errstate(all="ignore"):  # training that diverges is a result, and seen in its loss
            pieces, _ = self.compressor.compress(theta - known.theta, None, Moment(key, epoch=epoch))
            after = known.theta.copy()
            add(after, self.compressor.restore(pieces))
        return self._copy(after, version), Sent(known.version, *encode_pieces(pieces))

    def _copy(self, theta: NDArray[np.float32], version: int) -> Copy:
        self._count += 1
        return Copy(theta, version, self._count)


def add(theta: NDArray[np.float32], update: Update) -> None:
    """Add an update to a (n,) model, the same to the bit wherever that is done."""
    if update.indices is None:
        theta += update.values
    else:
        theta[update.indices] += update.values
