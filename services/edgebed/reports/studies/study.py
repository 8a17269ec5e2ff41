"""Studies of many runs, for Python as for the command line: run what is wanted and missing, evaluate it, write a page.

cells ---> runs ---> result ---> page with charts, and beside it what is left of the runs
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from edgebed.core.errors import Place, ScenarioError
from edgebed.core.quantities import count_text, seconds_text
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.journal.run_folder import runs_root, write_atomically
from edgebed.reports.live.notebook import showing
from edgebed.reports.run.report import write_report
from edgebed.reports.run.runs_index import write_index, write_report_and_index
from edgebed.reports.studies.agreement_page import agreement_page
from edgebed.reports.studies.comparison_page import comparison_page
from edgebed.reports.studies.front_page import ARTIFACT, FRONT, Reproduced, artifact_page, front_page
from edgebed.reports.studies.program_sweep_page import program_sweep_page
from edgebed.reports.studies.reproduction_page import reproduction_page
from edgebed.reports.studies.sweep_page import sweep_page
from edgebed.reports.writing.html import brief_html
from edgebed.reports.writing.markdown import make_folder, write
from edgebed.reports.writing.page import Page
from edgebed.running.results import Run, load
from edgebed.running.run import ProgressLike, refuse_objects
from edgebed.scenario.load import load_scenario
from edgebed.scenario.overrides import Settings, options_of
from edgebed.scenario.shipped import scenario_file
from edgebed.scenario.source import from_plain, yaml_text
from edgebed.studies.agreement.run_agreement import Agreements, arms_by_trial, judge, run_all
from edgebed.studies.arms import gather
from edgebed.studies.cells.cells import CellRun, PaperCells, Size, check_rows, size_of
from edgebed.studies.cells.parallel import executing
from edgebed.studies.cells.result_cache import FILE, ResultCache
from edgebed.studies.cells.running_cells import CellRunner
from edgebed.studies.comparison.comparison import Comparison, compare_arms
from edgebed.studies.papers.registry import find_paper, papers
from edgebed.studies.reproduction import analytic_rows
from edgebed.studies.reproduction.budget import Candidate, PaperRuns, candidates, within
from edgebed.studies.reproduction.reproduction import Reproduction, evaluate
from edgebed.studies.sweep.costs import FILE as COSTS
from edgebed.studies.sweep.points import SweepPlan, read_points, sweep_command
from edgebed.studies.sweep.programs import ProgramPoints, ProgramSweep
from edgebed.studies.sweep.sweep_result import SweepResult, evaluate_sweep
from edgebed.studies.sweep.timing import measured

R = TypeVar("R")
SEEDS = 3
"""Seeds of an agreement where none are asked for."""
KEPT = "scenario.yaml"
"""File of a scenario that Python gave, among the charts of its sweep."""
WHY_NO_OBJECTS = "a sweep keeps its results for others"
Display = AbstractContextManager[ProgressLike | None]
"""What shows the progress of runs while it is open."""


@dataclass(frozen=True, kw_only=True)
class Study(Generic[R]):
    """What came of a study."""

    result: R
    view: Page
    """What its page shows, and what of it a terminal does."""
    page: Path | None = None
    """The page in HTML; None where none was written."""
    problems: tuple[str, ...] = ()
    """What could not be run or computed, a sentence each."""

    def _repr_html_(self) -> str:
        """What a terminal shows of it, for notebooks."""
        return brief_html(self.view)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a study runs what is missing."""

    resume: bool = False
    """Reuse what there is, and resume what broke off; else all is run anew."""
    run: bool = True
    """Else nothing is run: existing runs are evaluated."""
    processes: int | None = None
    """Processes that compute a run's gradients (default: all cores; one where runs are made at the same time)."""
    runs_dir: str | Path | None = None
    display: Display = field(default_factory=showing)
    """By default progress is shown in IPython and in notebooks."""
    tell: Callable[[str], None] = lambda _: None
    """Is told of each step, a sentence each."""

    @property
    def root(self) -> Path:
        """The folder of all runs."""
        return runs_root(self.runs_dir)

    def run_cells(
        self, cells: Any, wanted: Sequence[CellRun], cache: ResultCache, jobs: int, executor: Executor | None
    ) -> tuple[str, ...]:
        """Run what is wanted and missing; return what went wrong, a sentence each. KeyboardInterrupt ends it."""
        with self.display as progress, executing(jobs, executor) as spreading:
            runner = CellRunner(
                cells=cells, root=self.root, report=write_report, cache=cache, resume=self.resume,
                processes=self.processes, progress=progress, tell=self.tell, executor=spreading,
            )  # fmt: skip
            try:
                runner.run(list(wanted))
            finally:
                write_index(self.root)
        return runner.problems


