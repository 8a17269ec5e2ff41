"""Runs the cells of a paper or a sweep, one after the other or several at a time, without those that are there already.

A cell that breaks off or fails is reported, and the others follow. What all runs of a runtime need, such as images, is
looked for before the first run, and after a failure: where it is missing they fail together. An interruption ends
everything, and what has completed until then is kept; with `resume` a later call skips that, resumes what broke off,
and runs the rest.
"""

import contextlib
import shlex
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

from edgebed.core.errors import InfrastructureError
from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import count_text, seconds_text
from edgebed.core.runtimes import is_virtual
from edgebed.running.run import Options, ProgressLike, ReportWriter, require_runtime
from edgebed.runtimes.signals import ending_by_signal
from edgebed.studies.cells.cells import CellRun, CellSpec, CellSpecs
from edgebed.studies.cells.collect_results import cache_finished
from edgebed.studies.cells.jobs import Job, JobResult, JobRunner, Tell
from edgebed.studies.cells.parallel import by_time, show_ended, spread
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.cells.run_index import RunIndex


@dataclass(kw_only=True)
class Pace:
    """Estimates how long the remaining runs take, by what has been done so far; pure. Times in seconds."""

    spent_s: dict[str, float] = field(default_factory=dict)
    """Seconds spent by cell."""
    updates: dict[str, int] = field(default_factory=dict)

    def note(self, cell: str, updates: int, spent_s: float) -> None:
        """Note that a run of this cell with up to `updates` updates took that time; it may have ended before."""
        if updates > 0:
            self.spent_s[cell] = self.spent_s.get(cell, 0.0) + spent_s
            self.updates[cell] = self.updates.get(cell, 0) + updates

    def left_s(self, left: Mapping[CellRun, CellSpec]) -> float | None:
        """Seconds for the remaining runs, at each cell's own pace, or the mean for a new one; None before the first."""
        if not self.updates:
            return None
        mean_s = sum(self.spent_s.values()) / sum(self.updates.values())
        pace_s = {cell: self.spent_s[cell] / self.updates[cell] for cell in self.updates}
        return sum(pace_s.get(run.cell, mean_s) * spec.updates for run, spec in left.items())

    def text(self, left: Mapping[CellRun, CellSpec], passed_s: float | None = None) -> str:
        """The time left in words, as the end of a line.

        Where runs are made at the same time, `passed_s` is the time in which all those until now were.
        """
        left_s = self.left_s(left)
        if left_s is None or not left:
            return ""
        at_a_time = 1.0 if passed_s is None else max(1.0, sum(self.spent_s.values()) / passed_s)
        return f"; about {seconds_text(left_s / at_a_time)} to go"


