"""Which entries of the model may have changed since a version: what a worker needs that has that version.

For each entry the version that touched it last, so any number of workers may have any versions; noting a sparse push
costs time linear in its entries. A push that touches every entry is one number.
"""

import numpy as np
from numpy.typing import NDArray


class Changes:
    """The history of a model of n entries, as far as it matters."""

    def __init__(self, size: int, version: int = 0) -> None:
        """`size` is n; the history begins at `version`."""
        self.touched = np.zeros(size, np.int32)
        """(n,) the version that last touched the entry alone."""
        self.all_touched = version
        """The version that last touched all entries."""

    def note(self, version: int, indices: NDArray[np.int64] | None) -> None:
        """Note that the model got to `version`, by changes to the entries at `indices` (k,); None: to any entry."""
        if indices is None:
            self.all_touched = version
        else:
            self.touched[indices] = version

    def since(self, version: int) -> NDArray[np.int64] | None:
        """Return (k,) increasing positions of the entries that were touched after `version`; None: all of them."""
        return None if version < self.all_touched else np.flatnonzero(self.touched > version)
