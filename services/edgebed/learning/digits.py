"""The optical digits that come with scikit-learn: 1,797 images of 8x8 pixels, no download.

Alpaydin, Kaynak 1998, Optical recognition of handwritten digits, UCI machine learning repository (its test half).
The division into training and test is edgebed's own: a fifth of each class, always the same one.
"""

import numpy as np
from numpy.typing import NDArray

from edgebed import chance

TEST_SHARE = 0.2
PIXEL_MAX = 16.0


def load() -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """(1438, 1, 8, 8) and (359, 1, 8, 8) images in [0, 1] with their labels, for training and for testing."""
    from sklearn.datasets import load_digits  # a heavy import that only the controller needs

    data, target = load_digits(return_X_y=True)
    x = (data / PIXEL_MAX).astype(np.float32).reshape(-1, 1, 8, 8)
    y = target.astype(np.int64)
    is_test = np.zeros(len(y), bool)
    generator = chance.generator(0, "digits-test")
    for label in range(10):
        examples = generator.permutation(np.flatnonzero(y == label))
        is_test[examples[: round(TEST_SHARE * len(examples))]] = True
    return x[~is_test], y[~is_test], x[is_test], y[is_test]
