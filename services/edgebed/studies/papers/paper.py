"""The classes with which a paper is declared.

    Paper ---> tables ---> rows: what the paper says | how it is measured | what would confirm or contradict it
          ---> cells: what has to be run for that, each a variant of an ordinary scenario file, once for each seed

A row's measure is evaluated for each seed that all its cells have been run with, and gives one number, or None where
there is none, e.g. where an accuracy was never reached. A row without cells needs no run: its measure is evaluated
once, without trials, and its value is stored as runs are.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from edgebed.core.runtimes import Runtime
from edgebed.studies.papers.measure import Measure, of_other_cells

Unit = Literal["%", "points", "bytes", "updates", "updates/s", "messages", "x", "s", ""]
"""Units of measures. Accuracies in per cent, which grow with the updates; their differences in percentage points; `x`
is a ratio; no unit is that of a loss, or of a number of things."""


ROW = re.compile(r"\{row:([A-Za-z0-9.:-]+)\}")
"""A row's name, in a text, in the place of its value."""


def rows_in(text: str) -> list[str]:
    """The rows whose values a text has."""
    return ROW.findall(text)


def _nothing(scale: float) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One variant of a scenario file of `scenarios/<paper>/`, at a share of its updates.

    It is run with as many seeds, from 1 on, as the tables state whose rows have it.
    """

    scenario: str
    """Name of the scenario file, e.g. `figure-3.yaml`."""
    variant: str
    scale: float = 1.0
    """Share of the scenario's updates that is run unless the user asks for another; evaluations come as much closer."""
    runtime: Runtime = "simulation"
    """Runtime of the cell; live where time is what is measured."""
    sets: Callable[[float], tuple[str, ...]] = field(default=_nothing)
    """Overrides `a.b=value` by scale, for what does not scale by itself, e.g. the probability of a crash."""
    has_own_schedule: bool = False
    """Whether its learning rate falls after shares of its own updates: then it is no beginning of a longer training."""


@dataclass(frozen=True, kw_only=True)
class Near:
    """A claim that the value is within `tolerance` of the paper's, in the row's unit.

    reproduced: the interval over seeds lies within; differs: outside, and so does the paper's value of the interval in
    which the mean of as many runs as the paper's is to be expected; else not distinguishable.
    """

    value: float
    tolerance: float
    published: bool = True
    """Whether the value is the paper's; False: this project worked it out, as the paper's own is lost, and no table
    shows it as the paper's."""


SIZE_FACTOR = 2.0
"""An effect of between one such part of the paper's and so many times it is of the same size."""


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A claim about the sign of a difference or the like, and about its size; `value` is the paper's, if it gives one.

    equal: the interval over seeds lies within `margin` on both sides of zero; reproduced: on that side of zero and,
    where there is a value, between half of it and twice; in direction: on that side of zero, but not so; differs: on
    the other side; else not distinguishable.
    """

    sign: Literal[-1, 1]
    value: float | None = None
    margin: float = 0.0
    """Size of a difference that matters to nobody, stated before the runs; 0: each does."""

    @property
    def sizes(self) -> tuple[float, float] | None:
        """Half of the paper's value and twice, between which an effect is of its size; None without a value."""
        if self.value is None:
            return None
        low, high = sorted((self.value / SIZE_FACTOR, self.value * SIZE_FACTOR))
        return low, high


@dataclass(frozen=True, kw_only=True)
class AtLeast:
    """A claim that the value is at least this (negative claims are measured with the sign turned)."""

    value: float


@dataclass(frozen=True, kw_only=True)
class AtMost:
    """A claim that the value is no more than this, as an effect that is said to be little; `published` is the paper's.

    The bound is stated before the runs.
    """

    value: float
    published: float


@dataclass(frozen=True, kw_only=True)
class Never:
    """A claim that it is never reached: reproduced where no seed gives a number, differs where all do."""


Claim = Near | Sign | AtLeast | AtMost | Never
OverUpdates = Literal["grows", "changes", "turns", "steady"]
"""How a measure changes as training continues: it only grows, it may go either way, it may turn, or it stays. A loss on
images that were not trained on turns: it falls, and rises again as a network learns its own images by heart."""
BY_UNIT: Mapping[Unit, OverUpdates] = {"%": "grows", "points": "changes"}
"""How accuracies and their differences change over updates; measures in other units are steady, unless a row says
otherwise."""