def folder_of(output: str | Path | None, default: Path) -> Path:
    """Return the folder of a page; ScenarioError where a file is in its place."""
    folder = Path(output) if output is not None else default
    if folder.exists() and not folder.is_dir():
        raise ScenarioError(f"--output: {folder} is not a folder; the page and its charts need one")
    return folder


def reproduce(
    paper: str,
    *,
    rows: Sequence[str] = (),
    scale: float | None = None,
    seeds: int | None = None,
    first_seed: int = 1,
    output: str | Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    run_options: RunOptions | None = None,
) -> Study[Reproduction]:
    """Reproduce a paper's rows, all or those named, and write the page into `output`.

    Arguments:
        paper: a name, e.g. hardy2017, or `package.module:NAME`.
        rows: names of rows (default: all).
        scale: share of the paper's updates, above 0 and at most 1 (default: each cell's own).
        seeds: number of seeds (default: each cell's own).
        first_seed: the first of them; another than 1 tells whether findings hold with seeds that were not used before.
        output: the page's folder (default: `reproductions` in the folder of runs).
        jobs: number of simulated runs that are made at a time.
        executor: makes as many at a time as it likes, e.g. `distributed.Client(address).get_executor()`.
        run_options: how missing runs are made, and where runs are.

    Raises ScenarioError for what is wrong with these, before anything runs.

    Example:
        edgebed.reproduce("hardy2017", scale=0.02, run_options=edgebed.RunOptions(resume=True)).page
    """
    run_options = run_options or RunOptions()
    asked = _paper_runs(paper, rows, size_of(scale, seeds, first_seed), output, run_options, writes=True)
    return _reproduced(asked, asked.wanted, run_options, jobs, executor)


def _paper_runs(
    name: str, rows: Sequence[str], size: Size, output: str | Path | None, run_options: RunOptions, *, writes: bool
) -> PaperRuns:
    """Return what is asked of a paper, and what is kept of its runs; its folder is made if anything is written."""
    declared = find_paper(name)
    chosen = check_rows(declared, rows)
    folder = folder_of(output, run_options.root / "reproductions")
    # before hours of training, not after
    beside = make_folder(folder, declared.name) if writes else folder / declared.name
    cells = PaperCells(declared)
    return PaperRuns(name, cells, ResultCache(cells, beside / FILE), chosen, size)


def _reproduced(
    asked: PaperRuns, wanted: Sequence[CellRun], run_options: RunOptions, jobs: int, executor: Executor | None
) -> Study[Reproduction]:
    """Make what is wanted and missing, evaluate all rows, and write the page."""
    declared, cache, beside = asked.cells.paper, asked.cache, asked.cache.path.parent
    computed = analytic_rows.AnalyticRows(declared, beside / analytic_rows.FILE)
    problems: tuple[str, ...] = ()
    if run_options.run:
        problems = tuple(computed.compute(asked.rows, run_options.tell, resume=run_options.resume))
        problems += run_options.run_cells(asked.cells, wanted, cache, jobs, executor)
    result, curves = evaluate(
        asked.cells, run_options.root, cache, asked.rows, asked.size, run_options.tell, asked.name, computed.values
    )
    cache.write()
    view = reproduction_page(declared, result, curves, asked.rows)
    return Study(result=result, page=write(view, beside.parent), view=view, problems=problems)


def reproduce_within(
    budget_s: float,
    names: Sequence[str],
    *,
    rows: Sequence[str] = (),
    scale: float | None = None,
    seeds: int | None = None,
    first_seed: int = 1,
    output: str | Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    run_options: RunOptions | None = None,
) -> list[Study[Reproduction]]:
    """Make those missing runs of the papers that decide most rows in `budget_s` seconds on `jobs` cores.

    With an `executor`, `jobs` is how many it runs at a time. What there is counts. The other arguments and the errors
    are those of `reproduce`; a page is written for each paper.
    """
    run_options, size = replace(run_options or RunOptions(), resume=True), size_of(scale, seeds, first_seed)
    asked = [_paper_runs(name, rows, size, output, run_options, writes=True) for name in names]
    missing = candidates(asked, run_options.root, run_options.tell)
    chosen = within(missing, budget_s, jobs)
    count = sum(len(runs) for runs in chosen.values())
    run_options.tell(f"{count} of {count_text(len(missing), 'missing run')} chosen for {seconds_text(budget_s)}")
    at_a_time = jobs if executor is None else 1  # an executor decides itself
    return [_reproduced(each, chosen.get(each.name, ()), run_options, at_a_time, executor) for each in asked]


