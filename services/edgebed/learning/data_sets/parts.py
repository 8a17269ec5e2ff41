"""How the examples of a client are cut into a training, a validation and a test part, one after the other.

What comes later is for testing. Where neighbours are alike, as windows of one recording are, chance would put one of a
pair into training and the other one into the test.

Shapes: N examples, of which those of a group, such as a client, are in order.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.learning.data_sets.data_set import DataSet

Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Parts of each client's examples."""

    validation: float = 0.1
    """Share of each client's examples that steers training; 0: none."""
    test: float = 0.2
    """Share of each client's examples that is for testing."""

    def __post_init__(self) -> None:
        """ValueError where a share is impossible, or nothing is left to train with."""
        if not 0.0 <= self.validation < 1.0:
            raise ValueError(f"validation: {self.validation} is not from 0 to below 1")
        if not 0.0 < self.test < 1.0:
            raise ValueError(f"test: {self.test} is not between 0 and 1")
        if self.validation + self.test >= 1.0:
            raise ValueError(f"validation: {self.validation} and test: {self.test} leave nothing to train with")


class Parts(NamedTuple):
    """A training, a validation and a test part of some numbers."""

    train: Numbers
    validation: Numbers
    test: Numbers


def cut(whole: Numbers, shares: Shares) -> Parts:
    """Cut (N,) numbers into three, in order."""
    test_from = len(whole) - round(shares.test * len(whole))
    validation_from = test_from - round(shares.validation * len(whole))
    return Parts(whole[:validation_from], whole[validation_from:test_from], whole[test_from:])


def places(
    groups: NDArray[np.integer], shares: Shares, blocks: NDArray[np.integer] | None = None, gap: int = 0
) -> Parts:
    """Return the places of the examples of each part: (N,) groups, each of which is cut by itself.

    `blocks`: (N,) numbers of what stays together, by which a group is in order; None: each example is by itself. `gap`:
    so many blocks before the beginning of a later part are left out.
    """
    numbers = np.arange(len(groups)) if blocks is None else blocks
    found: tuple[list[Numbers], ...] = ([], [], [])
    for group in np.unique(groups):
        of_group = np.flatnonzero(groups == group)
        parts = cut(np.unique(numbers[of_group]), shares)
        for k, part in enumerate(parts):
            is_followed = any(len(later) for later in parts[k + 1 :])
            kept = part[: max(0, len(part) - gap)] if is_followed else part
            found[k].append(of_group[np.isin(numbers[of_group], kept)])
    return Parts(*(np.sort(np.concatenate(part)) for part in found))


def in_parts(
    inputs: NDArray[Any],
    targets: NDArray[Any],
    clients: NDArray[Any],
    parts: Parts,
    *,
    outputs: int | None = None,
    note: str = "",
) -> DataSet:
    """Return the data set of (N, ...) inputs, targets and clients, whose parts are at those places."""
    train, validation, test = ((inputs[part], targets[part], clients[part]) for part in parts)
    return DataSet(
        train=train, validation=validation if len(parts.validation) else None, test=test, outputs=outputs, note=note
    )
