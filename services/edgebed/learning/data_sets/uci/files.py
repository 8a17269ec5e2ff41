"""Finding and reading files of the UCI machine learning repository, which a user puts into the data directory."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.core.host import in_container

MISSING = ("", "?")
"""What stands where a value is missing."""
Rows = list[dict[str, str]]


def first(folders: Sequence[Path], *names: str) -> Path | None:
    """Return the first folder that has all these files; None if none has."""
    return next((folder for folder in folders if all((folder / name).is_file() for name in names)), None)


def absent(name: str, wanted: str, page: str, folders: Sequence[Path]) -> ScenarioError:
    """Return the error of a data set whose files are nowhere: what was looked for, and where it comes from."""
    looked_in = " and ".join(map(str, folders))
    if in_container():
        remedy = f"Put it into a folder `{name}` and run with EDGEBED_DATA_DIR=/folder/above/it docker compose up"
    else:
        remedy = f"Put it into {folders[0]}, or set EDGEBED_DATA_DIR to the folder above `{name}`"
    return ScenarioError(
        f"data: {name}: found no {wanted}; looked in {looked_in}. It is not downloaded by itself: {page} has it "
        f"(CC BY 4.0). {remedy}."
    )


def rows(path: Path, columns: Sequence[str], heading: bool = False) -> Rows:
    """Return the lines of a file of comma-separated values, each by column; ScenarioError where one is otherwise.

    `heading`: the first line has the names of the columns.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [[cell.strip() for cell in cells] for cells in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if heading and (not lines or lines[0] != list(columns)):
        raise ScenarioError(f"{path}: its first line is not the heading {','.join(columns)}.")
    for number, cells in enumerate(lines, start=1):
        if cells and len(cells) != len(columns):
            raise ScenarioError(f"{path}: line {number} has {len(cells)} values instead of {len(columns)}.")
    found = [dict(zip(columns, cells, strict=True)) for cells in lines[heading:] if cells]
    if not found:
        raise ScenarioError(f"{path}: has no line of values.")
    return found


def numbers(path: Path, lines: Rows, column: str) -> NDArray[np.float64]:
    """Return the (N,) numbers of a column, NaN where one is missing."""
    try:
        return np.array([math.nan if line[column] in MISSING else float(line[column]) for line in lines])
    except ValueError as error:
        raise ScenarioError(f"{path}: column {column}: {error}.") from error


def standardised(values: NDArray[np.floating], train: NDArray[np.floating]) -> NDArray[np.float64]:
    """(N, K): each column to mean 0 and deviation 1 of the training examples; what is missing becomes 0, the mean."""
    known = np.ma.masked_invalid(train.astype(np.float64))
    mean, deviation = known.mean(axis=0).filled(0.0), known.std(axis=0).filled(1.0)
    scaled: NDArray[np.float64] = np.nan_to_num((values - mean) / np.where(deviation > 0.0, deviation, 1.0))
    return scaled
