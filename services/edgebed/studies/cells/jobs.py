"""A job: one run as a study wants it, in plain data, so that it can be run in this process or in another one.

    Job --- JobRunner ---> JobResult

Whoever runs it looks for itself at what is there already, when its turn comes: by then another command, or an earlier
try whose process died, may have made the run, or begun it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from edgebed.core.errors import EdgebedError, InfrastructureError, ScenarioError
from edgebed.core.plan import TrainingPlan
from edgebed.core.runtimes import Emulation, Runtime, is_virtual
from edgebed.journal.outcome import outcome_text
from edgebed.journal.summary import TrialSummary
from edgebed.running.results import Run, Trial
from edgebed.running.resume import resume as resume_run
from edgebed.running.run import ProgressLike, ReportWriter, write_results
from edgebed.running.run import run as run_scenario
from edgebed.studies.cells.run_index import STATES, FoundTrial, RunIndex, is_planned

Tell = Callable[[str], None]
LOOK_EVERY_S = 0.2


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is wanted; the fields after its name are arguments of `edgebed.run`."""

    name: str
    """Its name in a sentence, e.g. `asgd, seed 1`."""
    scenario: str | dict[str, Any]
    runtime: Runtime
    set: tuple[str, ...]
    variants: tuple[str, ...] = ()
    emulation: Emulation = "auto"
    force: bool = False
    processes: int | None
    runs_dir: str
    wanted: TrainingPlan | None = None
    """The plan of the one trial of a cell; None: nobody looks at what is there, and all trials are run."""
    resume: bool = False
    """Whether what is there counts."""
    patience_s: float = 0.0
    """Seconds to wait for the end of a run that somebody else seems to be at: of one whose process is just dying."""


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a job."""

    run: str = ""
    """Path of the run's folder; empty where there is no run, or another command's."""
    summaries: tuple[TrialSummary, ...] = ()
    """The summaries of its trials."""
    is_whole: bool = False
    """Whether all of the run was made here, and has come to its end."""
    failure: str = ""
    """Why there is no result."""
    exit_code: int = 0
    """The exit code that belongs to the failure."""
    took_s: float = 0.0


def begin(job: Job, report: ReportWriter, progress: ProgressLike | None) -> Run:
    """Make a job's run, whatever there is already; errors are those of `edgebed.run`."""
    return run_scenario(
        report,
        job.scenario,
        runtime=job.runtime,
        emulation=job.emulation,
        set=job.set,
        variants=job.variants,
        force=job.force,
        processes=job.processes,
        runs_dir=job.runs_dir,
        progress=progress,
    )


@dataclass(frozen=True, kw_only=True)
class JobRunner:
    """Runs jobs in this process, one after the other."""

    index: RunIndex
    """The index of the folder of all runs."""
    report: ReportWriter
    tell: Tell
    progress: ProgressLike | None = None

    def run(self, job: Job) -> JobResult:
        """Run a job. KeyboardInterrupt where the run was interrupted."""
        began_s = time.monotonic()
        try:
            done = self._measure(job, job.wanted) if job.wanted else _made(begin(job, self.report, self.progress))
        except EdgebedError as error:
            done = JobResult(failure=str(error), exit_code=error.exit_code)
        return msgspec.structs.replace(done, took_s=time.monotonic() - began_s)

    def _measure(self, job: Job, plan: TrainingPlan) -> JobResult:
        """Run the trial of a cell, or resume one that is there if that counts."""
        there = self._found(job, plan) if job.resume else None
        if there and there.state == "completed":  # by another command, meanwhile
            return JobResult()
        if there and there.state == "in progress":
            raise ScenarioError(f"somebody else runs it: {there.run.name}")
        # a live run measures a rate, which would be wrong for a run in two parts
        gone_on = self.go_on(job, there, plan) if there and is_virtual(job.runtime) else None
        run = gone_on or begin(job, self.report, self.progress)
        done, summary = _made(run), run.trials[plan.trial].summary
        failure = ""
        if not summary.is_sound:
            failure = f"{run.folder.name} {outcome_text(summary)}"
        elif not is_planned(run.folder, plan):
            failure = f"{run.folder.name} is another trial: {job.scenario} was changed meanwhile"
        return msgspec.structs.replace(
            done,
            is_whole=summary.is_sound and not gone_on,
            failure=failure,
            exit_code=InfrastructureError.exit_code if failure else 0,
        )

    def _found(self, job: Job, plan: TrainingPlan) -> FoundTrial | None:
        """The most useful trial with this plan."""
        latest_s = time.monotonic() + job.patience_s
        while True:
            found = self.index.find(plan, job.runtime)
            best = min(found, key=lambda each: STATES.index(each.state), default=None)
            if best is None or best.state != "in progress" or time.monotonic() >= latest_s:
                return best
            time.sleep(LOOK_EVERY_S)

    def go_on(self, job: Job, found: FoundTrial, plan: TrainingPlan) -> Run | None:
        """The resumed run; None where that would be another trial than one that never broke off."""
        reason = "it was not begun for this trial alone"
        if found.run.read_manifest().get("trials") == [plan.trial]:
            try:
                if Trial(found.trial).series.ran_to_end:
                    return write_results(found.run, self.report)  # everything that was not written before
                if not plan.faults:
                    return resume_run(
                        self.report,
                        found.run.path,
                        processes=job.processes,
                        runs_dir=job.runs_dir,
                        progress=self.progress,
                    )
                reason = "in a resumed trial, nodes that had died are there again"
            except InfrastructureError:
                raise
            except EdgebedError as error:  # another code or scenario, or a broken journal
                reason = str(error)
        self.tell(f"{found.run.name} broke off and is begun anew: {reason}")
        return None


def _made(run: Run) -> JobResult:
    """What came of a run that is over; KeyboardInterrupt where it was interrupted."""
    if run.exit_code == 130:
        raise KeyboardInterrupt
    return JobResult(run=str(run.path), summaries=run.summary.trials, is_whole=True)
