"""From finished runs to the rows of a paper: the claim, the measurement over seeds, and the finding.

Only existing runs are measured: a row whose cells have not all been run is `not run`, and so is one without cells that
has not been computed. A journal is read once; what measures and charts need of it is stored beside the page, and
counts when the run itself is gone.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec

from edgebed.core.errors import ScenarioError
from edgebed.core.imports import reason
from edgebed.core.runtimes import Runtime
from edgebed.journal.series import Series
from edgebed.studies.cells.cells import DECLARED, CellRun, PaperCells, Size, runs_of_row
from edgebed.studies.cells.collecting import cache_finished
from edgebed.studies.cells.result_cache import ResultCache, RunResult
from edgebed.studies.cells.run_index import RunIndex
from edgebed.studies.claims_text import claim_text
from edgebed.studies.finished import FinishedTrial
from edgebed.studies.papers.measuring import resolution
from edgebed.studies.papers.paper import Cause, Cell, Claim, Paper, Row, Unit
from edgebed.studies.reproduction.analytic_rows import ComputedRow
from edgebed.studies.reproduction.findings import Finding, can_decide, judge
from edgebed.studies.reproduction.lengthening import has_levelled, lengthened, over_lengths
from edgebed.studies.statistics import ConfidenceInterval

NOTHING: Mapping[str, ComputedRow] = {}
DIFFERENT: tuple[Finding, ...] = ("differs", "equal", "so far outside", "not consistent")
"""Findings that are not what the paper claims."""
SEEDS_DECIDE = 3
"""Number of seeds that decide a row."""
ONCE = 1
"""Key of the value of a row without cells, among values by seed."""


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    """One published statement, its measurement and finding."""

    row: str
    what: str
    cells: tuple[str, ...]
    unit: Unit
    paper: str
    """The paper's claim in words."""
    claim: Claim | None
    measured: ConfidenceInterval | None
    """Mean and interval over the seeds that gave a number."""
    values: dict[int, float | None]
    """Values by seed; None where there is no number, e.g. of an accuracy that was never reached."""
    finding: Finding | None
    """The finding; None where nothing is claimed, nothing was run, or only one seed, which decides nothing."""
    is_tested: bool
    """Whether an interval over seeds decided."""
    resolution: float
    """How far the true value may lie from the measured one, as evaluations lie apart."""
    to_full_size: ConfidenceInterval | None = None
    """What the mean may come to in a training as long as the paper's, of a measure that changes with its length, as far
    as it can be told from a shorter one."""
    seeds_wanted: int
    updates: tuple[int, int]
    """The smallest and the largest number of updates of its cells."""
    share: tuple[float, float]
    """The smallest and the largest share of the paper's updates."""
    counts: bool = True
    """Whether the row could confirm the paper, had it a claim."""
    note: str = ""
    cause: Cause | None = None
    """Why what was found differs from the claim; None where it does not, or where nothing was found."""

    @property
    def is_claimed(self) -> bool:
        """Whether the row can confirm or contradict the paper."""
        return self.claim is not None and self.counts

    @property
    def is_decided(self) -> bool:
        """Whether the claim is confirmed or contradicted, by three seeds where seeds decide."""
        return self.finding in ("reproduced", "differs", "equal") and (
            not self.is_tested or len(self.values) >= SEEDS_DECIDE
        )

    @property
    def is_different(self) -> bool:
        """Whether what was found is not what the paper claims."""
        return self.finding in DIFFERENT

    @property
    def is_explained(self) -> bool:
        """Whether it was shown why what was found is not what the paper claims."""
        return self.is_different and self.cause is not None and self.cause.is_shown

    @property
    def is_explained_in_part(self) -> bool:
        """Whether a part of why it is not was shown, or may be what is named."""
        return self.is_different and self.cause is not None and not self.cause.is_shown

    @property
    def was_run(self) -> bool:
        """Whether there is a seed with which all the row's cells were run, or, for a row without cells, a value."""
        return bool(self.values)

    @property
    def needs_runs(self) -> bool:
        """Whether the row has cells, and so seeds and updates."""
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
    """Name of the paper on the command line."""
    tables: dict[str, tuple[RowResult, ...]]
    cells: tuple[CellResult, ...]
    computed: tuple[ComputedRow, ...] = ()
    """Values of the rows without cells that have one."""


Curves = Mapping[str, Mapping[str, Sequence[Series]]]
"""Evaluations of each seed, in a series of nothing else, by title of the chart and cell."""


