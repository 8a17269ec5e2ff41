"""Tables as CSV: a line a row, UTF-8, every digit of a number; an empty cell: not measured, or no text."""

import csv
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from edgebed.exporting.subjects import TABLES, tables_of
from edgebed.exporting.table import ExportTable, Kind, Values
from edgebed.running.results import AnyTrial, Run

SUFFIX = ".csv"
WORDS = {True: "true", False: "false"}


def is_ours(path: Path) -> bool:
    """Whether an export may have written this file."""
    return str(path) in {f"{table.name}{SUFFIX}" for table in TABLES}


def write(run: Run, trials: Sequence[AnyTrial], folder: Path) -> None:
    """Write a file for each table."""
    for table in tables_of(run):
        with (folder / f"{table.name}{SUFFIX}").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow([column.name for column in table.head])
            for trial in trials:
                writer.writerows(_rows(table, run, trial))


def _rows(table: ExportTable, run: Run, trial: AnyTrial) -> Iterator[tuple[Any, ...]]:
    _, filled = table.rows_of(run, trial)
    cells = (_cells(values, column.kind) for column, values in zip(table.columns, filled, strict=True))
    return zip(repeat(run.folder.name), repeat(trial.name), *cells, strict=False)


def _cells(values: Values, kind: Kind) -> Sequence[Any]:
    """Values as the csv module is to write them."""
    cells = values.tolist() if isinstance(values, np.ndarray) else list(values)
    match kind:
        case "yes or no":
            return [None if cell is None else WORDS[cell] for cell in cells]
        case "number":
            return [None if cell is None else float(cell) for cell in cells]
        case _:
            return cells
