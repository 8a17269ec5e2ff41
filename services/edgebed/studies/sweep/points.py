"""From the section `sweep` of a scenario to the points that are run, and to cells that run them.

A point is a method at one value of each axis. As a cell it is a variant of the scenario with options: the axes' values,
the level at which it ends, and its measured times (costs.py). Pure, but for reading the scenario file.
"""

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TEST, VALIDATION, Level, TaskMeasure
from edgebed.core.package import SHIPPED
from edgebed.core.units import parse_rate
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.scenario.load import SWEEP, load_scenario, written_trial
from edgebed.scenario.schema import Scenario
from edgebed.scenario.shipped import scenario_file
from edgebed.scenario.sweep_section import SweepSection, value_text
from edgebed.studies.cells.cells import CellRun, CellSpecs
from edgebed.studies.measures import part_of
from edgebed.studies.papers.paper import Cell

RATES = ("uplink", "downlink")
"""Last words of the keys whose values are rates, over which methods can break even."""


class Point(NamedTuple):
    """A method at one value of each axis."""

    method: str
    """Name of the variant."""
    values: tuple[str, ...]
    """Values of the axes, as options write them."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A setting and the values it takes."""

    key: str
    label: str
    """Name in tables and charts."""
    values: tuple[str, ...]
    """Values as options write them; rates in increasing order."""

    @property
    def is_rate(self) -> bool:
        """Whether the axis's values are bits a second."""
        return self.key.rpartition(".")[2] in RATES

    @property
    def rates_bit_s(self) -> tuple[int, ...]:
        """The axis's values in bit/s, where they are rates."""
        return tuple(parse_rate(value) for value in self.values)


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """All points of a sweep, and what they have in common."""

    path: Path
    scenario: Scenario
    sets: tuple[str, ...]
    """The user's options, without those of the section itself."""
    axes: tuple[Axis, ...]
    methods: tuple[str, ...]
    seeds: int
    section: SweepSection

    @property
    def level(self) -> Level:
        """Where each run ends, and what everything is counted to."""
        return self.section.required_level

    @property
    def measure(self) -> TaskMeasure:
        """The measure of the task that is to reach a value."""
        measures = self.scenario.training[self.methods[0]].measures
        return next(each for each in measures if each.name == self.level.measure)

    @property
    def selects_by(self) -> str:
        """The part of the data that it is reached on."""
        tasks = [self.scenario.training[method].task for method in self.methods]
        return part_of(TEST if task.validation is None else VALIDATION for task in tasks)

    @property
    def all(self) -> list[Point]:
        """Every combination of the axes' values, with every method."""
        combinations = itertools.product(*(axis.values for axis in self.axes))
        return [Point(method, values) for values in combinations for method in self.methods]

    @property
    def runs(self) -> list[CellRun]:
        """Every point with every seed, all of the first seed before any of the second."""
        return [CellRun(self.name(point), 1.0, seed) for seed in range(1, self.seeds + 1) for point in self.all]

    def name(self, point: Point) -> str:
        """Name of a point, e.g. `top-k, uplink 1mbit, count 4`."""
        return ", ".join((point.method, *map(" ".join, zip(self.labels, point.values, strict=True))))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the axes."""
        return tuple(axis.label for axis in self.axes)

    def sets_of(self, point: Point) -> tuple[str, ...]:
        """The options that make the point's trial of the scenario, whose own trials may end at another measure."""
        values = tuple(f"{axis.key}={value}" for axis, value in zip(self.axes, point.values, strict=True))
        if self.section.level is None:  # of programs
            return values
        level = self.section.level_values
        own = {key: None for trial in self.scenario.training.values() for key in trial.stop.level_values}
        away = (f"stop.{key}=null" for key in own if key not in level)
        return (*values, *away, *(f"stop.{key}={value}" for key, value in level.items()))

    def planned(self) -> Iterator[tuple[Point, PlannedTraining]]:
        """Each point's trial with the times that the scenario has; ScenarioError where one cannot be run."""
        for values in dict.fromkeys(point.values for point in self.all):
            here = [Point(method, values) for method in self.methods]
            scenario = load_scenario(self.path, (*self.sets, *self.sets_of(here[0]))).only(self.methods)
            trials = {trial.plan.trial: trial for trial in plan_trials(scenario)}
            yield from ((point, trials[point.method]) for point in here)

    def has_own(self, point: Point, key: str) -> bool:
        """Whether the scenario itself has a value for this setting of the task."""
        return key in written_trial(self.path, (*self.sets, *self.sets_of(point)), point.method)["task"]

    def recipes(self, times: Mapping[Point, Sequence[str]]) -> CellSpecs:
        """The recipes of the points; `times` are options besides."""
        declared = {
            self.name(point): _cell(self.path.name, point.method, (*self.sets_of(point), *times.get(point, ())))
            for point in self.all
        }
        return CellSpecs(declared, self.path.parent, str(place_of(self.path).parent), self.sets)


def read_points(path: Path, sets: Sequence[str] = ()) -> SweepPlan:
    """The points of the scenario's section; ScenarioError where it has none, or is unfit."""
    path = scenario_file(path)
    scenario = load_scenario(path, sets)
    section = scenario.sweep
    if section is None:
        raise ScenarioError(
            f"{path}: the scenario has no section sweep, which says what is varied, e.g. "
            "sweep: { accuracy: 0.9, over: { fleet.edge.uplink: [1mbit, 10mbit] } }, without accuracy for a program"
        )
    firsts = {each: each.partition("=")[0].partition(".")[0].strip() for each in sets}
    others = [each for each in sets if firsts[each] != SWEEP]
    if seeds := [each for each in others if firsts[each] == "seed"]:
        raise ScenarioError(f"--set {seeds[0]}: a sweep is run with seeds 1, 2, …; use --set sweep.seeds=3")
    return SweepPlan(
        path=path,
        scenario=scenario,
        sets=tuple(others),
        axes=axes_of({key: [value_text(value) for value in values] for key, values in section.over.items()}),
        methods=tuple(section.methods or scenario.trials),
        seeds=section.seeds,
        section=section,
    )


def axes_of(over: Mapping[str, Sequence[str]]) -> tuple[Axis, ...]:
    """The axes of dotted keys; each is called by the last word of its key, by all of it where two would be alike."""
    last = [key.rpartition(".")[2] for key in over]
    axes = []
    for key, word in zip(over, last, strict=True):
        axis = Axis(key=key, label=word if last.count(word) == 1 else key, values=tuple(over[key]))
        if axis.is_rate:
            axis = Axis(key=key, label=axis.label, values=tuple(sorted(axis.values, key=parse_rate)))
        axes.append(axis)
    return tuple(axes)


def place_of(path: Path) -> Path:
    """The file as seen from the current folder or from where edgebed's own are, for commands to repeat."""
    for root in (Path.cwd(), SHIPPED):
        if path.resolve().is_relative_to(root):
            return path.resolve().relative_to(root)
    return Path(path.name)


def sweep_command(points: SweepPlan, sets: Sequence[str], runtime: str = "") -> str:
    """The command that makes the same sweep again."""
    words = ["edgebed", "sweep", str(place_of(points.path)), *(["--runtime", runtime] if runtime else [])]
    return shlex.join([*words, *(word for each in sets for word in ("--set", each))])


def _cell(scenario: str, variant: str, sets: tuple[str, ...]) -> Cell:
    return Cell(scenario=scenario, variant=variant, sets=lambda _: sets)
