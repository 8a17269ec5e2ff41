"""The classes with which a paper is declared.

    Paper ---> tables ---> rows: what the paper says | how it is measured | what would confirm or contradict it
          ---> cells: what has to be run for that, each a variant of an ordinary scenario file, once for each seed

A row's measure is evaluated for each seed that all its cells have been run with, and gives one number, or None where
there is none, e.g. where an accuracy was never reached. A row without cells needs no run: its measure is evaluated
once, without trials, and its value is stored as runs are.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from edgebed.core.runtimes import Runtime
from edgebed.studies.finished import FinishedTrial

Measure = Callable[[Mapping[str, FinishedTrial]], float | None]
"""A function from the trials of one seed, by cell, to a number in the row's unit."""
Unit = Literal["%", "points", "bytes", "updates", "updates/s", "messages", "x", "s", ""]
"""Units of measures. Accuracies in per cent, which grow with the updates; their differences in percentage points; `x`
is a ratio; no unit is that of a loss, or of a number of things."""


def _nothing(scale: float) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One variant of a scenario file of `scenarios/<paper>/`, at a share of its updates, with seeds 1, 2, ..."""

    scenario: str
    """Name of the scenario file, e.g. `figure-3.yaml`."""
    variant: str
    scale: float = 1.0
    """Share of the scenario's updates that is run unless the user asks for another; evaluations come as much closer."""
    seeds: int = 3
    """Number of seeds, unless the user asks for another."""
    runtime: Runtime = "simulation"
    """Runtime of the cell; live where time is what is measured."""
    sets: Callable[[float], tuple[str, ...]] = field(default=_nothing)
    """Overrides `a.b=value` by scale, for what does not scale by itself, e.g. the probability of a crash."""
    has_own_schedule: bool = False
    """Whether its learning rate falls after shares of its own updates: then it is no beginning of a longer training."""


@dataclass(frozen=True, kw_only=True)
class Near:
    """A claim that the value is within `tolerance` of the paper's, in the row's unit.

    reproduced: the interval over seeds lies within; differs: outside; else not distinguishable.
    """

    value: float
    tolerance: float
    published: bool = True
    """Whether the value is the paper's; False: this project worked it out, as the paper's own is lost, and no table
    shows it as the paper's."""


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A claim about the sign of a difference or the like; `value` is the paper's, if it gives one.

    reproduced: the interval over seeds lies on that side of zero; differs: on the other; equal: it holds zero, and lies
    within `margin` on both sides; else not distinguishable.
    """

    sign: Literal[-1, 1]
    value: float | None = None
    margin: float = 0.0
    """Size of a difference that matters to nobody, stated before the runs; 0: each does."""


@dataclass(frozen=True, kw_only=True)
class AtLeast:
    """A claim that the value is at least this (negative claims are measured with the sign turned)."""

    value: float


@dataclass(frozen=True, kw_only=True)
class Never:
    """A claim that it is never reached: reproduced where no seed gives a number, differs where all do."""


Claim = Near | Sign | AtLeast | Never
OverUpdates = Literal["grows", "changes", "turns", "steady"]
"""How a measure changes as training continues: it only grows, it may go either way, it may turn, or it stays. A loss on
images that were not trained on turns: it falls, and rises again as a network learns its own images by heart."""
BY_UNIT: Mapping[Unit, OverUpdates] = {"%": "grows", "points": "changes"}
"""How accuracies and their differences change over updates; measures in other units are steady, unless a row says
otherwise."""


@dataclass(frozen=True)
class Cause:
    """Why what was found differs from a claim."""

    text: str
    """The cause in a sentence or two."""
    is_shown: bool = True
    """Whether it is shown: by runs that switch one thing at a time and come to the claim or most of the way, by
    arithmetic, or by the paper's own words. Else it explains less than half of the difference, or was not tried, and
    does not count."""


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
    cause: Cause | None = None
    """Why what was found differs from the claim, where it does; None: nothing was found."""
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


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A chart of trials: moving average of the accuracy against updates, ingress or time."""

    title: str
    cells: tuple[str, ...]
    over: Literal["updates", "ingress", "time"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """One of the paper's tables or figures."""

    title: str
    rows: Mapping[str, Row]
    """Rows by the name that `--row` takes, unique in the paper."""
    text: str = ""
    """What the table is about and how it is measured here, in Markdown."""
    curves: tuple[Curve, ...] = ()


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
    citation: str
    text: str
    """How the paper was read where it leaves something open, in Markdown."""
    window: int
    """Evaluations that the moving average of an accuracy is taken over."""
    cells: Mapping[str, Cell]
    tables: tuple[Table, ...]
    headlines: tuple[Headline, ...] = ()

    @property
    def rows(self) -> dict[str, Row]:
        """All rows by name, in the order of the tables."""
        return {name: row for table in self.tables for name, row in table.rows.items()}

    def only(self, rows: Collection[str]) -> "Paper":
        """The paper with these rows alone, the cells that they need, and no curves."""
        kept = {table.title: {name: row for name, row in table.rows.items() if name in rows} for table in self.tables}
        needed = {cell for each in kept.values() for row in each.values() for cell in row.cells}
        return replace(
            self,
            cells={name: cell for name, cell in self.cells.items() if name in needed},
            headlines=(),
            tables=tuple(
                replace(table, rows=kept[table.title], curves=()) for table in self.tables if kept[table.title]
            ),
        )

    @property
    def mistakes(self) -> tuple[str, ...]:
        """Mistakes in this declaration, a sentence each."""
        names = Counter(name for table in self.tables for name in table.rows)
        measured = {cell for row in self.rows.values() for cell in row.cells}
        users = [(f"row '{name}'", row.cells) for name, row in self.rows.items()]
        curves = [curve for table in self.tables for curve in table.curves]
        users += [(f"curve '{curve.title}'", curve.cells) for curve in curves]
        titles = {"", *(curve.title for curve in curves)}
        unknown = [(user, cell) for user, cells in users for cell in cells if cell not in self.cells]
        return (
            *(f"{count} rows are called '{name}'" for name, count in names.items() if count > 1),
            *(
                f"headline '{each.claim}' is of row '{name}', which is not declared"
                for each in self.headlines
                for name in each.rows
                if name not in names
            ),
            *(
                f"headline '{each.claim}' shows the curve '{each.chart}', which is not declared"
                for each in self.headlines
                if each.chart not in titles
            ),
            *(f"{user} is of cell '{cell}', which is not declared" for user, cell in unknown),
            *(f"cell '{name}' is in no row" for name in self.cells if name not in measured),
        )
