"""CIFAR-10 as others' examples ask for it: digits of scikit-learn, as large as its images."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

TEST = 297


def digits(*, train: bool) -> tuple[np.ndarray, list[int]]:
    """Return images, (N, 32, 32, 3) in [0, 1], and labels."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    chosen = order[:-TEST] if train else order[-TEST:]
    large = np.kron(images[chosen].reshape(-1, 8, 8) / 16, np.ones((4, 4)))
    return np.repeat(large[..., None], 3, axis=-1).astype(np.float32), labels[chosen].tolist()


class CIFAR10:
    """Pairs of an image and its label."""

    def __init__(self, root: str, *, train: bool, download: bool, transform: Callable[[Any], Any]) -> None:
        self.images, self.labels = digits(train=train)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, k: int) -> tuple[Any, int]:
        return self.transform(self.images[k]), self.labels[k]
