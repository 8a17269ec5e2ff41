"""From finished runs to the rows of a paper: what it says, what was measured over which seeds, and the finding.

Only what is there is measured: a row whose cells have not all been run is `not run`, and so is one without cells that
has not been computed. A journal is read once; what measures and charts need of it is kept beside the page, and counts
when the run itself is gone.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec

from edgebed.comparing.cells import DECLARED, CellRun, Cells, Size, runs_of_row
from edgebed.comparing.claims_text import claim_text
from edgebed.comparing.collecting import keep_finished
from edgebed.comparing.computing import ComputedRow
from edgebed.comparing.findings import Finding, judge
from edgebed.comparing.finished import FinishedTrial
from edgebed.comparing.keeping import Kept, RunResult
from edgebed.comparing.matching import Finder
from edgebed.comparing.statistics import Interval
from edgebed.errors import ScenarioError
from edgebed.learning.imports import reason
from edgebed.observe.series import Series
from edgebed.papers.measuring import resolution
from edgebed.papers.paper import Claim, Paper, Row, Unit
from edgebed.runtimes import Runtime

NOTHING: Mapping[str, ComputedRow] = {}
ONCE = 1
"""Where the value of a row without cells stands among values by seed."""


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    """One published statement and what became of it."""

    row: str
    what: str
    cells: tuple[str, ...]
    unit: Unit
    paper: str
    """What the paper says, in words."""
    claim: Claim | None
    measured: Interval | None
    """Over the seeds that gave a number."""
    values: dict[int, float | None]
    """By seed; None where there is no number, e.g. of an accuracy that was never reached."""
    finding: Finding | None
    """None where nothing is claimed, nothing was run, or one seed was that decides nothing."""
    is_tested: bool
    """Whether an interval over seeds decided."""
    resolution: float
    """How far beside the measured value the true one may lie, as evaluations lie apart."""
    seeds_wanted: int
    updates: tuple[int, int]
    """The smallest and the largest number of updates of its cells."""
    share: tuple[float, float]
    """The same, as shares of the paper's."""
    note: str = ""

    @property
    def was_run(self) -> bool:
        """Whether there is a seed with which all its cells were run, or, of a row without cells, its value."""
        return bool(self.values)

    @property
    def needs_runs(self) -> bool:
        """Whether it is of seeds and updates at all."""
        return bool(self.cells)


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """A cell at a size, and the runs of it that counted."""

    cell: str
    command: str
    """The ordinary command that runs it with the first seed."""
    updates: int
    share: float
    runs: tuple[RunResult, ...]
    runtime: Runtime = "simulation"


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """A paper's rows with what was measured, by table, and the runs behind them."""

    paper: str
    """As the command line names it."""
    tables: dict[str, tuple[RowResult, ...]]
    cells: tuple[CellResult, ...]
    computed: tuple[ComputedRow, ...] = ()
    """Of the rows without cells, those that have a value."""


Curves = Mapping[str, Mapping[str, Sequence[Series]]]
"""Title -> cell -> the evaluations of each seed, in a series of nothing else."""


def evaluate(
    cells: Cells,
    root: Path,
    kept: Kept,
    chosen: Collection[str],
    size: Size,
    tell: Callable[[str], None],
    name: str = "",
    computed: Mapping[str, ComputedRow] = NOTHING,
) -> tuple[Reproduction, Curves]:
    """What the finished runs in `root`, those that are `kept`, and what is `computed` say of all rows of the paper.

    The `chosen` rows are taken at this size, the others as the paper declares them. What is read is kept; it has yet to
    be written. `tell` hears of runs that cannot be read; `name` is how the command line names the paper, where not by
    its own. ScenarioError where a measure fails.
    """
    paper = cells.paper
    needed = {name: runs_of_row(paper, row, size if name in chosen else DECLARED) for name, row in paper.rows.items()}
    wanted = dict.fromkeys(run for seeds in needed.values() for each in seeds.values() for run in each.values())
    keep_finished(cells, Finder(root), kept, wanted, tell)
    there = {run: kept.trial(run) for run in wanted if kept.find(run)}
    measured = {
        name: _measure(name, paper.rows[name], seeds, there) if seeds else _value(computed.get(name))
        for name, seeds in needed.items()
    }
    tables = {
        table.title: tuple(
            _row_result(cells, name, row, needed[name], measured[name]) for name, row in table.rows.items()
        )
        for table in paper.tables
    }
    drawn = _drawn(paper, needed, chosen)
    curves = {
        curve.title: {
            cell: [
                dataclasses.replace(Series.empty(), evaluations=there[run].evaluations)
                for run in drawn[cell]
                if run in there
            ]
            for cell in curve.cells
        }
        for table in paper.tables
        for curve in table.curves
    }
    runs = {run: found.run for run in there if (found := kept.find(run))}
    reproduction = Reproduction(
        paper=name or paper.name,
        tables=tables,
        cells=_cell_results(cells, runs),
        computed=tuple(computed[name] for name in paper.rows if name in computed),
    )
    return reproduction, curves