@dataclass(kw_only=True)
class CellRunner:
    """Runs what is wanted and missing; `failed` has what went wrong, by run."""

    cells: CellSpecs
    root: Path
    report: ReportWriter
    cache: ResultCache
    """Results of runs that may be elsewhere; what completes is added, and written at the end, an interruption's too."""
    resume: bool
    """Whether existing results count."""
    processes: int | None
    progress: ProgressLike | None
    tell: Tell
    executor: Executor | None = None
    """What runs simulated cells at the same time; None: all cells are run here, one after the other."""
    failed: dict[CellRun, str] = field(default_factory=dict)
    index: RunIndex = field(init=False)
    """Finds runs in `root`."""

    def __post_init__(self) -> None:
        self.index = RunIndex(self.root)

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong, a sentence for each reason, e.g. `asgd, seed 1, and 19 other runs: …`."""
        runs: dict[str, list[CellRun]] = {}
        for run, reason in self.failed.items():
            runs.setdefault(reason, []).append(run)
        return tuple(f"{_first_of(failed)}: {reason}" for reason, failed in runs.items())

    def run(self, wanted: list[CellRun]) -> None:
        """Run each cell in order; KeyboardInterrupt where the user ends it, ScenarioError before anything starts."""
        specs = distinct({run: self.cells.spec(run) for run in wanted})
        plans = self.cells.plans(specs)
        if self.resume:
            done = [
                run
                for run, spec in specs.items()
                if self.index.completed(plans[run], spec.runtime) or self.cache.find(run)
            ]
            if done:
                self.tell(f"{len(done)} of {count_text(len(specs), 'run')} are there already")
            specs = {run: spec for run, spec in specs.items() if run not in done}
        jobs = {run: self._job(run, spec, plans[run]) for run, spec in specs.items()}
        try:
            with ending_by_signal():
                jobs = self._ready(jobs)
                if self.executor is None:
                    self._run_here(jobs, specs)
                else:
                    virtual, live = by_time(jobs, self.tell)
                    self._spread(self.executor, virtual, specs)
                    self._run_here(live, specs)
        finally:
            self.cache.write()
        if self.resume:  # another command may have completed some meanwhile
            self.failed = {
                run: why
                for run, why in self.failed.items()
                if not self.index.completed(plans[run], self.cells.declared[run.cell].runtime)
            }

    def _run_here(self, jobs: Mapping[CellRun, Job], specs: Mapping[CellRun, CellSpec]) -> None:
        """Run cells one after the other in this process."""
        left, pace = {run: specs[run] for run in jobs}, Pace()
        runner = JobRunner(index=self.index, report=self.report, tell=self.tell, progress=self.progress)
        for number, (run, job) in enumerate(jobs.items(), start=1):
            if run not in left:
                continue
            self.tell(f"[{number}/{len(jobs)}] {run_text(run, specs[run])}{pace.text(left)}")
            del left[run]
            result = runner.run(job)
            self._note(run, result)
            pace.note(run.cell, specs[run].updates if result.is_whole else 0, result.took_s)
            if result.failure and not is_virtual(job.runtime):
                left = {run: specs[run] for run in self._ready({run: jobs[run] for run in left})}

    def _ready(self, jobs: Mapping[CellRun, Job]) -> dict[CellRun, Job]:
        """The jobs that can be run here; all of a runtime have failed where this machine lacks what it needs."""
        ready = dict(jobs)
        for runtime in dict.fromkeys(job.runtime for job in jobs.values() if not is_virtual(job.runtime)):
            of_runtime = {run: job for run, job in jobs.items() if job.runtime == runtime}
            options = Options(runtime=runtime, emulation="auto", trace=False, force=False)
            try:
                require_runtime(options, [job.wanted for job in of_runtime.values() if job.wanted])
            except InfrastructureError as error:
                self.failed |= dict.fromkeys(of_runtime, str(error))
                self.tell(f"failed: {count_text(len(of_runtime), 'run')} in the {runtime} runtime: {error}")
                ready = {run: job for run, job in ready.items() if run not in of_runtime}
        return ready

    def _spread(self, executor: Executor, jobs: Mapping[CellRun, Job], specs: Mapping[CellRun, CellSpec]) -> None:
        """Run cells on an executor."""
        left, pace, began_s = {run: specs[run] for run in jobs}, Pace(), time.monotonic()
        with contextlib.closing(spread(executor, jobs, self.report, self.tell)) as results:
            for number, (run, result) in enumerate(results, start=1):
                del left[run]
                show_ended(result, self.progress)
                self._note(run, result)
                pace.note(run.cell, specs[run].updates if result.is_whole else 0, result.took_s)
                took, to_go = seconds_text(result.took_s), pace.text(left, time.monotonic() - began_s)
                self.tell(f"[{number}/{len(jobs)}] {run_text(run, specs[run])}, in {took}{to_go}")

    def _job(self, run: CellRun, spec: CellSpec, plan: TrainingPlan) -> Job:
        return Job(
            name=f"{run.cell}, seed {run.seed}",
            scenario=str(spec.scenario),
            runtime=spec.runtime,
            set=spec.sets,
            variants=(spec.variant,),
            processes=self.processes,
            runs_dir=str(self.root),
            wanted=plan,
            resume=self.resume,
        )

    def _note(self, run: CellRun, result: JobResult) -> None:
        """Note what came of a run, and keep its results."""
        cache_finished(self.cells, self.index, self.cache, [run], self.tell)
        if result.failure:
            self.failed[run] = result.failure
            self.tell(f"failed: {run.cell}, seed {run.seed}: {result.failure}")


def distinct(specs: Mapping[CellRun, CellSpec]) -> dict[CellRun, CellSpec]:
    """One run for each recipe: cells that differ in their size alone are one at the size that the user asks for."""
    first = {spec: run for run, spec in reversed(list(specs.items()))}
    return {run: spec for run, spec in specs.items() if first[spec] == run}


def run_text(run: CellRun, spec: CellSpec) -> str:
    """A run in words, e.g. `asgd, seed 2: 50,000 updates, 20 %`."""
    share = "" if run.scale == 1 else f", {100 * run.scale:g} % of the paper's"
    return f"{run.cell}, seed {run.seed}: {count_text(spec.updates, 'update')}{share}"


def _first_of(runs: Sequence[CellRun]) -> str:
    first, others = f"{runs[0].cell}, seed {runs[0].seed}", len(runs) - 1
    return f"{first}, and {count_text(others, 'other run')}" if others else first


def going_on(words: list[str]) -> str:
    """The command that resumes what `words` began."""
    goes_on_anyway = {"--resume", "--no-run", "--budget"} & {word.partition("=")[0] for word in words}
    return shlex.join([*words, *([] if goes_on_anyway else ["--resume"])])
