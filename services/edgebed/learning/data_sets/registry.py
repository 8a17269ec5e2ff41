"""Data sets: the built-in ones by name, and the user's own by import path.

The controller loads a data set once and cuts it; nodes only ever see their own part. Beside this module, `digits`,
`synthetic` and `texts/` make those that come with edgebed, `mnist`, `cifar10` and `uci/` those that come in files.
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.quantities import all_text
from edgebed.learning.data_sets import cifar10, digits, mnist, synthetic
from edgebed.learning.data_sets.data_set import DataSet, from_arrays
from edgebed.learning.data_sets.texts import own, plays
from edgebed.learning.data_sets.uci import har, heart, parkinsons


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """No settings."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a built-in data set is made for."""

    config: Any
    """Its settings."""
    seed: int
    data_dir: Path
    """Folder of data files."""
    beside: Path
    """Folder of the scenario."""


@dataclass(frozen=True, kw_only=True)
class BuiltIn:
    """A data set that has a name."""

    make: Callable[[Wanted], DataSet]
    Config: Any = NoSettings
    """The settings: a frozen dataclass."""
    is_here: Callable[[Path], bool] = lambda _: True
    """Whether its files are in the folder of data files."""
    in_files: bool = False
    """Whether it comes in files that are not edgebed's."""
    is_fetched: bool = False
    """Whether files that are missing are downloaded."""
    is_fixed: bool = True
    """Whether it is the same for each scenario with these settings."""


def load_data(
    name: str,
    *,
    seed: int,
    settings: Mapping[str, Any] | None = None,
    data_dir: Path | None = None,
    beside: Path | None = None,
    python_path: Sequence[str] = (),
) -> DataSet:
    """The data set called `name`: a built-in one, or what the user's `package.module:function` returns.

    The user's function may take a `seed`, and takes the `settings`; it returns a `DataSet` or a tuple (train_x,
    train_y, test_x, test_y). `data_dir` (else `data_directory()`) is the folder of data files, and `beside` (else the
    one that one is in) that of the scenario; `seed` shapes synthetic data only, never the division into training and
    test. ScenarioError if there is no such data set or it cannot be used.
    """
    settings = settings or {}
    if name in DATA_SETS:
        built_in = DATA_SETS[name]
        _check_settings(name, built_in.Config, settings)
        try:
            config = msgspec.convert(settings, built_in.Config)
        except ValueError as error:
            raise ScenarioError(f"{name}: {error}") from error
        wanted = Wanted(config=config, seed=seed, data_dir=data_dir or data_directory(), beside=beside or Path.cwd())
        return built_in.make(wanted).named(name)
    if not imports.is_import_path(name):
        raise ScenarioError(f"data: '{name}' is unknown; allowed: {', '.join(DATA_SETS)} or package.module:function.")
    make = imports.resolve(name, python_path)
    _check_settings(name, make, settings)
    result = imports.call(name, make, seed=seed, **settings)
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
    """Whether the files of a data set are on this machine."""
    return name not in DATA_SETS or DATA_SETS[name].is_here(data_directory())


def how_to_get(names: Sequence[str]) -> str:
    """Say how the files of these data sets come onto a machine that lacks them."""
    fetched = [name for name in names if DATA_SETS[name].is_fetched]
    by_hand = [name for name in names if not DATA_SETS[name].is_fetched]
    told = (("edgebed plan downloads", fetched), ("edgebed plan says where to put", by_hand))
    return "; ".join(f"{what} {all_text(which)}" for what, which in told if which)


def data_directory() -> Path:
    """Return the folder of data files: `EDGEBED_DATA_DIR`, else one in the user's home."""
    chosen = os.environ.get("EDGEBED_DATA_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / ".local/share/edgebed/data"


def folders(name: str, data_dir: Path) -> tuple[Path, Path]:
    """Return the folders in which the files of a data set are looked for: its own, then the one of all."""
    return data_dir / name, data_dir


def _check_settings(name: str, make: Callable[..., Any], settings: Mapping[str, Any]) -> None:
    """ScenarioError where a function has no parameter for a setting."""
    parameters = inspect.signature(make).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    known = [each for each in parameters if each != "seed"]
    for key in settings:
        if key not in known:
            allowed = f"allowed: {', '.join(known)}" if known else "it has none"
            raise ScenarioError(f"{name}: unknown setting '{key}'; {allowed}.")


def _cifar10(wanted: Wanted) -> DataSet:
    found = cifar10.load(*folders("cifar10", wanted.data_dir))
    return from_arrays("cifar10", *found[:4], outputs=10, note=found.note)


def _read(name: str, reader: Any) -> BuiltIn:
    """The data set of a reader of files that are put into the data directory by hand."""
    return BuiltIn(
        make=lambda wanted: reader.load(wanted.config, folders(name, wanted.data_dir)),
        Config=reader.Config,
        is_here=lambda data_dir: reader.find(folders(name, data_dir)) is not None,
        in_files=True,
    )


DATA_SETS: dict[str, BuiltIn] = {
    "digits": BuiltIn(make=lambda _: from_arrays("digits", *digits.load(), outputs=10)),
    "mnist": BuiltIn(
        make=lambda wanted: from_arrays("mnist", *mnist.load(*folders("mnist", wanted.data_dir)), outputs=10),
        is_here=lambda data_dir: mnist.is_in(*folders("mnist", data_dir)),
        in_files=True,
        is_fetched=True,
    ),
    "cifar10": BuiltIn(
        make=_cifar10,
        is_here=lambda data_dir: cifar10.find(folders("cifar10", data_dir)) is not None,
        in_files=True,
        is_fetched=True,
    ),
    "synthetic": BuiltIn(
        make=lambda wanted: from_arrays("synthetic", *synthetic.make(wanted.seed), outputs=10), is_fixed=False
    ),
    "plays": BuiltIn(make=lambda wanted: plays.load(wanted.config), Config=plays.Config),
    "text": BuiltIn(
        make=lambda wanted: own.load(wanted.config, (wanted.beside, wanted.data_dir)), Config=own.Config, is_fixed=False
    ),
    "har": _read("har", har),
    "heart": _read("heart", heart),
    "parkinsons": _read("parkinsons", parkinsons),
}