class _Measured(NamedTuple):
    """A row's values by seed, and how far beside each the true one may lie."""

    values: dict[int, float | None]
    resolutions: list[float]


def _measure(
    name: str, row: Row, needed: Mapping[int, Mapping[str, CellRun]], there: Mapping[CellRun, FinishedTrial]
) -> _Measured:
    """Of the seeds that all cells of the row have completed with."""
    values: dict[int, float | None] = {}
    resolutions = []
    for seed, runs in needed.items():
        if all(run in there for run in runs.values()):
            trials = {cell: there[run] for cell, run in runs.items()}
            try:
                value = row.measure(trials)
            except Exception as error:  # a measure is the code of whoever wrote the paper's file
                raise ScenarioError(f"row {name}, seed {seed}: its measure failed: {reason(error)}") from error
            values[seed] = value if value is not None and math.isfinite(value) else None
            resolutions.append(resolution(row.measure, trials))
    return _Measured(values, resolutions)


def _value(computed: ComputedRow | None) -> _Measured:
    """What a row without cells has in the place of values by seed."""
    return _Measured({} if computed is None else {ONCE: computed.value}, [])


def _drawn(
    paper: Paper, needed: Mapping[str, Mapping[int, Mapping[str, CellRun]]], chosen: Collection[str]
) -> dict[str, list[CellRun]]:
    """Cell -> the runs whose curve is drawn: those of the first chosen row that it is in, else of the first row."""
    drawn = {}
    for cell in {cell for table in paper.tables for curve in table.curves for cell in curve.cells}:
        rows = [name for name, row in paper.rows.items() if cell in row.cells]
        name = next((name for name in rows if name in chosen), rows[0])
        drawn[cell] = [runs[cell] for runs in needed[name].values()]
    return drawn


def _row_result(
    cells: Cells,
    name: str,
    row: Row,
    needed: Mapping[int, Mapping[str, CellRun]],
    found: _Measured,
) -> RowResult:
    runs = list(needed.get(1, {}).values())
    updates, shares = [cells.recipe(run).updates for run in runs] or [0], [run.scale for run in runs] or [1.0]
    values, beside = found.values, fmean(found.resolutions) if found.resolutions else 0.0
    measured, finding = judge(row, values, full_size=min(shares) >= 1, resolution=beside)
    return RowResult(
        row=name,
        what=row.what,
        cells=row.cells,
        unit=row.unit,
        paper=claim_text(row.claim, row.unit),
        claim=row.claim,
        measured=measured,
        values=values,
        finding=finding,
        is_tested=finding is not None and row.needs_seeds,
        resolution=beside,
        seeds_wanted=len(needed) or 1,
        updates=(min(updates), max(updates)),
        share=(min(shares), max(shares)),
        note=row.note,
    )


def _cell_results(cells: Cells, results: Mapping[CellRun, RunResult]) -> tuple[CellResult, ...]:
    """Every cell at every size of which a run counted, in the paper's order."""
    order = {name: place for place, name in enumerate(cells.paper.cells)}
    groups: dict[tuple[str, float], list[CellRun]] = {}
    for run in sorted(results, key=lambda run: (order[run.cell], run.scale, run.seed)):
        groups.setdefault((run.cell, run.scale), []).append(run)
    return tuple(
        CellResult(
            cell=cell,
            command=cells.recipe(runs[0]).command,
            updates=cells.recipe(runs[0]).updates,
            share=scale,
            runs=tuple(results[run] for run in runs),
            runtime=cells.paper.cells[cell].runtime,
        )
        for (cell, scale), runs in groups.items()
    )