@dataclass(frozen=True)
class Cause:
    """What may be why something was found that differs from a claim."""

    text: str
    """The cause in a sentence or two, without what was measured; `{row:NAME}` stands for the value of a row."""
    row: str = ""
    """Name of the row in which this one thing is switched; empty: nobody tried. The share of the difference that it
    accounts for is computed, and a cause of less than half of it, or of nobody knows how much, does not count."""
    against: str = ""
    """The paper's words that the cause contradicts, if it does: then it does not count either."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One published statement, and how it is measured here."""

    what: str
    """The statement in words, e.g. `AdaComp, c = 0.01`."""
    cells: tuple[str, ...] = ()
    """Names of the cells that the row needs; none: it needs no run."""
    measure: Measure
    unit: Unit
    claim: Claim | None = None
    """The paper's claim; None: the paper gives nothing to compare with; the measurement stands alone."""
    note: str = ""
    """What a reader must know of the comparison, in a sentence."""
    beside: str = ""
    """Name of the row whose claim this one measures in another way, e.g. in another encoding or a reading of the paper
    that is not the table's first: it is shown beside it, and not counted again."""
    seeds: int | None = None
    """Number of seeds that it is run with, stated before the runs; None: as its table states."""
    cause: Cause | None = None
    """Why what was found may differ from the claim, where it does; None: nothing was found."""
    with_updates: OverUpdates | None = None
    """How the measure changes as training continues; None: as in `BY_UNIT`. Where it is not steady, a run shorter than
    the paper's shows little."""
    exact: bool = False
    """Whether neither chance nor a machine's speed has a part in it, so that one run decides."""
    arithmetic: bool = False
    """Whether the claim follows from how the measurement was made, as bytes of floats are four times those of bytes."""
    data: str = ""
    """Name of the data set that the measure of a row without cells reads; empty: none."""

    @property
    def over_updates(self) -> OverUpdates:
        """How the row's measure changes as training continues."""
        return self.with_updates or BY_UNIT.get(self.unit, "steady")

    @property
    def needs_seeds(self) -> bool:
        """Whether the row's values over seeds decide, and not a single one."""
        return bool(self.cells) and not self.exact

    @property
    def counts(self) -> bool:
        """Whether the row can confirm the paper: it has a value of the paper's, and could have come out otherwise."""
        return not self.arithmetic and (not isinstance(self.claim, Near) or self.claim.published)

    @property
    def is_primary(self) -> bool:
        """Whether the row is the one that counts for its claim."""
        return self.claim is not None and self.counts and not self.beside


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A chart of trials: moving average of the accuracy against updates, ingress or time."""

    title: str
    cells: tuple[str, ...]
    over: Literal["updates", "ingress", "time"]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to read what the paper leaves open, for all rows of a table."""

    name: str
    """A word or two, e.g. `constant rate`."""
    text: str
    """What is read how, and why."""
    cells: Mapping[str, str]
    """The cells that are run by it in the place of those that the rows name; rows with none of them stay as they are.
    The first reading, which the rows are declared by, has none."""
    seeds: int | None = None
    """Number of seeds that it is run with; None: that of the table."""

    def row(self, name: str, row: Row) -> Row | None:
        """The row by this reading, beside the row of that name; None where it changes nothing."""
        if not any(cell in self.cells for cell in row.cells):
            return None
        cells = {cell: self.cells.get(cell, cell) for cell in row.cells}
        measure = of_other_cells(row.measure, cells)
        return replace(
            row,
            what=f"{row.what} ({self.name})",
            cells=tuple(dict.fromkeys(cells.values())),
            measure=measure,
            beside=name,
            cause=None,
            seeds=self.seeds,
        )


def read_as(row: str, reading: str) -> str:
    """The name of a row by one of its table's readings."""
    return f"{row}:{reading.replace(' ', '-')}"


@dataclass(frozen=True, kw_only=True)
class Table:
    """One of the paper's tables or figures."""

    title: str
    seeds: int = 0
    """Number of seeds that its rows are run with, stated before the runs: with fewer nothing is found. 0: no row needs
    any."""
    other_setting: bool = False
    """Whether its rows are of another setting than the paper's, such as another network or a part of the images."""
    rows: Mapping[str, Row]
    """Rows by the name that `--row` takes, unique in the paper, as the first reading has them."""
    readings: tuple[Reading, ...] = ()
    """Ways to read the paper that are possible, each for all rows; what is printed first."""
    text: str = ""
    """What the table is about and how it is measured here, in Markdown."""
    curves: tuple[Curve, ...] = ()

    @property
    def all_rows(self) -> dict[str, Row]:
        """Its rows, and those by its further readings, by name."""
        return {**self.rows, **self.read}

    @cached_property
    def read(self) -> dict[str, Row]:
        """Rows by each further reading, by name."""
        return {
            read_as(name, reading.name): read
            for reading in self.readings
            for name, row in self.rows.items()
            if (read := reading.row(name, row))
        }