def evaluate(
    cells: PaperCells,
    root: Path,
    cache: ResultCache,
    chosen: Collection[str],
    size: Size,
    tell: Callable[[str], None],
    name: str = "",
    computed: Mapping[str, ComputedRow] = NOTHING,
) -> tuple[Reproduction, Curves]:
    """Evaluate all rows of the paper on the finished runs in `root`, those that are `cache`, and what is `computed`.

    The `chosen` rows are taken at this size, the others as the paper declares them. What is read is put into `cache`,
    but not written. `tell` is called with runs that cannot be read; `name` is the paper's name on the command line, if
    it is another than its own. ScenarioError where a measure fails.
    """
    paper = cells.paper
    needed = {name: runs_of_row(paper, row, size if name in chosen else DECLARED) for name, row in paper.rows.items()}
    wanted = dict.fromkeys(run for seeds in needed.values() for each in seeds.values() for run in each.values())
    cache_finished(cells, RunIndex(root), cache, wanted, tell)
    there = {run: cache.trial(run) for run in wanted if cache.find(run)}
    measured = {
        name: _measure(name, paper.rows[name], paper.cells, seeds, there) if seeds else _value(computed.get(name))
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
    runs = {run: found.run for run in there if (found := cache.find(run))}
    reproduction = Reproduction(
        paper=name or paper.name,
        tables=tables,
        cells=_cell_results(cells, runs),
        computed=tuple(computed[name] for name in paper.rows if name in computed),
    )
    return reproduction, curves


class _Measured(NamedTuple):
    """A row's values by seed, and how far from each the true one may lie."""

    values: dict[int, float | None]
    resolutions: list[float]
    later: list[float | None]
    """What each may come to in a training as long as the paper's, in the order of `values`; None: that is not known."""


def _measure(
    name: str,
    row: Row,
    cells: Mapping[str, Cell],
    needed: Mapping[int, Mapping[str, CellRun]],
    there: Mapping[CellRun, FinishedTrial],
) -> _Measured:
    """A row's values for the seeds that all its cells have completed with."""
    values: dict[int, float | None] = {}
    resolutions = []
    later: list[float | None] = []
    measured = []
    share = _share(needed)
    is_beginning = (
        share < 1
        and row.over_updates in ("grows", "changes")
        and not any(cells[cell].has_own_schedule for cell in row.cells)
    )
    for seed, runs in needed.items():
        if all(run in there for run in runs.values()):
            trials = {cell: there[run] for cell, run in runs.items()}
            try:
                value = row.measure(trials)
                later.append(lengthened(row.measure, trials, share) if is_beginning else None)
            except Exception as error:  # a measure is the user's own code
                raise ScenarioError(f"row {name}, seed {seed}: its measure failed: {reason(error)}") from error
            values[seed] = value if value is not None and math.isfinite(value) else None
            resolutions.append(resolution(row.measure, trials))
            measured.append(trials)
    if is_beginning and not has_levelled(measured):
        later = [None] * len(later)
    return _Measured(values, resolutions, later)


def can_be_decided(
    paper: Paper, name: str, needed: Mapping[int, Mapping[str, CellRun]], there: Mapping[CellRun, FinishedTrial]
) -> bool:
    """Whether more seeds may decide a row of shorter runs than the paper's, by those seeds that are there.

    ScenarioError where its measure fails.
    """
    row = paper.rows[name]
    found = _measure(name, row, paper.cells, needed, there)
    return all(can_decide(row, value, later) for value, later in zip(found.values.values(), found.later, strict=True))


def _share(needed: Mapping[int, Mapping[str, CellRun]]) -> float:
    """The share of the paper's updates that the shortest of a row's runs makes."""
    return min(run.scale for runs in needed.values() for run in runs.values())


def _value(computed: ComputedRow | None) -> _Measured:
    """The value of a row without cells, in the form of values by seed."""
    return _Measured({} if computed is None else {ONCE: computed.value}, [], [])


def _drawn(
    paper: Paper, needed: Mapping[str, Mapping[int, Mapping[str, CellRun]]], chosen: Collection[str]
) -> dict[str, list[CellRun]]:
    """Runs whose curve is drawn, by cell: those of the first chosen row that has the cell, else of the first row."""
    drawn = {}
    for cell in {cell for table in paper.tables for curve in table.curves for cell in curve.cells}:
        rows = [name for name, row in paper.rows.items() if cell in row.cells]
        name = next((name for name in rows if name in chosen), rows[0])
        drawn[cell] = [runs[cell] for runs in needed[name].values()]
    return drawn


def _row_result(
    cells: PaperCells,
    name: str,
    row: Row,
    needed: Mapping[int, Mapping[str, CellRun]],
    found: _Measured,
) -> RowResult:
    runs = list(next(iter(needed.values()), {}).values())
    updates, shares = [cells.spec(run).updates for run in runs] or [0], [run.scale for run in runs] or [1.0]
    values, beside = found.values, fmean(found.resolutions) if found.resolutions else 0.0
    to_full_size = over_lengths(list(values.values()), found.later)
    measured, finding = judge(row, values, full_size=min(shares) >= 1, resolution=beside, to_full_size=to_full_size)
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
        to_full_size=to_full_size,
        seeds_wanted=len(needed) or 1,
        updates=(min(updates), max(updates)),
        share=(min(shares), max(shares)),
        counts=row.counts,
        note=row.note,
        cause=row.cause if finding in DIFFERENT else None,
    )


def _cell_results(cells: PaperCells, results: Mapping[CellRun, RunResult]) -> tuple[CellResult, ...]:
    """Results of every cell at every size of which a run counted, in the paper's order."""
    order = {name: place for place, name in enumerate(cells.paper.cells)}
    groups: dict[tuple[str, float], list[CellRun]] = {}
    for run in sorted(results, key=lambda run: (order[run.cell], run.scale, run.seed)):
        groups.setdefault((run.cell, run.scale), []).append(run)
    return tuple(
        CellResult(
            cell=cell,
            command=cells.spec(runs[0]).command,
            updates=cells.spec(runs[0]).updates,
            share=scale,
            runs=tuple(results[run] for run in runs),
            runtime=cells.paper.cells[cell].runtime,
        )
        for (cell, scale), runs in groups.items()
    )