def reproduce_all(
    *,
    output: str | Path | None = None,
    run_options: RunOptions | None = None,
    budget_s: float | None = None,
    **options: Any,
) -> list[Study[Reproduction]]:
    """Reproduce every paper there is, and write a front page and an artifact appendix beside their pages.

    `budget_s` is that of `reproduce_within`, `options` are those of `reproduce`.
    """
    run_options, names = run_options or RunOptions(), list(papers())
    if budget_s is None:
        studies = [reproduce(name, output=output, run_options=run_options, **options) for name in names]
    else:
        studies = reproduce_within(budget_s, names, output=output, run_options=run_options, **options)
    folder = folder_of(output, run_options.root / "reproductions")
    reproduced = [
        Reproduced(find_paper(name), study.result, study.view) for name, study in zip(names, studies, strict=True)
    ]
    written = {FRONT, ARTIFACT, *names}
    others = sorted(file.stem for file in folder.glob("*.md") if file.stem not in written)
    write(front_page(reproduced, others), folder)
    write(artifact_page(reproduced), folder)
    return studies


def missing_runs(
    names: Sequence[str], *, rows: Sequence[str], size: Size, output: str | Path | None, run_options: RunOptions
) -> list[Candidate]:
    """Return the runs that the rows of these papers lack, those that decide most in a second first."""
    asked = [_paper_runs(name, rows, size, output, run_options, writes=False) for name in names]
    return candidates(asked, run_options.root, run_options.tell)


def sweep(
    scenario: str | Path | Mapping[str, Any],
    *,
    set: Settings = (),  # noqa: A002 # the name of the command line's option
    runtime: Runtime | None = None,
    output: str | Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    run_options: RunOptions | None = None,
) -> Study[SweepResult] | Study[ProgramSweep]:
    """Run every method at every point of the scenario's section `sweep`, and write the page into `output`.

    Of a program of one's own it is every variant, which is run for real, one after the other.

    Arguments:
        scenario: a file, the name of a scenario that comes with edgebed, or a mapping with what a file would have. That
            is kept as `NAME/scenario.yaml` beside the page, so that the sweep can be resumed.
        set: overrides, as for `edgebed.run`. A model or data of a notebook is refused: a sweep keeps its results.
        runtime: of programs, `process` or `docker` (default: process); methods are swept in simulation.
        output: the page's folder (default: `sweeps` in the folder of runs).
        jobs, executor, run_options: as for `edgebed.reproduce`; of programs `jobs` is 1, since they share the machine.

    Raises ScenarioError where the scenario has no such section or is wrong, before anything runs.

    Example:
        edgebed.sweep("uplinks.yaml", set={"sweep.seeds": 3}).result
    """
    run_options = run_options or RunOptions()
    sets = options_of(set)
    folder = folder_of(output, run_options.root / "sweeps")
    points = read_points(
        _kept(scenario, sets, folder) if isinstance(scenario, Mapping) else scenario_file(scenario), sets
    )
    if points.scenario.runs_programs:
        return _sweep_programs(
            points, sets, runtime or "process", folder, run_options, alone=jobs == 1 and not executor
        )
    if runtime not in (None, "simulation"):
        raise ScenarioError(
            f"--runtime: methods are swept in simulation, and not in the {runtime} runtime; leave it out"
        )
    refuse_objects(points.scenario, ("model", "objective", "data"), WHY_NO_OBJECTS)
    charts = make_folder(folder, points.scenario.name)  # before hours of training, not after
    keep = run_options.resume or not run_options.run
    costs, cells = measured(points, charts / COSTS, run_options.tell, keep=keep, measure=run_options.run)
    cache = ResultCache(cells, charts / FILE)
    problems = run_options.run_cells(cells, points.runs, cache, jobs, executor) if run_options.run else ()
    result = evaluate_sweep(points, cells, run_options.root, cache, costs, run_options.tell)
    cache.keep_only(points.runs)
    cache.write()
    view = sweep_page(result, sweep_command(points, sets))
    return Study(result=result, page=write(view, folder), view=view, problems=problems)


def _sweep_programs(
    points: SweepPlan, sets: Sequence[str], runtime: Runtime, folder: Path, run_options: RunOptions, *, alone: bool
) -> Study[ProgramSweep]:
    if not alone:
        raise ScenarioError("--jobs, --dask: programs share this machine and run one after the other; leave it out")
    wanted = ProgramPoints(points, runtime, run_options.root, to_run=run_options.run)
    problems: tuple[str, ...] = ()
    if run_options.run:
        with run_options.display as progress:
            try:
                problems = wanted.run(write_report, progress, run_options.tell, resume=run_options.resume)
            finally:
                write_index(run_options.root)
    result = wanted.result()
    view = program_sweep_page(result, sweep_command(points, sets, runtime))
    return Study(result=result, page=write(view, folder), view=view, problems=problems)


