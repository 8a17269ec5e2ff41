"""Rows that need no run, such as the bytes of an encoded gradient: computed once, and stored beside a paper's page.

One line of JSON for each row: its value, how long it took and what computed it. A value counts, whatever code of
edgebed computed it, if the row's description is the same; like a run it is computed anew without `--resume`.
"""

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.core.host import facts
from edgebed.core.imports import reason
from edgebed.core.package import fingerprint
from edgebed.core.quantities import count_text
from edgebed.learning.data_sets.registry import load_data
from edgebed.studies.json_lines import read_lines, write_lines
from edgebed.studies.papers.paper import Paper, Row

FILE = "computed.jsonl"


class ComputedRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the file: a row's value."""

    row: str
    what: str
    """The row's description."""
    value: float | None
    wall_s: float
    """Seconds that computing the row took; what rows have in common counts for the first."""
    code: str
    """Fingerprint of edgebed's sources."""
    versions: dict[str, str]
    data: dict[str, str] = {}
    """What must be said of the data that the row's measure reads, by data set."""


class AnalyticRows:
    """The values in one file, by row."""

    def __init__(self, paper: Paper, path: Path) -> None:
        """Read the file, if there is one; EdgebedError where one of its lines is broken."""
        self.rows = {name: row for name, row in paper.rows.items() if not row.cells}
        """Rows of the paper that need no run, in its order."""
        self.path = path
        self._kept = {kept.row: kept for kept in read_lines(path, _row, "no row that was computed")}

    @property
    def values(self) -> Mapping[str, ComputedRow]:
        """The value of each row that has one that counts."""
        return {
            name: kept for name, row in self.rows.items() if (kept := self._kept.get(name)) and kept.what == row.what
        }

    def compute(self, chosen: Sequence[str], tell: Callable[[str], None], *, resume: bool) -> list[str]:
        """Compute the chosen rows that need no run; values that exist are reused if `resume`.

        Computed values are written, whatever becomes of the rest. Returns what went wrong, a sentence each. What
        one row lacks, such as data, the others will lack too: it ends the computing.
        """
        wanted = [name for name in chosen if name in self.rows and not (resume and name in self.values)]
        if not wanted:
            return []
        tell(f"computing {count_text(len(wanted), 'row')} that {'needs' if len(wanted) == 1 else 'need'} no run")
        code, versions = fingerprint(), facts()["versions"]
        try:
            for name in wanted:
                began_s = time.monotonic()
                value = _value(name, self.rows[name])
                self._kept[name] = ComputedRow(
                    row=name,
                    what=self.rows[name].what,
                    value=value,
                    wall_s=round(time.monotonic() - began_s, 3),
                    code=code,
                    versions=versions,
                    data=_said_of(self.rows[name].data),
                )
        except EdgebedError as error:
            left = len(wanted) - wanted.index(name) - 1
            return [f"{error}" + (f"; {count_text(left, 'more row')} not computed" if left else "")]
        finally:
            self.write()
        return []

    def write(self) -> None:
        """All lines that count, in the paper's order; InfrastructureError where that is impossible."""
        write_lines(self.path, self.values.values())


@functools.cache
def _said_of(data: str) -> dict[str, str]:
    """What must be said of a data set, by its name."""
    note = load_data(data, seed=0).note if data else ""
    return {data: note} if note else {}


def _value(name: str, row: Row) -> float | None:
    try:
        value = row.measure({})
    except EdgebedError as error:
        raise ScenarioError(f"row {name}: {error}") from error
    except Exception as error:  # a measure is the user's own code
        raise ScenarioError(f"row {name}: its measure failed: {reason(error)}") from error
    return value if value is not None and math.isfinite(value) else None


def _row(line: bytes) -> ComputedRow:
    return msgspec.json.decode(line, type=ComputedRow)
