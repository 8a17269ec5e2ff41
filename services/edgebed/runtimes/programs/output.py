r"""What a program says: kept as a file of bounded size, and searched for measures line by line.

    its output --> OutputLog      NODE.log: the first part, and the last one
              \--> OutputReader   numbers of lines that match an expression, or are JSON objects; lines waited for

Both take bytes as they come, and make the same of them however they are cut. A line ends with a line feed, or with a
carriage return, as those of progress bars do.
"""

import json
import math
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

KEPT_BYTES = 32_000_000
"""Bytes that are kept of an output's beginning, and of its end."""
COPY_BYTES = 1 << 20
LINE_BYTES_MAX = 1 << 16
"""Bytes of a line that are searched; the rest of a longer one is not."""
MEASURES_S_MAX = 1_000
"""Measures that are taken in a second, and the last of all; the rest are counted."""
_LINE_ENDS = re.compile(rb"[\r\n]")


class OutputLog:
    """The file that keeps a program's output, with what its later lives say. OSError where it cannot be written.

    What exceeds its first part goes to a second file, `NODE.log.end`, which is written round and round; `close` appends
    that to the first.
    """

    def __init__(self, path: Path, kept_bytes: int = KEPT_BYTES) -> None:
        """`kept_bytes`: of the beginning, and as many of the end."""
        self.kept_bytes = kept_bytes
        self.bytes = 0
        """Bytes that have come."""
        self._end_path = path.with_name(f"{path.name}.end")
        self._file = path.open("wb", buffering=0)
        self._end = self._end_path.open("w+b", buffering=0)

    @property
    def left_out_bytes(self) -> int:
        """Bytes that are in neither part."""
        return max(0, self.bytes - 2 * self.kept_bytes)

    def write(self, data: bytes) -> None:
        """Keep what has come, as far as it is kept."""
        while data:
            file, room = self._file, self.kept_bytes - self.bytes
            if room <= 0:
                file, place = self._end, self.bytes % self.kept_bytes
                file.seek(place)
                room = self.kept_bytes - place
            written = file.write(data[:room])
            self.bytes += written
            data = data[written:]

    def close(self) -> None:
        """Put both parts together, with a line between them that says how much was left out; once."""
        if self._file.closed:
            return
        if self.left_out_bytes:
            self._file.write(f"\n[edgebed: {self.left_out_bytes:,} bytes were left out here]\n".encode())
            self._end.seek(self.bytes % self.kept_bytes)
            shutil.copyfileobj(self._end, self._file, COPY_BYTES)
            self._end.truncate(self.bytes % self.kept_bytes)
        self._end.seek(0)
        shutil.copyfileobj(self._end, self._file, COPY_BYTES)
        self._end.close()
        self._end_path.unlink()
        self._file.close()


class Line(NamedTuple):
    """A line of an output in which something was found."""

    measured: dict[str, float]
    """The value of each measure in it."""
    seen: tuple[str, ...] = ()
    """The lines waited for that it is."""


class OutputReader:
    """Finds measures in the output of one life of a program, and lines that are waited for. Pure."""

    def __init__(self, measures: Mapping[str, str], awaited: Mapping[str, str], now: Callable[[], float]) -> None:
        """`measures`: the expression of each, whose first group is the number; empty: a value of JSON objects.

        `awaited`: the expression of each line that is waited for; `now`: seconds of any clock.
        """
        self.dropped = 0
        """Measures beyond those that are taken in a second."""
        self.unusable = 0
        """Values that are no finite numbers."""
        self._expressions = {name: re.compile(pattern) for name, pattern in measures.items() if pattern}
        self._keys = [name for name, pattern in measures.items() if not pattern]
        self._awaited = {name: re.compile(pattern) for name, pattern in awaited.items()}
        self._now = now
        self._second = -math.inf
        self._taken = 0
        """Measures taken in that second."""
        self._untaken: dict[str, float] = {}
        """The last value of each measure that was not taken, and of which none was since."""
        self._line = bytearray()
        """Beginning of the line that has not ended."""

    def read(self, data: bytes) -> list[Line]:
        """The lines that have ended, and in which something was found."""
        *ended, begun = _LINE_ENDS.split(data)
        found = [line for part in ended if (line := self._ended(part))]
        self._add(begun)
        return found

    def close(self) -> list[Line]:
        """What ends with the output: the last line, if something was found in it, and what a measure came to."""
        found = self.read(b"\n")
        self.dropped -= len(self._untaken)
        return [*found, Line(self._untaken)] if self._untaken else found

    def told(self, measured: dict[str, float]) -> list[Line]:
        """What was told elsewhere than in the output, as a line of it would have been, if there is room for it."""
        admitted = self._admitted(measured)
        return [Line(admitted)] if admitted else []

    def _add(self, part: bytes) -> None:
        self._line += part[: LINE_BYTES_MAX - len(self._line)]

    def _ended(self, part: bytes) -> Line | None:
        self._add(part)
        text = self._line.decode(errors="replace")
        self._line.clear()
        if not text:
            return None
        seen = tuple(name for name, expression in self._awaited.items() if expression.search(text))
        measured = self._admitted(dict(self._usable(self._values(text))))
        return Line(measured, seen) if measured or seen else None

    def _values(self, text: str) -> Iterator[tuple[str, object]]:
        """Yield what stands in a line where measures are looked for."""
        for name, expression in self._expressions.items():
            if found := expression.search(text):
                yield name, found[1]
        if self._keys and text.lstrip().startswith("{"):
            try:
                values = json.loads(text)
            except (ValueError, RecursionError):  # a line that only looks like it
                return
            yield from ((name, values[name]) for name in self._keys if name in values)

    def _usable(self, values: Iterable[tuple[str, object]]) -> Iterator[tuple[str, float]]:
        for name, value in values:
            number = math.nan
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                with suppress(ValueError, OverflowError):
                    number = float(value)
            if math.isfinite(number):
                yield name, number
            else:
                self.unusable += 1

    def _admitted(self, measured: dict[str, float]) -> dict[str, float]:
        """The measures of a line if there is room for all of them in this second."""
        if not measured:
            return measured
        if (second := math.floor(self._now())) != self._second:
            self._second, self._taken = second, 0
        if self._taken + len(measured) > MEASURES_S_MAX:
            self.dropped += len(measured)
            self._untaken |= measured
            return {}
        self._taken += len(measured)
        self._untaken = {name: value for name, value in self._untaken.items() if name not in measured}
        return measured
