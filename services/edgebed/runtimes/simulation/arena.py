"""Model snapshots in memory that a pool of processes shares, so that no model is ever sent between them.

    arena:  [ slot 0 | slot 1 | … ]   one mapping, made before the pool is forked, each slot one flat model

A slot is taken by `copy` and is free again when nothing refers to its array any more.
"""

import mmap
import weakref

import numpy as np
from numpy.typing import NDArray

ALIGNMENT_BYTES = 64  # a cache line, and the widest vector registers


class Arena:
    """Slots for (n,) float32 vectors in shared memory; the number of slots is fixed."""

    def __init__(self, size: int, slots: int) -> None:
        """`size` is n; pages are only used once a slot is taken."""
        self.size = size
        self.stride = -(-size * 4 // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self.memory = mmap.mmap(-1, max(1, self.stride * slots))
        self.free = list(range(slots - 1, -1, -1))
        self.start = np.frombuffer(self.memory, np.uint8).__array_interface__["data"][0]

    def empty(self) -> NDArray[np.float32]:
        """An (n,) array in a free slot, its content undefined."""
        slot = self.free.pop()
        array = np.frombuffer(self.memory, np.float32, self.size, slot * self.stride)
        weakref.finalize(array, self.free.append, slot).atexit = False
        return array

    def copy(self, theta: NDArray[np.float32]) -> NDArray[np.float32]:
        """A copy of `theta` in a slot of its own."""
        array = self.empty()
        np.copyto(array, theta)
        return array

    def slot_of(self, array: NDArray[np.float32]) -> int | None:
        """The slot that `array` lies in; None if it is elsewhere."""
        offset = array.__array_interface__["data"][0] - self.start
        if 0 <= offset < len(self.memory) and offset % self.stride == 0:
            return int(offset // self.stride)
        return None

    def view(self, slot: int) -> NDArray[np.float32]:
        """The array in `slot`, for a process that was sent its number."""
        return np.frombuffer(self.memory, np.float32, self.size, slot * self.stride)
