"""Stands in for Hugging Face's datasets in examples of others: rows of digits, and what is asked of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torchvision.datasets import digits


class Rows:
    """Images and labels by number, through the transformation."""

    def __init__(self, images: Sequence[Any], labels: Sequence[int]) -> None:
        self.images, self.labels = images, labels
        self.transform: Callable[[Any], Any] = lambda batch: batch

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, k: int) -> dict[str, Any]:
        batch = self.transform({"img": [self.images[k]], "label": [self.labels[k]]})
        return {name: values[0] for name, values in batch.items()}

    def chosen(self, numbers: Sequence[int]) -> "Rows":
        """Return these rows."""
        return Rows([self.images[k] for k in numbers], [self.labels[k] for k in numbers])

    def with_format(self, _: str) -> "Rows":
        """Return them as they are."""
        return self

    def with_transform(self, transform: Callable[[Any], Any]) -> "Rows":
        """Return them with a transformation of batches."""
        rows = Rows(self.images, self.labels)
        rows.transform = transform
        return rows

    def train_test_split(self, *, test_size: float, seed: int) -> "Parts":
        """Return two parts, drawn by the seed."""
        order = np.random.default_rng(seed).permutation(len(self)).tolist()
        test = round(test_size * len(self))
        return Parts(train=self.chosen(order[test:]), test=self.chosen(order[:test]))


class Parts(dict[str, Rows]):
    """Parts by name."""

    def with_transform(self, transform: Callable[[Any], Any]) -> "Parts":
        """Return all with a transformation."""
        return Parts({name: rows.with_transform(transform) for name, rows in self.items()})


def load_dataset(_: str, *, split: str) -> Rows:
    """Return all rows of a split."""
    return Rows(*digits(train=split == "train"))
