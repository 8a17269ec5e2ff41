"""Cells of the CSV files that a scenario names, each with its place; and what remarks say of such a file."""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from edgebed.core import units
from edgebed.core.quantities import count_text
from edgebed.scenario.mistakes.problems import show
from edgebed.scenario.traces.trace import ABOUT, problems

PROBLEMS_MAX = 5  # a wrong unit would be wrong in every row


@dataclass(frozen=True)
class Cell:
    """A cell and where it stands."""

    text: str
    place: str
    """Place of the cell as file:line:column."""

    def fail(self, message: str) -> ValueError:
        """Return a mistake in the cell."""
        return ValueError(f"{self.place}: {message}")


def lines_of(path: Path, content: bytes) -> list[str]:
    """Return the lines of a text; `Problems` where it is none."""
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise problems(f"{path}: not UTF-8 text (byte {content[error.start]:#04x}); save it as UTF-8") from None


def rows_of(path: Path, lines: Iterable[str], form: str) -> list[list[Cell]]:
    """Return the cells of every line that is neither empty nor a remark; at least one line."""
    rows = [
        _cells(f"{path}:{number}", line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not rows:
        raise problems(f"{path} is empty; {form}")
    return rows


def read_rows(rows: Sequence[list[Cell]], header: list[Cell], read: Callable[[list[Cell]], None]) -> None:
    """Have each row read that is as long as the header; `Problems` with the first mistakes, which are ValueErrors."""
    wrong: list[str] = []
    for row in rows:
        try:
            _check_width(row, header)
            read(row)
        except ValueError as error:
            wrong.append(str(error))
            if len(wrong) == PROBLEMS_MAX:
                break
    if wrong:
        raise problems(*wrong)


def about_of(lines: Iterable[str]) -> dict[str, str]:
    """Return what remarks say of a file, by the words of `ABOUT`."""
    found = (re.fullmatch(rf"# *({'|'.join(ABOUT)}): *(.*\S) *", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def number_in(cell: Cell, what: str) -> Decimal:
    """Return the number in a cell; ValueError where there is none."""
    if not re.fullmatch(units.NUMBER, cell.text):
        unit = " (its unit is in the header)" if re.match(units.NUMBER, cell.text) else ""
        raise cell.fail(f"not {what}: {show(cell.text)}; a plain number such as 0.25{unit}")
    return Decimal(cell.text)


def _check_width(row: list[Cell], header: list[Cell]) -> None:
    if len(row) != len(header):
        names = ", ".join(cell.text for cell in header)
        raise row[0].fail(f"{count_text(len(row), 'cell')}; a row has {len(header)}: {names}")


def _cells(place: str, line: str) -> list[Cell]:
    try:
        (texts,) = csv.reader([line], skipinitialspace=True)
    except csv.Error as error:
        raise problems(f"{place}: not a row of a CSV file: {error}") from None
    cells, begin = [], 0
    for text in map(str.strip, texts):
        begin = max(begin, line.find(text, begin))  # after quotes and spaces
        cells.append(Cell(text, f"{place}:{begin + 1}"))
        begin += len(text) + 1
    return cells
