"""A recorded bandwidth: a CSV file of times and rates that a link follows, again and again.

    # where it was recorded; lines that begin with # are skipped
    time_s,up_mbit,down_mbit
    0,4.2,18
    1,3.9,21.5
    2.5,,

The header says which column is which and in what it is counted, so that the cells are plain numbers; other columns are
passed over. A row holds until the time of the next one. The last row says where the trace is repeated, and nothing
else: its rates may be left out.
"""

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from edgebed.core import units
from edgebed.core.plan import LinkChange
from edgebed.core.quantities import count_text
from edgebed.scenario.choices import RATE_MIN_BIT_S, check_rate
from edgebed.scenario.problems import Problem, Problems, show

SPACING_MIN_S = 0.1  # whether a kernel follows what changes faster cannot be read back
ROWS_MAX = 10_000
BYTES_MAX = 1 << 20
PROBLEMS_MAX = 5  # a wrong unit would be wrong in every row

COLUMNS = ("time", "up", "down")
TIME_UNITS_S = {"s": units.DURATIONS_S["s"], "ms": units.DURATIONS_S["ms"]}
RATE_UNITS_BIT_S = {unit: Decimal(rate) for unit, rate in units.RATES_BIT_S.items()}
HEADER_FORM = "time_s,up_mbit,down_mbit"


@dataclass(frozen=True)
class Trace:
    """A recorded trace, read from a file."""

    path: Path
    """Absolute path, so that the file is found from anywhere."""
    changes: tuple[LinkChange, ...]
    """Changes of the link from 0 on; each with both rates."""
    period_s: float


@dataclass(frozen=True)
class _Cell:
    """A cell and where it stands."""

    text: str
    place: str
    """Place of the cell as file:line:column."""

    def fail(self, message: str) -> ValueError:
        return ValueError(f"{self.place}: {message}")


@dataclass(frozen=True)
class _Column:
    """Where a quantity stands in every row."""

    index: int
    unit: Decimal
    """Value of 1 in the column: seconds or bit/s."""


def read_trace(path: Path) -> Trace:
    """Read the trace in a file; `Problems` with the first mistakes in it, each with file, line and column."""
    header, *rows = _rows(path)
    try:
        columns = _columns(header)
    except ValueError as error:
        raise _problems(str(error)) from None
    if not 2 <= len(rows) <= ROWS_MAX:
        raise _problems(f"{path}: {len(rows):,} rows below the header; a trace has from 2 to {ROWS_MAX:,}")
    changes: list[LinkChange] = []
    wrong: list[str] = []
    at_s = -math.inf
    for number, row in enumerate(rows, start=1):
        try:
            if len(row) != len(header):
                names = ", ".join(cell.text for cell in header)
                raise row[0].fail(f"{count_text(len(row), 'cell')}; a row has {len(header)}: {names}")
            time, up, down = (row[columns[name].index] for name in COLUMNS)
            before_s, at_s = at_s, float(_number(time, "a time") * columns["time"].unit)
            _check_time(time, at_s, before_s, is_first=number == 1)
            if number < len(rows) or up.text or down.text:
                up_bit_s, down_bit_s = _rate(up, columns["up"].unit), _rate(down, columns["down"].unit)
                changes.append(LinkChange(at_s=at_s, uplink_bit_s=up_bit_s, downlink_bit_s=down_bit_s))
        except ValueError as error:
            wrong.append(str(error))
            if len(wrong) == PROBLEMS_MAX:
                break
    if wrong:
        raise _problems(*wrong)
    return Trace(path.absolute(), tuple(changes[: len(rows) - 1]), at_s)


