"""From cells to runs: which cells rows need, with which seeds, at which size, and how to run them.

A cell at a size is an ordinary trial: one variant of a scenario file, with overrides. So it can be run by hand, and
its result counts whoever ran it. A paper declares its cells; those of a sweep come from a scenario (points.py).
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from edgebed.core.errors import ScenarioError
from edgebed.core.package import SHIPPED
from edgebed.core.plan import TrainingPlan
from edgebed.core.runtimes import Runtime
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.planning.planning import plan_trials
from edgebed.scenario.choices import Interval, write_interval
from edgebed.scenario.load import load_scenario, written_trial
from edgebed.scenario.mistakes.problems import choose
from edgebed.scenario.schema import Scenario
from edgebed.studies.papers.paper import Cell, Paper


class Size(NamedTuple):
    """The size that the user asks for, in place of the paper's cells'; None: as they say."""

    scale: float | None = None
    seeds: int | None = None
    first_seed: int = 1
    """The first of its seeds, which follow each other."""


DECLARED = Size()


class CellRun(NamedTuple):
    """A cell, a size and a seed: what one run is to measure."""

    cell: str
    scale: float
    """Share of the scenario's updates to run."""
    seed: int


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """How to run a cell with a seed."""

    scenario: Path
    place: str
    """The scenario file as seen from a checkout."""
    variant: str
    runtime: Runtime
    sets: tuple[str, ...]
    updates: int
    settings: dict[str, Any] = field(hash=False, compare=False)
    """The trial's settings as written in the scenario and in `sets`."""

    @property
    def command(self) -> str:
        """The ordinary command that runs the cell."""
        words = ["edgebed", "run", self.place, "--runtime", self.runtime, "--variant", self.variant]
        return shlex.join([*words, *(word for each in self.sets for word in ("--set", each))])


def size_of(scale: float | None, seeds: int | None, first_seed: int = 1) -> Size:
    """The size of a reproduction; ScenarioError where the scale is no share."""
    if scale is not None and not 0 < scale <= 1:
        raise ScenarioError(f"--scale: {scale:g} is no share of the paper's updates; above 0 and at most 1")
    return Size(scale, seeds, first_seed)


def check_rows(paper: Paper, rows: Iterable[str]) -> list[str]:
    """The rows that are named, in the paper's order, all if none is; ScenarioError with the rows there are."""
    named = dict.fromkeys(rows)
    unknown = [name for name in named if name not in paper.rows]
    if unknown:
        raise ScenarioError(*(f"{paper.name} has no row '{name}'; {choose(name, paper.rows)}" for name in unknown))
    return [name for name in paper.rows if not named or name in named]


def runs_of_row(paper: Paper, row: str, size: Size = DECLARED) -> dict[int, dict[str, CellRun]]:
    """The runs that a row needs, by seed and cell, for every seed that its table states; none where it has no cell."""
    cells = {name: paper.cells[name] for name in paper.rows[row].cells}
    seeds = (size.seeds or paper.seeds[row]) if cells else 0
    return {
        seed: {name: CellRun(name, size.scale or cell.scale, seed) for name, cell in cells.items()}
        for seed in range(size.first_seed, size.first_seed + seeds)
    }


def runs_of_rows(paper: Paper, rows: Sequence[str], size: Size = DECLARED) -> list[CellRun]:
    """The runs that the rows need, each once; all of the first seed before any of the second."""
    found = [run for name in rows for cells in runs_of_row(paper, name, size).values() for run in cells.values()]
    return sorted(dict.fromkeys(found), key=lambda run: run.seed)  # stable: otherwise in the paper's order


