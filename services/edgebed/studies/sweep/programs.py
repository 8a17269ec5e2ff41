"""A sweep whose nodes run programs of the user's: each variant at each point is a real run, one after the other.

They end by themselves, or by the scenario's `stop`, and what came of each is its summary. A run that is there already
is found by its plan, and counts where the program's files are what they were.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from edgebed.core.errors import EdgebedError
from edgebed.core.plan import ProgramsPlan
from edgebed.core.runtimes import Runtime
from edgebed.journal.programs.summary import ProgramSummary
from edgebed.planning.program_plans import check_programs, plan_programs
from edgebed.running.results import Run
from edgebed.running.run import Options, ProgressLike, ReportWriter, programs_checked
from edgebed.running.run import run as run_scenario
from edgebed.scenario.load import load_scenario
from edgebed.studies.cells.run_index import RunIndex
from edgebed.studies.sweep.points import Point, SweepPlan


class ProgramPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A variant at one value of each axis, with a seed."""

    point: str
    """Its name, e.g. `slow, uplink 1mbit`, with its seed where there are several."""
    variant: str
    values: dict[str, str]
    """Values by the axes' keys."""
    seed: int
    run: str = ""
    """The newest run of it; empty: there is none."""
    summary: ProgramSummary | None = None
    """What came of that."""


class ProgramSweep(msgspec.Struct, frozen=True, kw_only=True):
    """All that a sweep of programs has found."""

    scenario: str
    question: str
    runtime: Runtime
    axes: dict[str, tuple[str, ...]]
    """Values of each axis, by key."""
    seeds: int
    points: tuple[ProgramPoint, ...]


class ProgramPoints:
    """The points of a sweep, planned for a runtime; ScenarioError where one cannot be run."""

    def __init__(self, points: SweepPlan, runtime: Runtime, root: Path, *, to_run: bool) -> None:
        """`root`: the folder of all runs; `to_run`: whether this machine is to be able to run them."""
        self.points, self.runtime, self.root, self.index = points, runtime, root, RunIndex(root)
        self.wanted: list[tuple[ProgramPoint, ProgramsPlan, tuple[str, ...]]] = []
        """Each with its plan and its options, all of the first seed before any of the second."""
        options = Options(runtime=runtime, emulation="auto", trace=False, force=False)
        for seed in range(1, points.seeds + 1):
            for values in dict.fromkeys(point.values for point in points.all):
                sets = (*points.sets, *points.sets_of(Point("", values)), f"seed={seed}")
                scenario = load_scenario(points.path, sets).only(points.methods)
                check_programs(scenario, runtime, options.emulation)
                for each in programs_checked(scenario, options) if to_run else plan_programs(scenario):
                    name = points.name(Point(each.plan.trial, values))
                    point = ProgramPoint(
                        point=f"{name}, seed {seed}" if points.seeds > 1 else name,
                        variant=each.plan.trial,
                        values=dict(zip((axis.key for axis in points.axes), values, strict=True)),
                        seed=seed,
                    )
                    self.wanted.append((point, each.plan, sets))

    def run(
        self, report: ReportWriter, progress: ProgressLike | None, tell: Callable[[str], None], *, resume: bool
    ) -> tuple[str, ...]:
        """Run all that is not there, if that counts; return what failed, a sentence each. KeyboardInterrupt ends it."""
        problems = []
        for number, (point, plan, sets) in enumerate(self.wanted, start=1):
            there = self.index.completed(plan, self.runtime) if resume else None
            tell(f"[{number}/{len(self.wanted)}] {point.point}{f' is there: {there.run.name}' if there else ''}")
            if there:
                continue
            try:
                made = run_scenario(
                    report, self.points.path, runtime=self.runtime, set=sets, variants=(point.variant,),
                    runs_dir=self.root, progress=progress,
                )  # fmt: skip
            except EdgebedError as error:
                problems.append(f"{point.point}: {error}")
                continue
            if made.exit_code == 130:
                raise KeyboardInterrupt
            problems += [f"{point.point}: {each.reason}" for each in made.summary.programs if not each.is_sound]
        return tuple(problems)

    def result(self) -> ProgramSweep:
        """What the newest run of each point has found."""
        found = []
        for point, plan, _ in self.wanted:
            if there := next(self.index.find(plan, self.runtime), None):
                summary = Run(there.run).programs[plan.trial].summary
                point = msgspec.structs.replace(point, run=there.run.name, summary=summary)  # noqa: PLW2901 - the same
            found.append(point)
        return ProgramSweep(
            scenario=self.points.scenario.name,
            question=self.points.scenario.question,
            runtime=self.runtime,
            axes={axis.key: axis.values for axis in self.points.axes},
            seeds=self.points.seeds,
            points=tuple(found),
        )
