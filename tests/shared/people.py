"""A small data set of people, as a user would bring it: each has examples of their own, few have many, one has one.

`people:people` is a path for `task.data`; what it makes depends on its settings alone. A class is where its examples
lie, shifted a little for each person. Nothing is in a file.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import edgebed

CLASSES, FEATURES = 3, 6


def sizes_of(count: int) -> list[int]:
    """Training examples of each person: 1, 2, 3, 5, 8, …, up to 60."""
    found = [1, 2]
    while len(found) < count:
        found.append(min(60, found[-1] + found[-2]))
    return found[:count]


def people(count: int = 8, validation: bool = False, anonymous: bool = False) -> edgebed.DataSet:
    """Return the data of so many people, `p0` with one training example; each has four test examples."""
    sizes = sizes_of(count)
    parts = {"train": sizes, "test": [4] * count} | ({"validation": [2] * count} if validation else {})
    return edgebed.DataSet(
        **{name: _part(name, of_each, anonymous) for name, of_each in parts.items()}, outputs=CLASSES
    )


def _part(name: str, sizes: list[int], anonymous: bool) -> tuple[NDArray[np.generic], ...]:
    rng = np.random.default_rng(len(name))
    who = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.integers(0, CLASSES, len(who))
    x = rng.normal(0, 0.4, (len(who), FEATURES)) + np.eye(CLASSES, FEATURES)[y] * 2 + 0.1 * who[:, None]
    ids = np.array([f"p{person}" for person in who])
    order = rng.permutation(len(who))
    found = (x.astype("f4")[order], y[order], ids[order])
    return found[:2] if anonymous else found


def copied(folder: Path) -> Path:
    """Put this file into a folder, as a user's own, by the name `own_people`."""
    path = folder / "own_people.py"
    path.write_text(Path(__file__).read_text())
    return path