@dataclass(frozen=True, kw_only=True)
class Headline:
    """One of the things that a paper is read for, as the front page of results has it."""

    claim: str
    """What the paper claims, in a sentence."""
    rows: tuple[str, ...]
    """Rows that it stands or falls with."""
    found: str
    """What came of it here, and why it differs, if it does: one to three sentences in Markdown."""
    chart: str = ""
    """Title of the curve that shows it."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One publication: its tables, and the cells that they need."""

    name: str
    """Name of the paper, as in `edgebed reproduce NAME` and `scenarios/NAME/`."""
    citation: str = ""
    """Authors, title and where it was published; this and all other prose is usually that of a file (prose.py)."""
    text: str = ""
    """How the paper was read where it leaves something open, in Markdown."""
    window: int
    """Evaluations that the moving average of an accuracy is taken over."""
    stated: str = ""
    """When the numbers of seeds, the first readings and the rows that count were stated, and what had been run then: a
    sentence."""
    runs: int = 1
    """Number of training runs that a value of the paper's is the mean of."""
    best_of: int = 1
    """Number of runs of which the paper picks the best; above 1, the best of as many seeds stands beside a mean."""
    cells: Mapping[str, Cell]
    tables: tuple[Table, ...]
    headlines: tuple[Headline, ...] = ()

    @cached_property
    def rows(self) -> dict[str, Row]:
        """All rows by name, in the order of the tables, and after a table's own those by its further readings."""
        return {name: row for table in self.tables for name, row in table.all_rows.items()}

    @cached_property
    def seeds(self) -> dict[str, int]:
        """The stated number of seeds of each row."""
        return {name: row.seeds or table.seeds for table in self.tables for name, row in table.all_rows.items()}

    def only(self, rows: Collection[str]) -> "Paper":
        """The paper with these rows alone, the cells that they need, and no curves."""
        kept = {
            table.title: {name: row for name, row in table.all_rows.items() if name in rows} for table in self.tables
        }
        needed = {cell for each in kept.values() for row in each.values() for cell in row.cells}
        return replace(
            self,
            cells={name: cell for name, cell in self.cells.items() if name in needed},
            headlines=(),
            tables=tuple(
                replace(table, rows=kept[table.title], readings=(), curves=())
                for table in self.tables
                if kept[table.title]
            ),
        )

    @property
    def mistakes(self) -> tuple[str, ...]:
        """Mistakes in this declaration, a sentence each."""
        names = Counter(name for table in self.tables for name in table.rows)
        measured = {cell for row in self.rows.values() for cell in row.cells}
        curves = [curve for table in self.tables for curve in table.curves]
        return (
            *(f"{count} rows are called '{name}'" for name, count in names.items() if count > 1),
            *(f"{user} is of row '{row}', which is not declared" for user, row in self._named if row not in self.rows),
            *(
                f"{user} is of cell '{cell}', which is not declared"
                for user, cells in (
                    *((f"row '{name}'", row.cells) for name, row in self.rows.items()),
                    *((f"curve '{curve.title}'", curve.cells) for curve in curves),
                )
                for cell in cells
                if cell not in self.cells
            ),
            *(f"cell '{name}' is in no row" for name in self.cells if name not in measured),
            *(
                f"reading '{reading.name}' of '{table.title}' is of cell '{cell}', which no row has"
                for table in self.tables
                for reading in table.readings
                for cell in reading.cells
                if cell not in measured
            ),
            *(
                f"row '{name}' has cells, and its table states no number of seeds"
                for name, row in self.rows.items()
                if row.cells and not self.seeds[name]
            ),
        )

    @property
    def _named(self) -> Iterator[tuple[str, str]]:
        """The rows that other parts of the declaration name, with what names them."""
        for table in self.tables:
            for reading in table.readings:
                yield from ((f"the text of '{reading.name}'", row) for row in rows_in(reading.text))
        for name, row in self.rows.items():
            yield from ((f"row '{name}'", each) for each in (row.beside, *rows_in(row.note)) if each)
