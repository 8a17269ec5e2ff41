"""A recorded availability: a CSV file of the times at which devices were there.

    # source: where it was recorded; family, source and licence are told of, as of a trace
    device,from_s,until_s
    a,0,35.5
    a,50,120
    b,10,90

A row says that a device was there from one time to another, of the same clock for all; at all other times it was not.
So the public ones have it, too: a line for each stretch of a device. The header says which column is which and in what
times are counted; other columns are passed over. Rows of a device are in the order of time.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgebed.core import units
from edgebed.scenario.traces.cells import Cell, about_of, lines_of, number_in, read_rows, rows_of
from edgebed.scenario.traces.trace import facts_of, problems, read_bytes

FORM = "device,from_s,until_s"
BYTES_MAX = 16 << 20
COLUMNS = ("device", "from", "until")

Stretch = tuple[float, float]
"""Time in seconds from which a device is there, and time at which it is gone."""


@dataclass(frozen=True)
class Availability:
    """What a file says of devices."""

    path: Path
    """Absolute path, so that the file is found from anywhere."""
    devices: Mapping[str, tuple[Stretch, ...]]
    """When each device is there, in the order in which the file first names them."""
    sha256: str = field(default="", compare=False)
    """Digest of the file's bytes."""
    about: Mapping[str, str] = field(default_factory=dict, compare=False)
    """What the file says of itself."""

    def facts(self) -> dict[str, str]:
        """Return what a run's manifest has of the file."""
        return facts_of(self.path, self.about, self.sha256)


def read_availability(path: Path) -> Availability:
    """Read an availability; `Problems` with the first mistakes in it, each with file, line and column."""
    content = read_bytes(path, BYTES_MAX, "16 MiB; take fewer devices")
    lines = lines_of(path, content)
    header, *rows = rows_of(path, lines, f"an availability begins with a header, e.g. {FORM}")
    try:
        columns = _columns(header)
    except ValueError as error:
        raise problems(str(error)) from None
    if not rows:
        raise problems(f"{path}: no rows below the header; a row has a device and when it was there")
    devices: dict[str, list[Stretch]] = {}
    read_rows(rows, header, lambda row: _add(devices, row, columns))
    found = {device: tuple(stretches) for device, stretches in devices.items()}
    return Availability(path.absolute(), found, hashlib.sha256(content).hexdigest(), about_of(lines))


def _columns(header: list[Cell]) -> dict[str, tuple[int, float]]:
    """Return where each column stands, and the seconds of 1 in it."""
    columns: dict[str, tuple[int, float]] = {}
    for index, cell in enumerate(header):
        if cell.text.lower() == "device":
            columns["device"] = (index, 0.0)
        elif match := re.fullmatch(rf"(from|until)_({'|'.join(units.DURATIONS_S)})", cell.text.lower()):
            columns[match[1]] = (index, float(units.DURATIONS_S[match[2]]))
    if missing := [name for name in COLUMNS if name not in columns]:
        known = ", ".join(units.DURATIONS_S)
        raise header[0].fail(f"no column of {' and '.join(missing)}; e.g. {FORM}, with times in {known}")
    return columns


def _add(devices: dict[str, list[Stretch]], row: list[Cell], columns: Mapping[str, tuple[int, float]]) -> None:
    """Add a row to its device's; ValueError with what is wrong in it."""
    device, begin, end = (row[columns[name][0]] for name in COLUMNS)
    if not device.text:
        raise device.fail("no device")
    from_s, until_s = (
        float(number_in(cell, "a time")) * columns[name][1] for name, cell in (("from", begin), ("until", end))
    )
    if until_s <= from_s:
        raise end.fail(f"{end.text} is not after {begin.text}, from which {device.text} is there")
    before = devices.setdefault(device.text, [])
    if before and from_s < before[-1][1]:
        raise begin.fail(f"{begin.text} is before the end of {device.text}'s row before; its rows go on in time")
    before.append((from_s, until_s))
