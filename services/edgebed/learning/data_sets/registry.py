"""Data sets: the built-in ones by name, and the user's own by import path.

The controller loads a data set once and cuts it; nodes only ever see their own part. Beside this module, `cifar10`,
`digits`, `mnist` and `synthetic` each make one.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets import cifar10, digits, mnist, synthetic

TYPES = "allowed: uint8 for pixels, which are scaled to [0, 1], or float32, also for whole numbers such as tokens"
Arrays = tuple[Any, Any, Any, Any]
"""Arrays of a data set: train_x, train_y, test_x, test_y."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSet:
    """Labelled inputs for training and for testing. N examples, of any shape without the first axis."""

    name: str
    train_x: NDArray[np.uint8] | NDArray[np.float32]
    """(N, *input_shape); 8-bit pixels or floats. Images have the channels first: (N, 1, 28, 28)."""
    train_y: NDArray[np.uint8] | NDArray[np.int64]
    """(N,) labels in 0..classes-1"""
    test_x: NDArray[np.uint8] | NDArray[np.float32]
    test_y: NDArray[np.uint8] | NDArray[np.int64]
    classes: int
    note: str = ""
    """Remark for readers on where the data came from; empty if none."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return self.train_x.shape[1:]


def load_data(name: str, *, seed: int, data_dir: Path | None = None, python_path: Sequence[str] = ()) -> DataSet:
    """The data set called `name`: a built-in one, or what the user's `package.module:function` returns.

    The user's function may take a `seed`; it returns a `DataSet` or a tuple (train_x, train_y, test_x, test_y).
    `data_dir` (else `data_directory()`) holds downloaded files; `seed` shapes synthetic data only, never the division
    into training and test. ScenarioError if there is no such data set or it cannot be used.
    """
    if name in DATA_SETS:
        arrays, note = DATA_SETS[name](seed, data_dir or data_directory())
        return _checked(name, arrays, classes=10, note=note)
    if not imports.is_import_path(name):
        raise ScenarioError(f"data: '{name}' is unknown; allowed: {', '.join(DATA_SETS)} or package.module:function.")
    result = imports.call(name, imports.resolve(name, python_path), seed=seed)
    if isinstance(result, DataSet):
        arrays = (result.train_x, result.train_y, result.test_x, result.test_y)
        return _checked(name, arrays, result.classes, result.note)
    if not isinstance(result, tuple | list) or len(result) != 4:
        raise ScenarioError(
            f"{name}: it returned a {type(result).__name__}, not an edgebed DataSet or a tuple "
            "(train_x, train_y, test_x, test_y)."
        )
    return _checked(name, tuple(result), classes=None)


def is_here(name: str) -> bool:
    """Whether the files of a data set are on this machine, so that nothing has to be downloaded."""
    return name not in FOUND or FOUND[name](data_directory())


def data_directory() -> Path:
    """Return the folder of data files: `EDGEBED_DATA_DIR`, else one in the user's home."""
    chosen = os.environ.get("EDGEBED_DATA_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / ".local/share/edgebed/data"


def _checked(name: str, arrays: Arrays, classes: int | None, note: str = "") -> DataSet:
    """Return a data set that training cannot stumble over; ScenarioError with everything that is wrong."""
    problems: list[str] = []
    train_x, train_y = _pair(name, "train", arrays[0], arrays[1], problems)
    test_x, test_y = _pair(name, "test", arrays[2], arrays[3], problems)
    if problems:
        raise ScenarioError(*problems)
    if train_x.shape[1:] != test_x.shape[1:]:
        problems.append(f"{name}: inputs have shape {train_x.shape[1:]} in train_x but {test_x.shape[1:]} in test_x.")
    if train_x.dtype != test_x.dtype:
        problems.append(f"{name}: train_x is {train_x.dtype} but test_x is {test_x.dtype}; 8-bit pixels are scaled.")
    classes = int(max(train_y.max(), test_y.max())) + 1 if classes is None else classes
    if classes < 2:
        problems.append(f"{name}: {classes} class; there have to be at least two.")
    for which, labels in (("train_y", train_y), ("test_y", test_y)):
        if labels.min() < 0 or labels.max() >= classes:
            problems.append(
                f"{name}: {which} has labels from {labels.min()} to {labels.max()}; "
                f"{classes} classes are numbered 0 to {classes - 1}."
            )
    if problems:
        raise ScenarioError(*problems)
    return DataSet(
        name=name, train_x=train_x, train_y=train_y, test_x=test_x, test_y=test_y, classes=classes, note=note
    )


def _pair(name: str, which: str, x: object, y: object, problems: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return inputs as uint8 or float32 and labels as uint8 or int64; add what is wrong to `problems`."""
    inputs, labels = np.asarray(x), np.asarray(y)
    if inputs.dtype.kind == "f":
        inputs = inputs.astype(np.float32, copy=False)
        if not np.isfinite(inputs).all():
            problems.append(f"{name}: {which}_x has values that are not finite.")
    elif inputs.dtype != np.uint8:
        problems.append(f"{name}: {which}_x is {inputs.dtype}; {TYPES}.")
    if inputs.ndim < 2:
        problems.append(f"{name}: {which}_x has shape {inputs.shape}; it needs (examples, ...), two axes or more.")
    if labels.dtype.kind not in "iu":
        problems.append(f"{name}: {which}_y is {labels.dtype}; labels are whole numbers from 0.")
    elif labels.dtype != np.uint8:
        labels = labels.astype(np.int64, copy=False)
    if labels.ndim != 1:
        problems.append(f"{name}: {which}_y has shape {labels.shape}; it needs one axis, a label for each example.")
    if inputs.shape[:1] != labels.shape[:1]:
        problems.append(f"{name}: {which}_x has shape {inputs.shape} but {which}_y {labels.shape}: lengths differ.")
    elif labels.size == 0:
        problems.append(f"{name}: {which}_y is empty.")
    return inputs, labels


def _cifar10(_seed: int, data_dir: Path) -> tuple[Arrays, str]:
    found = cifar10.load(data_dir / "cifar10", data_dir)
    return found[:4], found.note


DATA_SETS: dict[str, Callable[[int, Path], tuple[Arrays, str]]] = {
    "digits": lambda _seed, _data_dir: (digits.load(), ""),
    "mnist": lambda _seed, data_dir: (mnist.load(data_dir / "mnist", data_dir), ""),
    "cifar10": _cifar10,
    "synthetic": lambda seed, _data_dir: (synthetic.make(seed), ""),
}
FROM_FILES = ("digits", "mnist", "cifar10")
"""Built-in data sets that are the same for each seed."""
"""Functions that make the built-in data sets, each with a remark on what it made."""

FOUND: dict[str, Callable[[Path], bool]] = {
    "mnist": lambda data_dir: mnist.is_in(data_dir / "mnist", data_dir),
    "cifar10": lambda data_dir: cifar10.find((data_dir / "cifar10", data_dir)) is not None,
}
"""Whether the files are there, for data sets that come in files."""
