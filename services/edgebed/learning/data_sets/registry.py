"""Data sets: the built-in ones by name, and the user's own by import path.

The controller loads a data set once and cuts it; nodes only ever see their own part. Beside this module, `cifar10`,
`digits`, `mnist` and `synthetic` each make one.
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets import cifar10, digits, mnist, synthetic
from edgebed.learning.data_sets.data_set import DataSet, from_arrays


def load_data(
    name: str,
    *,
    seed: int,
    settings: Mapping[str, Any] | None = None,
    data_dir: Path | None = None,
    python_path: Sequence[str] = (),
) -> DataSet:
    """The data set called `name`: a built-in one, or what the user's `package.module:function` returns.

    The user's function may take a `seed`, and takes the `settings`; it returns a `DataSet` or a tuple (train_x,
    train_y, test_x, test_y). `data_dir` (else `data_directory()`) holds downloaded files; `seed` shapes synthetic data
    only, never the division into training and test. ScenarioError if there is no such data set or it cannot be used.
    """
    settings = settings or {}
    offers: dict[str, Any] = {"seed": seed}
    if name in DATA_SETS:
        offers = {"seed": seed, "data_dir": data_dir or data_directory()}
        _check_settings(name, DATA_SETS[name], settings, offers)
        known = inspect.signature(DATA_SETS[name]).parameters
        taken = {key: value for key, value in offers.items() if key in known}
        return DATA_SETS[name](**taken, **settings).named(name)
    if not imports.is_import_path(name):
        raise ScenarioError(f"data: '{name}' is unknown; allowed: {', '.join(DATA_SETS)} or package.module:function.")
    make = imports.resolve(name, python_path)
    _check_settings(name, make, settings, offers)
    result = imports.call(name, make, **offers, **settings)
    try:
        return _as_data_set(name, result).named(name)
    except ScenarioError as error:
        at = imports.begins(make)
        raise ScenarioError(*(f"{problem.removesuffix('.')}{at}" for problem in error.problems)) from error


def _as_data_set(name: str, result: object) -> DataSet:
    """What the user's function returned."""
    if isinstance(result, tuple | list) and len(result) == 4:
        return from_arrays(name, *result)
    if isinstance(result, DataSet):
        return result
    of = f" of {len(result)}" if isinstance(result, tuple | list) else ""
    raise ScenarioError(
        f"{name}: it returned a {type(result).__name__}{of}, not a tuple (train_x, train_y, test_x, test_y) or an "
        "edgebed.DataSet(train=(x, y), test=(x, y))"
    )


def is_here(name: str) -> bool:
    """Whether the files of a data set are on this machine, so that nothing has to be downloaded."""
    return name not in FOUND or FOUND[name](data_directory())


def data_directory() -> Path:
    """Return the folder of data files: `EDGEBED_DATA_DIR`, else one in the user's home."""
    chosen = os.environ.get("EDGEBED_DATA_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / ".local/share/edgebed/data"


def _check_settings(
    name: str, make: Callable[..., Any], settings: Mapping[str, Any], offers: Mapping[str, Any]
) -> None:
    """ScenarioError where the function has no parameter for a setting."""
    parameters = inspect.signature(make).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    known = [each for each in parameters if each not in offers]
    for key in settings:
        if key not in known:
            allowed = f"allowed: {', '.join(known)}" if known else "it has none"
            raise ScenarioError(f"{name}: unknown setting '{key}'; {allowed}.")


def _cifar10(data_dir: Path) -> DataSet:
    found = cifar10.load(data_dir / "cifar10", data_dir)
    return from_arrays("cifar10", *found[:4], outputs=10, note=found.note)


DATA_SETS: dict[str, Callable[..., DataSet]] = {
    "digits": lambda: from_arrays("digits", *digits.load(), outputs=10),
    "mnist": lambda data_dir: from_arrays("mnist", *mnist.load(data_dir / "mnist", data_dir), outputs=10),
    "cifar10": _cifar10,
    "synthetic": lambda seed: from_arrays("synthetic", *synthetic.make(seed), outputs=10),
}
"""Functions that make the built-in data sets. They may take the seed, and the folder of data files."""
FROM_FILES = ("digits", "mnist", "cifar10")
"""Built-in data sets that are the same for each seed."""

FOUND: dict[str, Callable[[Path], bool]] = {
    "mnist": lambda data_dir: mnist.is_in(data_dir / "mnist", data_dir),
    "cifar10": lambda data_dir: cifar10.find((data_dir / "cifar10", data_dir)) is not None,
}
"""Whether the files are there, for data sets that come in files."""