def _rows(path: Path) -> list[list[_Cell]]:
    """Return the cells of every line that is neither empty nor a remark; at least one line."""
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise _problems(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise _problems(f"not the name of a file: {show(str(path))}") from None
    if len(content) > BYTES_MAX:
        raise _problems(f"{path} is larger than 1 MiB; a trace has up to {ROWS_MAX:,} rows")
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise _problems(f"{path}: not UTF-8 text (byte {content[error.start]:#04x}); save it as UTF-8") from None
    rows = [
        _cells(f"{path}:{number}", line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not rows:
        raise _problems(f"{path} is empty; a trace begins with a header, e.g. {HEADER_FORM}")
    return rows


def _cells(place: str, line: str) -> list[_Cell]:
    try:
        (texts,) = csv.reader([line], skipinitialspace=True)
    except csv.Error as error:
        raise _problems(f"{place}: not a row of a CSV file: {error}") from None
    cells, begin = [], 0
    for text in map(str.strip, texts):
        begin = max(begin, line.find(text, begin))  # after quotes and spaces
        cells.append(_Cell(text, f"{place}:{begin + 1}"))
        begin += len(text) + 1
    return cells


def _columns(header: list[_Cell]) -> dict[str, _Column]:
    """Return where time, up and down stand, by the names of the columns."""
    text = ",".join(cell.text for cell in header)
    if separator := re.search(r"[;\t|]", text):
        excel = 'Excel: save as "CSV UTF-8 (comma delimited)", decimals with a point'
        raise header[0].fail(f"columns are separated by commas here; found {separator[0]!r} ({excel})")
    columns: dict[str, _Column] = {}
    others = []
    for index, cell in enumerate(header):
        match = re.fullmatch(rf"({'|'.join(COLUMNS)})(?:_(\w+))?", cell.text, re.IGNORECASE | re.ASCII)
        if match is None:
            others.append(show(cell.text))
            continue
        name = match[1].lower()
        if name in columns:
            raise cell.fail(f"a second column of {name}; a trace has one")
        if match[2] is None:
            raise cell.fail(f"units are missing: {HEADER_FORM}")
        columns[name] = _Column(index, _unit(cell, name, match[2]))
    missing = [name for name in COLUMNS if name not in columns]
    if len(missing) == len(COLUMNS):
        form = f"a trace has three columns whose names say what they are counted in, e.g. {HEADER_FORM}"
        raise header[0].fail(f"not the header of a trace: {show(text)}; {form}")
    if missing:
        unknown = f"; unknown: {', '.join(others)}" if others else ""
        raise header[0].fail(f"no column of {' and '.join(missing)}, e.g. {HEADER_FORM}{unknown}")
    return columns


def _unit(cell: _Cell, name: str, unit: str) -> Decimal:
    """Return the value of 1 in a column."""
    known: Mapping[str, Decimal] = TIME_UNITS_S if name == "time" else RATE_UNITS_BIT_S
    if unit.lower() in known:
        return known[unit.lower()]
    meant = "" if name == "time" else re.sub(r"(?i)(?<=[kmgi])(?:bps|bits?ps|bits|b)?$", "bit", unit).lower()
    likely = [meant] if meant in known and "B" not in unit else known  # a B is a byte
    raise cell.fail(f"column {cell.text}: {unit!r} is no unit; write {' or '.join(f'{name}_{one}' for one in likely)}")


def _check_time(cell: _Cell, at_s: float, before_s: float, *, is_first: bool) -> None:
    if is_first and at_s != 0.0:
        raise cell.fail(f"the first row is at {cell.text}; a trace begins at 0")
    if at_s - before_s < SPACING_MIN_S * (1 - 1e-9):
        least = units.format_duration(SPACING_MIN_S)
        message = f"{cell.text} is not at least {least} after the row before it; times increase"
        raise cell.fail(f"{message}, and faster changes cannot be checked")


def _rate(cell: _Cell, unit_bit_s: Decimal) -> int:
    rate_bit_s = round(_number(cell, "a rate") * unit_bit_s)
    try:
        return check_rate(rate_bit_s)
    except ValueError as error:
        least = f"{RATE_MIN_BIT_S / unit_bit_s:f}, which is {units.format_rate(RATE_MIN_BIT_S)}"
        raise cell.fail(f"{error}{'' if rate_bit_s else f'; for an outage write {least}'}") from None


def _number(cell: _Cell, what: str) -> Decimal:
    if not re.fullmatch(units.NUMBER, cell.text):
        unit = " (its unit is in the header)" if re.match(units.NUMBER, cell.text) else ""
        raise cell.fail(f"not {what}: {show(cell.text)}; a plain number such as 0.25{unit}")
    return Decimal(cell.text)


def _problems(*messages: str) -> Problems:
    return Problems(Problem((), message) for message in messages)
