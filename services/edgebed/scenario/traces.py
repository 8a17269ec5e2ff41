"""A recorded bandwidth: a CSV file of times and rates that a link follows, again and again.

    # where it was recorded; lines that begin with # are skipped
    time_s,up_mbit,down_mbit
    0,4.2,18
    1,3.9,21.5
    2.5,,

The header says in what every column is counted, so that the cells are plain numbers. A row holds until the time of the
next one. The last row says where the trace begins anew, and nothing else: its rates may be left out.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from edgebed.scenario import units
from edgebed.scenario.choices import check_rate
from edgebed.scenario.plan import LinkChange
from edgebed.scenario.problems import Problem, Problems, show

SPACING_MIN_S = 0.01  # what changes faster than that cannot be followed
ROWS_MAX = 10_000
BYTES_MAX = 1 << 20
PROBLEMS_MAX = 5  # a wrong unit would be wrong in every row

TIME_UNITS = ("s", "ms")
HEADER_FORM = "time_s,up_mbit,down_mbit"
HEADER_PATTERN = rf"time_({'|'.join(TIME_UNITS)}),up_(\w+),down_(\w+)"


@dataclass(frozen=True)
class Trace:
    """What a file says."""

    path: Path
    """Absolute, so that it is found from anywhere."""
    changes: tuple[LinkChange, ...]
    """From 0 on; each with both rates."""
    period_s: float


@dataclass(frozen=True)
class _Cell:
    """A cell and where it stands."""

    text: str
    place: str
    """file:line:column"""

    def fail(self, message: str) -> ValueError:
        return ValueError(f"{self.place}: {message}")


def read_trace(path: Path) -> Trace:
    """The trace in a file; `Problems` with the first mistakes in it, each with file, line and column."""
    header, *rows = _rows(path)
    time_s, up_bit_s, down_bit_s = _header(header, path)
    if not 2 <= len(rows) <= ROWS_MAX:
        raise _problems(f"{path}: {len(rows):,} rows below the header; a trace has from 2 to {ROWS_MAX:,}")
    changes: list[LinkChange] = []
    wrong: list[str] = []
    before_s = -math.inf
    for number, row in enumerate(rows, start=1):
        try:
            if len(row) != 3:
                raise row[0].fail(f"{len(row)} cells; a row has 3: time, up, down")
            at_s = _time(row[0], time_s, before_s)
            before_s = at_s
            if number < len(rows) or any(cell.text for cell in row[1:]):
                up, down = _rate(row[1], up_bit_s), _rate(row[2], down_bit_s)
                changes.append(LinkChange(at_s=at_s, uplink_bit_s=up, downlink_bit_s=down))
        except ValueError as error:
            wrong.append(str(error))
            if len(wrong) == PROBLEMS_MAX:
                break
    if wrong:
        raise _problems(*wrong)
    return Trace(path.absolute(), tuple(changes[: len(rows) - 1]), before_s)


def _rows(path: Path) -> list[list[_Cell]]:
    """The cells of every line that is neither empty nor a remark; at least one line."""
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
        raise _problems(f"{path}: not UTF-8 text (byte {content[error.start]:#04x})") from None
    rows = [
        _cells(f"{path}:{number}", line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not rows:
        raise _problems(f"{path} is empty; a trace begins with a header, e.g. {HEADER_FORM}")
    return rows


def _cells(place: str, line: str) -> list[_Cell]:
    cells, column = [], 1
    for text in line.split(","):
        cells.append(_Cell(text.strip(), f"{place}:{column + len(text) - len(text.lstrip())}"))
        column += len(text) + 1
    return cells


def _header(row: list[_Cell], path: Path) -> tuple[Decimal, int, int]:
    """What 1 is in each column: seconds, bit/s, bit/s."""
    match = re.fullmatch(HEADER_PATTERN, ",".join(cell.text for cell in row))
    if match is None:
        form = f"a trace has three columns whose names say what they are counted in, e.g. {HEADER_FORM}"
        raise _problems(f"{row[0].place}: not the header of a trace: {show(','.join(c.text for c in row))}; {form}")
    for cell, unit in zip(row[1:], match.groups()[1:], strict=True):
        if unit not in units.RATES_BIT_S:
            raise _problems(f"{cell.place}: {_unit_text(unit)}")
    return units.DURATIONS_S[match[1]], units.RATES_BIT_S[match[2]], units.RATES_BIT_S[match[3]]


def _unit_text(unit: str) -> str:
    """What is wrong with the unit of a column: what would be wrong with a rate in it."""
    try:
        units.parse_rate(f"1{unit}")
    except ValueError as error:
        return str(error)
    return f"not a unit: {unit}"


def _time(cell: _Cell, unit_s: Decimal, before_s: float) -> float:
    at_s = float(_number(cell, "a time") * unit_s)
    if before_s == -math.inf:
        if at_s != 0.0:
            raise cell.fail(f"the first row is at {cell.text}; a trace begins at 0")
    elif at_s - before_s < SPACING_MIN_S * (1 - 1e-9):
        least = units.format_duration(SPACING_MIN_S)
        raise cell.fail(f"{cell.text} is not at least {least} after the row before it; times increase")
    return at_s


def _rate(cell: _Cell, unit_bit_s: int) -> int:
    rate_bit_s = round(_number(cell, "a rate") * unit_bit_s)
    try:
        return check_rate(rate_bit_s)
    except ValueError as error:
        raise cell.fail(str(error)) from None


def _number(cell: _Cell, what: str) -> Decimal:
    if not re.fullmatch(units.NUMBER, cell.text):
        unit = " (its unit is in the header)" if re.match(units.NUMBER, cell.text) else ""
        raise cell.fail(f"not {what}: {show(cell.text)}; a plain number such as 0.25{unit}")
    return Decimal(cell.text)


def _problems(*messages: str) -> Problems:
    return Problems(Problem((), message) for message in messages)
