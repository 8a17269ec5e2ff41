"""Human activity from a phone at the waist: six activities of 30 people, or of the 21 of the published training part.

Anguita, Ghio, Oneto, Parra, Reyes-Ortiz 2013, A public domain dataset for human activity recognition using smartphones,
ESANN; UCI machine learning repository, CC BY 4.0. Its folder `UCI HAR Dataset`, or `har.npz`, which has the training
part alone. An example has 561 features of a window of 2.56 s, scaled to [-1, 1] by the publishers, over all people.

A window shares half of its samples with the next one. So each activity of a person is cut by time: later windows are
for testing, and a window is left out between two parts. The publishers' own test part is nine people; hold them out for
that: 2, 4, 9, 10, 12, 13, 18, 20 and 24.

Shapes: N windows.
"""

import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.parts import Shares, in_parts, places
from edgebed.learning.data_sets.uci import files

PUBLISHED = "UCI HAR Dataset"
NAMES = tuple(f"{part}/{what}_{part}.txt" for part in ("train", "test") for what in ("X", "y", "subject"))
PACKED = "har.npz"
ACTIVITIES = ("walking", "walking upstairs", "walking downstairs", "sitting", "standing", "lying")
FEATURES = 561
TRAINING_PEOPLE = (1, 3, 5, 6, 7, 8, 11, 14, 15, 16, 17, 19, 21, 22, 23, 25, 26, 27, 28, 29, 30)
"""People of the published training part, which `har.npz` numbers from 0."""
PAGE = "https://doi.org/10.24432/C54S4K"

Whole = tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Config(Shares):
    """Windows by person."""


def find(folders: Sequence[Path]) -> Path | None:
    """Return the folder with the publishers' files, or else `har.npz`; None if there is neither."""
    published = files.first([place for folder in folders for place in (folder / PUBLISHED, folder)], *NAMES)
    packed = files.first(folders, PACKED)
    return published or (packed and packed / PACKED)


def load(config: Config, folders: Sequence[Path]) -> DataSet:
    """Return the windows of all people, by the numbers that the publishers gave them.

    ScenarioError where files are missing or broken.
    """
    found = find(folders)
    if found is None:
        raise files.absent("har", f"folder {PUBLISHED} with {', '.join(NAMES)}, and no {PACKED}", PAGE, folders)
    is_packed = found.name == PACKED
    x, y, people = _read_packed(found) if is_packed else _read_published(found)
    parts = places(people * len(ACTIVITIES) + y, config, gap=1)
    note = f"{PACKED}: the people of the published training part alone" if is_packed else ""
    return in_parts(x, y, people, parts, outputs=len(ACTIVITIES), note=note)


def _read_published(folder: Path) -> Whole:
    read = [[_column_text(folder / name) for name in NAMES[k : k + 3]] for k in (0, 3)]
    for names, part in zip((NAMES[:3], NAMES[3:]), read, strict=True):
        if len({len(each) for each in part}) > 1:
            raise ScenarioError(
                f"{folder}: {', '.join(names)} have {', '.join(str(len(each)) for each in part)} lines."
            )
    x, y, people = (np.concatenate([part[k] for part in read]) for k in range(3))
    return _checked(folder, x, y[:, 0] - 1, people[:, 0])


def _read_packed(path: Path) -> Whole:
    try:
        with np.load(path) as file:
            x, y, client = (file[name] for name in ("x", "y", "client"))
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}.") from error
    if x.ndim != 2 or not len(x) == len(y) == len(client) or client.max(initial=0) >= len(TRAINING_PEOPLE):
        raise ScenarioError(f"{path}: expected x (N, {FEATURES}), y (N,) and client (N,) from 0 to 20.")
    return _checked(path, x, y, np.array(TRAINING_PEOPLE)[client])


def _checked(path: Path, x: NDArray[np.floating], y: NDArray[np.number], people: NDArray[np.number]) -> Whole:
    if x.shape[1] != FEATURES or not np.isin(y, range(len(ACTIVITIES))).all():
        raise ScenarioError(f"{path}: expected {FEATURES} features and {len(ACTIVITIES)} activities a window.")
    return x.astype(np.float32), y.astype(np.int64), people.astype(np.int64)


def _column_text(path: Path) -> NDArray[np.float64]:
    """(N, columns) numbers of a text file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that of an empty file
            return np.loadtxt(path, ndmin=2)
    except (OSError, ValueError, UserWarning) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}.") from error
