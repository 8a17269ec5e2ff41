"""A recorded bandwidth: a CSV file of times and rates that a link follows, again and again.

    # family: LTE
    # source: where it was recorded; lines that begin with # are remarks, of which family, source and licence are told
    time_s,up_mbit,down_mbit
    0,4.2,18
    1,3.9,21.5
    2.5,,

The header says which column is which and in what it is counted, so that the cells are plain numbers; other columns are
passed over. A trace may have one direction alone: then it has no other columns. A row holds until the time of the next
one. The last row says where the trace is repeated, and nothing else: its rates may be left out.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from edgebed.core import units
from edgebed.core.planned.link import RATE_MIN_BIT_S, LinkChange, check_rate
from edgebed.scenario.mistakes.problems import show
from edgebed.scenario.traces.cells import Cell, about_of, lines_of, number_in, read_rows, rows_of
from edgebed.scenario.traces.trace import ROWS_MAX, SPACING_MIN_S, Trace, problems, read_bytes

BYTES_MAX = 1 << 20

DIRECTIONS = {"up": "uplink_bit_s", "down": "downlink_bit_s"}
COLUMNS = ("time", *DIRECTIONS)
TIME_UNITS_S = {"s": units.DURATIONS_S["s"], "ms": units.DURATIONS_S["ms"]}
RATE_UNITS_BIT_S = {unit: Decimal(rate) for unit, rate in units.RATES_BIT_S.items()}
HEADER_FORM = "time_s,up_mbit,down_mbit"


@dataclass(frozen=True)
class _Column:
    """Where a quantity stands in every row."""

    index: int
    unit: Decimal
    """Value of 1 in the column: seconds or bit/s."""


def read_trace(path: Path) -> Trace:
    """Read the trace in a file; `Problems` with the first mistakes in it, each with file, line and column."""
    content = read_bytes(path, BYTES_MAX, f"1 MiB; a trace has up to {ROWS_MAX:,} rows")
    lines = lines_of(path, content)
    header, *rows = rows_of(path, lines, f"a trace begins with a header, e.g. {HEADER_FORM}")
    try:
        columns = _columns(header)
    except ValueError as error:
        raise problems(str(error)) from None
    if not 2 <= len(rows) <= ROWS_MAX:
        raise problems(f"{path}: {len(rows):,} rows below the header; a trace has from 2 to {ROWS_MAX:,}")
    changes: list[LinkChange] = []
    times_s = [-math.inf]

    def read(row: list[Cell]) -> None:
        time = row[columns["time"].index]
        times_s.append(float(number_in(time, "a time") * columns["time"].unit))
        _check_time(time, times_s[-1], times_s[-2], is_first=row is rows[0])
        if rates := _rates(row, columns, is_last=row is rows[-1]):
            changes.append(LinkChange(at_s=times_s[-1], **rates))

    read_rows(rows, header, read)
    sha256 = hashlib.sha256(content).hexdigest()
    return Trace(path.absolute(), tuple(changes[: len(rows) - 1]), times_s[-1], sha256, about_of(lines))


def _columns(header: list[Cell]) -> dict[str, _Column]:
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
        raise header[0].fail(f"not the header of a trace; {form}")  # it may be a file of secrets: nothing is quoted
    if missing and (others or "time" in missing or len(missing) > 1):
        unknown = f"; unknown: {', '.join(others)}" if others else ""
        raise header[0].fail(f"no column of {' and '.join(missing)}, e.g. {HEADER_FORM}{unknown}")
    return columns


def _unit(cell: Cell, name: str, unit: str) -> Decimal:
    """Return the value of 1 in a column."""
    known: Mapping[str, Decimal] = TIME_UNITS_S if name == "time" else RATE_UNITS_BIT_S
    if unit.lower() in known:
        return known[unit.lower()]
    meant = "" if name == "time" else re.sub(r"(?i)(?<=[kmgi])(?:bps|bits?ps|bits|b)?$", "bit", unit).lower()
    likely = [meant] if meant in known and "B" not in unit else known  # a B is a byte
    raise cell.fail(f"column {cell.text}: {unit!r} is no unit; write {' or '.join(f'{name}_{one}' for one in likely)}")


def _rates(row: list[Cell], columns: Mapping[str, _Column], *, is_last: bool) -> dict[str, int]:
    """Return the rates of a row by the names that a change of a link has for them; the last may have none."""
    cells = {name: row[columns[name].index] for name in DIRECTIONS if name in columns}
    if is_last and not any(cell.text for cell in cells.values()):
        return {}
    return {DIRECTIONS[name]: _rate(cell, columns[name].unit) for name, cell in cells.items()}


def _check_time(cell: Cell, at_s: float, before_s: float, *, is_first: bool) -> None:
    if is_first and at_s != 0.0:
        raise cell.fail(f"the first row is at {cell.text}; a trace begins at 0")
    if at_s - before_s < SPACING_MIN_S * (1 - 1e-9):
        least = units.format_duration(SPACING_MIN_S)
        message = f"{cell.text} is not at least {least} after the row before it; times increase"
        raise cell.fail(f"{message}, and faster changes cannot be checked")


def _rate(cell: Cell, unit_bit_s: Decimal) -> int:
    rate_bit_s = round(number_in(cell, "a rate") * unit_bit_s)
    try:
        return check_rate(rate_bit_s)
    except ValueError as error:
        least = f"{RATE_MIN_BIT_S / unit_bit_s:f}, which is {units.format_rate(RATE_MIN_BIT_S)}"
        raise cell.fail(f"{error}{'' if rate_bit_s else f'; for an outage write {least}'}") from None
