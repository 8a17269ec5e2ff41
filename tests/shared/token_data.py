"""A text of tokens that can be learnt: most tokens follow from the one before."""

import numpy as np

from edgebed import DataSet

VOCABULARY = 12
PLACES = 16


def walk(seed: int, places: int = PLACES, examples: int = 240, vocabulary: int = VOCABULARY) -> DataSet:
    """Windows of walks through the vocabulary: three steps of four go to the token's own successor."""
    rng = np.random.default_rng(seed)
    count, successors = examples + 50, rng.permutation(vocabulary)
    tokens = np.empty((count, places + 1), np.int64)
    tokens[:, 0] = rng.integers(0, vocabulary, count)
    for k in range(places):
        stray = rng.random(count) < 0.25
        tokens[:, k + 1] = np.where(stray, rng.integers(0, vocabulary, count), successors[tokens[:, k]])
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    return DataSet(train=(inputs[50:], targets[50:]), test=(inputs[:50], targets[:50]), outputs=vocabulary)