class CellSpecs:
    """Makes recipes and plans of cells; reads each file, and tries each task, once; reads each data set a few times."""

    def __init__(self, declared: Mapping[str, Cell], folder: Path, place: str, sets: Sequence[str] = ()) -> None:
        """Take cells by name, the folder of their scenario files, its name for commands, and options of all cells."""
        self.declared = declared
        self.sets = tuple(sets)
        self.folder = folder
        self.place = place
        self._scenarios: dict[Path, Scenario] = {}
        self._specs: dict[CellRun, CellSpec] = {}
        self._plans: dict[CellRun, TrainingPlan] = {}
        self._data: dict[str, DataSet] = {}
        self._tried: dict[bytes, str] = {}

    def scenario(self, cell: str) -> Scenario:
        """The scenario that a cell is a variant of, without its overrides; ScenarioError where the file is unfit."""
        path = self.folder / self.declared[cell].scenario
        if path not in self._scenarios:
            self._scenarios[path] = load_scenario(path, self.sets)
        return self._scenarios[path].only([self.declared[cell].variant])

    def spec(self, run: CellRun) -> CellSpec:
        """The recipe of a run; ScenarioError where its scenario file is unfit."""
        if run not in self._specs:
            self._specs[run] = self._spec(run)
        return self._specs[run]

    def _spec(self, run: CellRun) -> CellSpec:
        cell = self.declared[run.cell]
        path = self.folder / cell.scenario
        trial = self.scenario(run.cell).training[cell.variant]
        if trial.stop.updates is None:
            raise ScenarioError(f"{path}: variant '{cell.variant}' has no stop.updates, which every cell needs")
        updates, sets = trial.stop.updates, [f"seed={run.seed}"]
        if run.scale != 1:
            updates = max(1, round(updates * run.scale))
            every = write_interval(scaled(trial.evaluation.every, run.scale))
            sets += [f"stop.updates={updates}", f"evaluation.every={every}"]
        sets += (*self.sets, *cell.sets(run.scale))
        settings = written_trial(path, sets, cell.variant)
        return CellSpec(
            scenario=path,
            place=str(Path(self.place, cell.scenario)),
            variant=cell.variant,
            runtime=cell.runtime,
            sets=tuple(sets),
            updates=updates,
            settings=settings,
        )

    def plans(self, runs: Iterable[CellRun]) -> dict[CellRun, TrainingPlan]:
        """The plan of each run's trial; those that differ in the variant alone are planned at once."""
        specs = {run: self.spec(run) for run in runs}
        groups: dict[tuple[Path, tuple[str, ...]], list[CellRun]] = {}
        for run, spec in specs.items():
            if run not in self._plans:
                groups.setdefault((spec.scenario, spec.sets), []).append(run)
        for (path, sets), members in groups.items():
            scenario = load_scenario(path, sets).only([specs[run].variant for run in members])
            planned = plan_trials(scenario, loaded=self._data, tried=self._tried)
            plans = {each.plan.trial: each.plan for each in planned}
            self._plans |= {run: plans[specs[run].variant] for run in members}
        return {run: self._plans[run] for run in specs}


class PaperCells(CellSpecs):
    """The cells that a paper declares, as recipes."""

    def __init__(self, paper: Paper) -> None:
        """ScenarioError where the folder of the paper's scenarios is not found."""
        super().__init__(paper.cells, scenario_folder(paper.name), f"scenarios/{paper.name}")
        self.paper = paper


def scaled(every: Interval, scale: float) -> Interval:
    """An interval that gives the same number of evaluations over a share of the updates."""
    if every.updates is not None:
        return Interval(updates=max(1, round(every.updates * scale)))
    return Interval(time_s=(every.time_s or 0.0) * scale)


def scenario_folder(name: str) -> Path:
    """`scenarios/<name>` in the current folder, else where edgebed's own are; ScenarioError if there is neither."""
    places = [Path("scenarios", name), SHIPPED / "scenarios" / name]
    for place in places:
        if place.is_dir():
            return place
    looked = " and ".join(str(place.absolute()) for place in places)
    raise ScenarioError(
        f"the scenarios of {name} are not there; looked for {looked}; go to the folder that has scenarios/{name}"
    )
