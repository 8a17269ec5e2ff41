"""How a worker's examples are cut into mini-batches.

    stream      mini-batches without end, of B examples each; one may span two passes through the data
    by epoch    each pass begins a mini-batch, and its last one has what is left: McMahan et al. 2017,
                Communication-efficient learning of deep networks from decentralized data, AISTATS, algorithm 1

Where there are fewer examples than B, each mini-batch has all of them.

Shapes: n examples, B in a mini-batch.
"""

from typing import NamedTuple


class Cut(NamedTuple):
    """The mini-batches of one worker."""

    examples: int
    """n, at least one."""
    batch_size: int
    """B, as the task has it."""
    by_epoch: bool = False
    """Whether no mini-batch spans two passes through the data."""

    @property
    def size(self) -> int:
        """Examples of a whole mini-batch."""
        return min(self.batch_size, self.examples)

    @property
    def mean_size(self) -> float:
        """Examples of a mini-batch on the mean."""
        return self.examples / self.an_epoch if self.by_epoch else float(self.size)

    @property
    def smallest(self) -> int:
        """Examples of the mini-batch that has fewest."""
        return (self.examples % self.size or self.size) if self.by_epoch else self.size

    @property
    def an_epoch(self) -> int:
        """Mini-batches of a pass through the data, where none spans two."""
        return batches_of(self.examples, self.batch_size)

    def pieces(self, k: int) -> list[tuple[int, int, int]]:
        """Return what mini-batch k is made of: (epoch, start, end) in the order of that epoch."""
        n, size = self.examples, self.size
        if self.by_epoch:
            epoch, number = divmod(k, self.an_epoch)
            return [(epoch, number * size, min(n, (number + 1) * size))]
        epoch, start = divmod(k * size, n)
        end = start + size
        return [(epoch, start, end)] if end <= n else [(epoch, start, n), (epoch + 1, 0, end - n)]


def batches_of(examples: int, batch_size: int) -> int:
    """Return the mini-batches of a pass through so many examples; the last one may be smaller."""
    return max(1, -(-examples // batch_size))
