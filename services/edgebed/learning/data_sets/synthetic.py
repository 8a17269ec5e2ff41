"""A made-up task of ten classes of 8x8 images, for tests and first tries: no download, a few milliseconds.

Each class has a few prototypes, pictures of a few soft blobs; an example is one of its class's prototypes, moved by up
to a pixel, brighter or darker, under noise. Several prototypes a class keep a linear model from being enough.
"""

import numpy as np
from numpy.typing import NDArray

from edgebed.core import chance

NUM_TRAIN = 4000
NUM_TEST = 1000
CLASSES = 10
PROTOTYPES = 2  # of each class
BLOBS = 4  # of each prototype
SIDE = 8  # pixels
BLOB_RADIUS = 1.1  # pixels
NOISE = 0.12  # standard deviation, of a brightness range of 1


def make(seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """(4000, 1, 8, 8) and (1000, 1, 8, 8) images in [0, 1] with their labels, for training and for testing."""
    generator = chance.generator(seed, "synthetic")
    count = NUM_TRAIN + NUM_TEST
    prototypes = _prototypes(generator)
    y = generator.permutation(np.arange(count) % CLASSES)  # every class equally often, to one example
    which = generator.integers(PROTOTYPES, size=count)
    down, right = generator.integers(3, size=(2, count))  # 0..2: where the 8x8 window lies on the 10x10 prototype
    rows = down[:, None, None] + np.arange(SIDE)[None, :, None]
    columns = right[:, None, None] + np.arange(SIDE)[None, None, :]
    images = prototypes[y[:, None, None], which[:, None, None], rows, columns]  # (count, 8, 8)
    images = images * generator.uniform(0.7, 1.0, (count, 1, 1)) + generator.normal(0.0, NOISE, images.shape)
    x = np.clip(images, 0.0, 1.0).astype(np.float32)[:, None]
    return x[:NUM_TRAIN], y[:NUM_TRAIN], x[NUM_TRAIN:], y[NUM_TRAIN:]


def _prototypes(generator: np.random.Generator) -> NDArray[np.float64]:
    """(classes, prototypes, 10, 10) pictures in [0, 1], a pixel wider on each side than the images cut from them."""
    centres = generator.uniform(1.5, SIDE - 0.5, (CLASSES, PROTOTYPES, BLOBS, 2))
    pixels = np.arange(SIDE + 2)
    rows = np.exp(-((pixels - centres[..., :1]) ** 2) / (2 * BLOB_RADIUS**2))  # (classes, prototypes, blobs, 10)
    columns = np.exp(-((pixels - centres[..., 1:]) ** 2) / (2 * BLOB_RADIUS**2))
    pictures: NDArray[np.float64] = np.minimum(np.einsum("cpbi,cpbj->cpij", rows, columns), 1.0)
    return pictures
