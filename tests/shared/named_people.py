"""People as clients, for scenarios that find this text beside them: what is one's own is added to it."""

PEOPLE = '''
import numpy as np
from torch import nn

from edgebed import DataSet

NAMES = np.array(["ann", "ben", "cleo", "dan", "eve"])


def table(whose=True):
    """Points of four classes, which lie elsewhere for each person; eve is in the test part alone."""
    rng = np.random.default_rng(1)
    centres, who = rng.normal(0, 2, (5, 4, 6)), rng.integers(0, 5, 900)
    y = rng.integers(0, 4, 900)
    x = (centres[0][y] + 0.6 * centres[who, y] + rng.normal(0, 1, (900, 6))).astype("float32")
    train, test = np.arange(900) < 600, np.arange(900) >= 600
    train &= who != 4
    of_test = (x[test], y[test], NAMES[who[test]] if whose else None)
    return DataSet(train=(x[train], y[train], NAMES[who[train]]), test=of_test)
'''
"""A module with the data alone."""