def _kept(scenario: Mapping[str, Any], sets: Sequence[str], folder: Path) -> Path:
    """Write a scenario that Python gave into the folder of its sweep, whose results are kept for it.

    ScenarioError where it is wrong, and where it is only as a file, in whose folder its names of files are looked for.
    """
    loaded = load_scenario(scenario, sets)
    refuse_objects(loaded, ("model", "objective", "data"), WHY_NO_OBJECTS)
    path = make_folder(folder, loaded.name) / KEPT
    write_atomically(path, yaml_text(from_plain(scenario, Place("")).plain()).encode(), "--output")
    try:
        load_scenario(path, sets)
    except ScenarioError as error:
        remedy = f"{path}: the mapping is kept here, where names of files in it are looked for; give their whole paths"
        raise ScenarioError(*error.located, remedy) from None
    return path


def compare(
    runs: Sequence[Run | str | Path],
    *,
    baseline: str | None = None,
    to: float | None = None,
    measure: str | None = None,
    window: int | None = None,
    force: bool = False,
    runs_dir: str | Path | None = None,
) -> Comparison:
    """Compare the trials of runs over their seeds; shown in a notebook as a table.

    Arguments:
        runs: runs, each opened already or named as `edgebed.load` takes it. Those that differ in their seed alone are
            one arm.
        baseline: name of the arm that others are compared with (default: the first).
        to: value of `measure` that updates, seconds and bytes are counted to (default: that at which the scenarios
            stop, else the best round one that all reach).
        measure: name of a measure of the task (default: the headline).
        window: number of evaluations that a moving average is taken over (default: over how many the
            scenarios stop, else 3).
        force: compare arms with different data sets or models, too.
        runs_dir: the folder of runs (default: $EDGEBED_RUNS_DIR, else ./runs).

    Raises ScenarioError where there is no such run or arm, or runs cannot be compared.

    Example:
        edgebed.compare(["quickstart/1", "quickstart/2"], to=0.97).arms["adacomp"].measures["traffic_bytes_to"].mean
    """
    if isinstance(runs, str | Path):
        raise ScenarioError(f"runs: {str(runs)!r} is one run; give a list, e.g. ['{runs}']")
    if not _are_runs(runs):
        raise ScenarioError(f"runs: {runs!r:.80} is no list of runs; run a scenario first: [edgebed.run(…), …]")
    opened = [run if isinstance(run, Run) else load(run, runs_dir=runs_dir) for run in runs]
    return compared(opened, baseline=baseline, to=to, measure=measure, window=window, force=force).result


def _are_runs(given: object) -> bool:
    """Whether they are what runs are named by, or runs, whatever Python was told."""
    return isinstance(given, Sequence) and all(isinstance(each, Run | str | Path) for each in given)


def compared(runs: Sequence[Run], **options: Any) -> Study[Comparison]:
    """Compare the trials of runs; options and errors are those of `compare_arms`."""
    gathered = gather(runs)
    comparison = compare_arms(gathered, **options)
    return Study(result=comparison, view=comparison_page(comparison, gathered.arms))


def agree(
    scenario: str | Path | Mapping[str, Any],
    *,
    runtimes: Sequence[Runtime] = ("simulation", "process"),
    seeds: int = SEEDS,
    set: Settings = (),  # noqa: A002 # as above
    emulation: Emulation = "auto",
    processes: int | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    runs_dir: str | Path | None = None,
    progress: ProgressLike | bool | None = None,
) -> Agreements:
    """Run a scenario in several runtimes with several seeds, and judge whether the others do what the first does.

    Arguments:
        scenario, set, emulation, processes, runs_dir, progress: as for `edgebed.run`.
        runtimes: the runtimes; the first is what the others are compared with.
        seeds: number of seeds, from 1 on.
        jobs, executor: as for `edgebed.reproduce`; a model or data of a notebook needs `jobs=1` and no executor.

    Raises ScenarioError for what cannot be run, before anything runs, and InfrastructureError where a trial does not
    complete.

    Example:
        edgebed.agree("quickstart", runtimes=("simulation", "process"), seeds=3)
    """
    with executing(jobs, executor) as spreading, showing(progress) as display:
        runs = run_all(
            write_report_and_index, scenario, runtimes=runtimes, seeds=seeds, set=options_of(set), emulation=emulation,
            processes=processes, executor=spreading, runs_dir=runs_dir,
            progress=display,
        )  # fmt: skip
    return agreed(runs, runtimes).result


def agreed(runs: Sequence[Run], runtimes: Sequence[Runtime] | None) -> Study[Agreements]:
    """Judge whether runs of several runtimes agree; arguments and errors are those of `judge`."""
    agreements = judge(runs, runtimes)
    return Study(result=agreements, view=agreement_page(agreements, arms_by_trial(runs, runtimes)))
