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
from edgebed.studies.cells.collect_results import cache_finished
from edgebed.studies.cells.result_cache import ResultCache, RunResult
from edgebed.studies.cells.run_index import RunIndex
from edgebed.studies.claims_text import claim_text
from edgebed.studies.papers.measure import resolution
from edgebed.studies.papers.paper import Cell, Claim, Never, Paper, Row, Table, Unit
from edgebed.studies.reproduction.analytic_rows import ComputedRow
from edgebed.studies.reproduction.causes import CauseResult, Found, caused
from edgebed.studies.reproduction.extrapolation import has_levelled, lengthened
from edgebed.studies.reproduction.findings import ComparedSize, Finding, Judged, judge
from edgebed.studies.reproduction.multiplicity import holm, p_value
from edgebed.studies.statistics import CONFIDENCE, ConfidenceInterval
from edgebed.studies.trial_result import FinishedTrial

NOTHING: Mapping[str, ComputedRow] = {}
DIFFERENT: tuple[Finding | None, ...] = ("differs", "equal", "so far outside", "not consistent")
"""Findings that are not what the paper claims."""
DECIDED: tuple[Finding | None, ...] = ("reproduced", "in direction", "differs", "equal")
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
    best: float | None = None
    """The best of as many seeds as the paper picks the best of; None: it does not."""
    final: float | None = None
    """Mean accuracy of the last models, per cent, beside that of the best ones; None: the row has none such."""
    diverged: int = 0
    """Number of seeds with which one of its runs diverged."""
    finding: Finding | None
    """The finding; None where nothing is claimed, or fewer seeds were run than were stated."""
    size: ComparedSize | None = None
    """How the size of an effect compares with the paper's that was found in direction alone."""
    by_itself: Finding | None = None
    """What its own interval at 95 % would say, where the other tests of its table keep it from being found."""
    is_tested: bool
    """Whether an interval over seeds decides."""
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
    is_whole: bool = True
    """Whether it was run in the paper's own setting, over as many updates."""
    is_primary: bool = True
    """Whether the row is the one that counts for its claim."""
    beside: str = ""
    """The row whose claim it measures in another way."""
    note: str = ""
    cause: CauseResult | None = None
    """Why what was found differs from the claim; None where it does not, or where nobody knows."""

    @property
    def is_decided(self) -> bool:
        """Whether the claim is confirmed or contradicted, by three seeds where seeds decide."""
        return self.finding in DECIDED and (not self.is_tested or len(self.values) >= SEEDS_DECIDE)

    @property
    def is_different(self) -> bool:
        """Whether what was found is not what the paper claims."""
        return self.finding in DIFFERENT

    @property
    def is_explained(self) -> bool:
        """Whether it was shown why what was found is not what the paper claims."""
        return self.is_different and self.cause is not None and self.cause.counts

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

    @property
    def rows(self) -> dict[str, RowResult]:
        """All rows by name."""
        return {row.row: row for rows in self.tables.values() for row in rows}


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
    needed = {name: runs_of_row(paper, name, size if name in chosen else DECLARED) for name in paper.rows}
    wanted = dict.fromkeys(run for seeds in needed.values() for each in seeds.values() for run in each.values())
    cache_finished(cells, RunIndex(root), cache, wanted, tell)
    there = {run: cache.trial(run) for run in wanted if cache.find(run)}
    measured = {
        name: _measure(name, paper.rows[name], paper.cells, seeds, there) if seeds else _value(computed.get(name))
        for name, seeds in needed.items()
    }
    judged = {name: found for table in paper.tables for name, found in _judged(paper, table, needed, measured).items()}
    tables = {
        table.title: tuple(
            _row_result(cells, table, name, row, needed[name], measured, judged) for name, row in table.all_rows.items()
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


Needed = Mapping[int, Mapping[str, CellRun]]
"""The runs that a row needs, by seed and cell."""


class _Measured(NamedTuple):
    """A row's values by seed, and how far from each the true one may lie."""

    values: dict[int, float | None]
    resolutions: list[float]
    later: list[float | None]
    """What each may come to in a training as long as the paper's, in the order of `values`; None: that is not known."""
    share: float = 1.0
    """The share of the paper's updates that was run."""
    diverged: int = 0
    """Number of seeds with which a run diverged."""
    final: float | None = None
    """Mean accuracy of the last models, per cent, of a row whose measure is the best accuracy of one cell."""


def _measure(
    name: str,
    row: Row,
    cells: Mapping[str, Cell],
    needed: Needed,
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
    return _Measured(
        values,
        resolutions,
        later,
        share,
        diverged=sum(any(trial.summary.outcome == "diverged" for trial in trials.values()) for trials in measured),
        final=_final(row, measured),
    )


def _final(row: Row, seeds: Sequence[Mapping[str, FinishedTrial]]) -> float | None:
    """The mean accuracy of the last models, per cent, of a row of one cell whose accuracy grows; else None."""
    if row.unit != "%" or len(row.cells) != 1 or row.over_updates != "grows":
        return None
    finals = [trials[row.cells[0]].evaluations.final_value for trials in seeds]
    known = [final for final in finals if final is not None]
    return 100 * fmean(known) if known and len(known) == len(finals) else None


def _share(needed: Needed) -> float:
    """The share of the paper's updates that the shortest of a row's runs makes; all where it needs none."""
    return min((run.scale for runs in needed.values() for run in runs.values()), default=1.0)


def _value(computed: ComputedRow | None) -> _Measured:
    """The value of a row without cells, in the form of values by seed."""
    return _Measured({} if computed is None else {ONCE: computed.value}, [], [])


def _drawn(paper: Paper, needed: Mapping[str, Needed], chosen: Collection[str]) -> dict[str, list[CellRun]]:
    """Runs whose curve is drawn, by cell: those of the first chosen row that has the cell, else of the first row."""
    drawn = {}
    for cell in {cell for table in paper.tables for curve in table.curves for cell in curve.cells}:
        rows = [name for name, row in paper.rows.items() if cell in row.cells]
        name = next((name for name in rows if name in chosen), rows[0])
        drawn[cell] = [runs[cell] for runs in needed[name].values()]
    return drawn


class _Judgements(NamedTuple):
    """What was found of a row within its table, and by itself."""

    found: Judged
    by_itself: Judged


def _judged(
    paper: Paper, table: Table, needed: Mapping[str, Needed], measured: Mapping[str, _Measured]
) -> dict[str, _Judgements]:
    """What was found of a table's rows; those that count for a claim are tested together (multiplicity.py)."""

    def judge_at(name: str) -> Callable[[float], Judged]:
        found = measured[name]
        return lambda confidence: judge(
            paper.rows[name],
            found.values,
            seeds=len(needed[name]),
            runs=paper.runs,
            full_size=_share(needed[name]) >= 1,
            resolution=_resolution(found),
            later=found.later,
            confidence=confidence,
        )

    rows = table.all_rows
    tested = [name for name, row in rows.items() if row.is_primary and _is_tested(row)]
    p_values = {name: p_value(judge_at(name)) for name in tested if measured[name].values}
    confidences = holm(p_values, len(tested))
    alone = {name: judge_at(name)(CONFIDENCE) for name in rows}
    return {
        name: _Judgements(judge_at(name)(confidences[name]) if name in confidences else found, found)
        for name, found in alone.items()
    }


def _is_tested(row: Row) -> bool:
    """Whether an interval over seeds decides the row's claim."""
    return row.claim is not None and row.needs_seeds and not isinstance(row.claim, Never)


def _resolution(found: _Measured) -> float:
    """How far from the mean the true one may lie."""
    return fmean(found.resolutions) if found.resolutions else 0.0


def _row_result(
    cells: PaperCells,
    table: Table,
    name: str,
    row: Row,
    needed: Needed,
    measured: Mapping[str, _Measured],
    judged: Mapping[str, _Judgements],
) -> RowResult:
    runs = list(next(iter(needed.values()), {}).values())
    updates, shares = [cells.spec(run).updates for run in runs] or [0], [run.scale for run in runs] or [1.0]
    (found, by_itself), values = judged[name], measured[name].values

    def of(other: str) -> Found:
        it, its = measured[other], cells.paper.rows[other]
        is_short = its.over_updates != "steady" and it.share < 1
        return Found(it.values, it.later, judged[other].found.finding, its.needs_seeds, is_short)

    cause = None
    if found.finding in DIFFERENT and row.cause and row.claim:
        cause = caused(row.cause, row.claim, row.unit, of(name), of(row.cause.row) if row.cause.row else None)
    return RowResult(
        row=name,
        what=row.what,
        cells=row.cells,
        unit=row.unit,
        paper=claim_text(row.claim, row.unit),
        claim=row.claim,
        measured=found.measured,
        values=values,
        best=_best(values, cells.paper.best_of) if row.unit == "%" and row.claim else None,
        final=measured[name].final if row.claim else None,
        diverged=measured[name].diverged,
        finding=found.finding,
        size=found.size,
        by_itself=by_itself.finding if by_itself.finding != found.finding else None,
        is_tested=_is_tested(row),
        resolution=_resolution(measured[name]),
        to_full_size=found.to_full_size,
        seeds_wanted=len(needed) or 1,
        updates=(min(updates), max(updates)),
        share=(min(shares), max(shares)),
        is_whole=min(shares) >= 1 and not table.other_setting,
        is_primary=row.is_primary,
        beside=row.beside,
        note=row.note,
        cause=cause,
    )


def _best(values: Mapping[int, float | None], of: int) -> float | None:
    """The best of the first so many seeds, if the paper picks the best of some and they are there."""
    first = [value for seed in sorted(values)[:of] if (value := values[seed]) is not None]
    return max(first) if 1 < of <= len(first) else None


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
