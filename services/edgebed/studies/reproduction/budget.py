"""Which runs of papers are worth most in the time there is: the cost and the worth of each that is missing.

A row that counts for a claim is worth one, shared among the runs that it still lacks of the seeds that its table
states. Another is worth nothing: its runs come last. What runs have shown has no part in it. A run costs what the same
cell took with other seeds, at its quickest, as others were slowed down by what else a machine did. Else an update costs
what it does in other cells with the run's method and model, with its method, of its scenario, its paper, or all papers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from edgebed.studies.cells.cells import DECLARED, CellRun, CellSpec, PaperCells, Size, runs_of_rows
from edgebed.studies.cells.collect_results import cache_finished
from edgebed.studies.cells.jobs import Tell
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.cells.run_index import RunIndex
from edgebed.studies.papers.paper import Paper

UNKNOWN_S = 0.005
"""Seconds that an update is taken to cost where no run of any paper is known."""


class Kind(NamedTuple):
    """What it depends on most how long an update takes."""

    runtime: str
    method: str
    model: str


class Took(NamedTuple):
    """What a finished run of a paper took."""

    paper: str
    cell: str
    scale: float
    kind: Kind
    updates: int
    seconds: float


class PaperRuns(NamedTuple):
    """A paper with the rows that are asked for, and what is known of its runs."""

    name: str
    """The paper's name on the command line."""
    cells: PaperCells
    cache: ResultCache
    rows: Sequence[str]
    size: Size = DECLARED

    @property
    def wanted(self) -> list[CellRun]:
        """All runs that the rows need."""
        return runs_of_rows(self.cells.paper, self.rows, self.size)

    @property
    def done(self) -> dict[CellRun, float | None]:
        """The runs that are there, and the seconds that each took on one core, if that is known."""
        return {run: kept.run.core_s for run in self.wanted if (kept := self.cache.find(run))}


class Candidate(NamedTuple):
    """A run that is missing."""

    paper: str
    run: CellRun
    updates: int
    cost_s: float
    """Seconds on one core, as estimated."""
    worth: float
    """Rows with a claim that it decides, shares of them where other runs are missing, too."""


def worths(paper: Paper, rows: Iterable[str], done: Collection[CellRun], size: Size = DECLARED) -> dict[CellRun, float]:
    """The worth of each run that the rows lack, in the paper's order."""
    found: dict[CellRun, float] = {}
    for name in rows:
        row = paper.rows[name]
        missing = [run for run in runs_of_rows(paper, [name], size) if run not in done]
        for run in missing:
            found[run] = found.get(run, 0.0) + (1 / len(missing) if row.is_primary else 0.0)
    return found


def kind_of(spec: CellSpec) -> Kind:
    """The kind of a run."""
    method, model = spec.settings["method"], spec.settings["task"].get("model")
    return Kind(spec.runtime, str(method.get("preset") if isinstance(method, dict) else method), str(model))


def cost_s(paper: Paper, run: CellRun, kind: Kind, updates: int, took: Sequence[Took]) -> float:
    """Seconds that a run will take, as estimated from those that were made."""
    of_paper = [each for each in took if each.paper == paper.name]
    same = [each.seconds for each in of_paper if (each.cell, each.scale) == (run.cell, run.scale)]
    if same:
        return min(same)
    scenario = paper.cells[run.cell].scenario
    alike = (
        [each for each in of_paper if each.kind == kind],
        [each for each in of_paper if each.kind[:2] == kind[:2]],
        [each for each in of_paper if paper.cells[each.cell].scenario == scenario],
        of_paper,
        took,
    )
    return updates * next((_pace_s(each) for each in alike if each), UNKNOWN_S)


def _pace_s(took: Sequence[Took]) -> float:
    return median(each.seconds / max(1, each.updates) for each in took)


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates by worth for each second; those that are worth nothing last, the cheapest first."""
    return sorted(candidates, key=lambda each: (-each.worth / max(each.cost_s, 1e-9), each.cost_s))


def within(candidates: Sequence[Candidate], budget_s: float, jobs: int = 1) -> Mapping[str, list[CellRun]]:
    """The best candidates that fit into the budget together, `jobs` at a time and none longer, by paper, best first."""
    chosen: dict[str, list[CellRun]] = {}
    left_s = budget_s * jobs
    for each in best_first(candidates):
        if each.cost_s <= min(left_s, budget_s):
            left_s -= each.cost_s
            chosen.setdefault(each.paper, []).append(each.run)
    return chosen


def candidates(papers: Sequence[PaperRuns], root: Path, tell: Tell) -> list[Candidate]:
    """The runs of all papers that are missing, best first; finished runs in `root` are read, and kept in the caches."""
    index = RunIndex(root)
    for each in papers:
        cache_finished(each.cells, index, each.cache, each.wanted, tell)
    done = {each.name: each.done for each in papers}
    took = [
        Took(each.cells.paper.name, run.cell, run.scale, kind_of(spec), spec.updates, seconds)
        for each in papers
        for run, seconds in done[each.name].items()
        if seconds is not None
        for spec in (each.cells.spec(run),)
    ]
    return best_first(
        Candidate(each.name, run, spec.updates, cost_s(paper, run, kind_of(spec), spec.updates, took), worth)
        for each in papers
        for paper in (each.cells.paper,)
        for run, worth in worths(paper, each.rows, done[each.name], each.size).items()
        for spec in (each.cells.spec(run),)
    )
