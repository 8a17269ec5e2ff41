"""The optical digits beside this file: 1,797 images of 8x8 pixels of 0 to 16, no download.

Alpaydin, Kaynak 1998, Optical recognition of handwritten digits, UCI machine learning repository
(https://doi.org/10.24432/C50P49, CC BY 4.0), its test half. The division into training and test is edgebed's own: a
fifth of each class, always the same one.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgebed.core import chance

FILE = Path(__file__).with_suffix(".npz")
"""Arrays `images`, (1797, 8, 8) of uint8, and `labels`, (1797,) of uint8."""
TEST_SHARE = 0.2
PIXEL_MAX = 16.0


def load() -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """(1438, 1, 8, 8) and (359, 1, 8, 8) images in [0, 1] with their labels, for training and for testing."""
    with np.load(FILE) as file:
        x = (file["images"][:, None] / PIXEL_MAX).astype(np.float32)
        y = file["labels"].astype(np.int64)
    is_test = np.zeros(len(y), bool)
    generator = chance.generator(0, "digits-test")
    for label in range(10):
        examples = generator.permutation(np.flatnonzero(y == label))
        is_test[examples[: round(TEST_SHARE * len(examples))]] = True
    return x[~is_test], y[~is_test], x[is_test], y[is_test]
