"""From cells to runs: which cell, with which seed, at which size, and how to run it; which of them rows need.

A cell at a size is an ordinary trial: one variant of a scenario file, with overrides. So it can be run by hand, and
whoever ran it, its result counts. A paper declares its cells; those of a sweep come from a scenario (points.py).
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import edgebed
from edgebed.errors import ScenarioError
from edgebed.papers.paper import Cell, Paper, Row
from edgebed.runtimes import Runtime
from edgebed.scenario.choices import Interval, write_interval
from edgebed.scenario.load import load_scenario, written_trial
from edgebed.scenario.plan import Plan
from edgebed.scenario.planning import plan_trials
from edgebed.scenario.problems import choose
from edgebed.scenario.schema import Scenario


class Size(NamedTuple):
    """What the user asks for, instead of what the paper's cells say; None: as they say."""

    scale: float | None = None
    seeds: int | None = None


DECLARED = Size()


class CellRun(NamedTuple):
    """What one run is to measure."""

    cell: str
    scale: float
    """Share of the scenario's updates."""
    seed: int


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to run a cell with a seed."""

    scenario: Path
    place: str
    """The same file as seen from a checkout."""
    variant: str
    runtime: Runtime
    sets: tuple[str, ...]
    updates: int
    settings: dict[str, Any] = field(hash=False, compare=False)
    """The trial as it is written in the scenario and in `sets`."""

    @property
    def command(self) -> str:
        """The ordinary command that does the same."""
        words = ["edgebed", "run", self.place, "--runtime", self.runtime, "--variant", self.variant]
        return shlex.join([*words, *(word for each in self.sets for word in ("--set", each))])


def check_rows(paper: Paper, rows: Iterable[str]) -> list[str]:
    """The rows that are meant, in the paper's order, all if none is named; ScenarioError with what there is."""
    named = dict.fromkeys(rows)
    unknown = [name for name in named if name not in paper.rows]
    if unknown:
        raise ScenarioError(*(f"{paper.name} has no row '{name}'; {choose(name, paper.rows)}" for name in unknown))
    return [name for name in paper.rows if not named or name in named]


def runs_of_row(paper: Paper, row: Row, size: Size = DECLARED) -> dict[int, dict[str, CellRun]]:
    """Seed -> cell -> run, for every seed that all cells of the row are to be run with; none where it has no cell."""
    cells = {name: paper.cells[name] for name in row.cells}
    seeds = min((size.seeds or cell.seeds for cell in cells.values()), default=0)
    return {
        seed: {name: CellRun(name, size.scale or cell.scale, seed) for name, cell in cells.items()}
        for seed in range(1, seeds + 1)
    }


def runs_of_rows(paper: Paper, rows: Sequence[str], size: Size = DECLARED) -> list[CellRun]:
    """Every run that the rows need, once; all of the first seed before any of the second."""
    found = [
        run for name in rows for cells in runs_of_row(paper, paper.rows[name], size).values() for run in cells.values()
    ]
    return sorted(dict.fromkeys(found), key=lambda run: run.seed)  # stable: otherwise in the paper's order


class Recipes:
    """Makes recipes and plans of cells; reads each scenario file once and each data set a few times."""

    def __init__(self, declared: Mapping[str, Cell], folder: Path, place: str, sets: Sequence[str] = ()) -> None:
        """Cells by name, the folder of their scenario files, that folder as commands name it, options of all cells."""
        self.declared = declared
        self.sets = tuple(sets)
        self.folder = folder
        self.place = place
        self._scenarios: dict[Path, Scenario] = {}
        self._plans: dict[CellRun, Plan] = {}

    def scenario(self, cell: str) -> Scenario:
        """The scenario that a cell is a variant of, without its overrides; ScenarioError where the file is unfit."""
        path = self.folder / self.declared[cell].scenario
        if path not in self._scenarios:
            self._scenarios[path] = load_scenario(path, self.sets)
        return self._scenarios[path].only([self.declared[cell].variant])

    def recipe(self, run: CellRun) -> Recipe:
        """How to run it; ScenarioError where its scenario file is unfit."""
        cell = self.declared[run.cell]
        path = self.folder / cell.scenario
        trial = self.scenario(run.cell).trials[cell.variant]
        if trial.stop.updates is None:
            raise ScenarioError(f"{path}: variant '{cell.variant}' has no stop.updates, which every cell needs")
        updates, sets = trial.stop.updates, [f"seed={run.seed}"]
        if run.scale != 1:
            updates = max(1, round(updates * run.scale))
            every = write_interval(scaled(trial.evaluation.every, run.scale))
            sets += [f"stop.updates={updates}", f"evaluation.every={every}"]
        sets += (*self.sets, *cell.sets(run.scale))
        settings = written_trial(path, sets, cell.variant)
        return Recipe(
            scenario=path,
            place=str(Path(self.place, cell.scenario)),
            variant=cell.variant,
            runtime=cell.runtime,
            sets=tuple(sets),
            updates=updates,
            settings=settings,
        )

    def plans(self, runs: Iterable[CellRun]) -> dict[CellRun, Plan]:
        """What each trial would be; those that differ in the variant alone are planned at once."""
        recipes = {run: self.recipe(run) for run in runs}
        groups: dict[tuple[Path, tuple[str, ...]], list[CellRun]] = {}
        for run, recipe in recipes.items():
            if run not in self._plans:
                groups.setdefault((recipe.scenario, recipe.sets), []).append(run)
        for (path, sets), members in groups.items():
            scenario = load_scenario(path, sets).only([recipes[run].variant for run in members])
            plans = {planned.plan.trial: planned.plan for planned in plan_trials(scenario)}
            self._plans |= {run: plans[recipes[run].variant] for run in members}
        return {run: self._plans[run] for run in recipes}


class Cells(Recipes):
    """Those of a paper."""

    def __init__(self, paper: Paper) -> None:
        """ScenarioError where the folder of the paper's scenarios is not to be found."""
        super().__init__(paper.cells, scenario_folder(paper.name), f"scenarios/{paper.name}")
        self.paper = paper


def scaled(every: Interval, scale: float) -> Interval:
    """The same number of evaluations over a share of the updates."""
    if every.updates is not None:
        return Interval(updates=max(1, round(every.updates * scale)))
    return Interval(time_s=(every.time_s or 0.0) * scale)


def scenario_folder(name: str) -> Path:
    """`scenarios/<name>` in the current folder, else in the package's checkout; ScenarioError if neither is there."""
    checkout = Path(edgebed.__file__).resolve().parents[2]
    places = [Path("scenarios", name), checkout / "scenarios" / name]
    for place in places:
        if place.is_dir():
            return place
    looked = " and ".join(str(place.absolute()) for place in places)
    raise ScenarioError(f"the scenarios of {name} are not there; looked for {looked}. Go to a checkout of edgebed.")
