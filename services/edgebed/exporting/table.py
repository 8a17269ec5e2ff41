"""A tidy table on one subject of a run, independent of the kind of file it is written to.

    columns: run, trial, then the table's own; a row an observation

Shapes: R rows of one trial.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from edgebed.running.results import AnyTrial, Run

Kind = Literal["text", "integer", "number", "yes or no"]
Values = Sequence[Any] | NDArray[Any]
"""(R,) values of one column; None: not measured."""
Filled = Sequence[Values]
"""The values of all columns of a table, in their order."""


class Column(NamedTuple):
    """One column; its unit is at the end of its name."""

    name: str
    kind: Kind
    says: str


KEYS = (
    Column("run", "text", "`<scenario>/<number>`."),
    Column("trial", "text", "The variant."),
)
"""Columns that every table begins with."""


class ExportTable(NamedTuple):
    """A table's subject, and how it is filled."""

    name: str
    says: str
    columns: tuple[Column, ...]
    """Columns after KEYS."""
    fill: Callable[[Run, Any], Filled]
    """It is given a run that has the table, and a trial of it."""
    of_shards: bool = False
    """Whether only runs have the table in which workers had shards of the model."""

    @property
    def head(self) -> tuple[Column, ...]:
        """All columns."""
        return (*KEYS, *self.columns)

    def rows_of(self, run: Run, trial: AnyTrial) -> tuple[int, Filled]:
        """R, the number of rows, and the values of all columns but KEYS."""
        filled = self.fill(run, trial)
        assert len(filled) == len(self.columns)
        sizes = {len(values) for values in filled}
        assert len(sizes) == 1
        return sizes.pop(), filled


def by_rows(rows: Iterable[Sequence[Any]], num_columns: int) -> Filled:
    """The columns of rows that were gathered one by one."""
    return list(zip(*rows, strict=True)) or [()] * num_columns


def joined(texts: Iterable[str]) -> str:
    """Several sentences in one cell."""
    return "; ".join(texts)
