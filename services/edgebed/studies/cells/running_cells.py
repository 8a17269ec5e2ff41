"""Runs the cells of a paper or a sweep one after the other, without those that have been run already.

A cell that breaks off or fails is reported, and the others follow. An interruption ends everything; with `resume` a
later call skips what has completed, resumes what broke off, and runs the rest.
"""

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgebed.core.errors import EdgebedError, InfrastructureError, ScenarioError
from edgebed.core.plan import Plan
from edgebed.core.quantities import count_text, seconds_text
from edgebed.core.runtimes import is_virtual
from edgebed.journal.outcome import outcome_text
from edgebed.running.results import Run, Trial
from edgebed.running.resume import resume as resume_run
from edgebed.running.run import ProgressLike, ReportWriter, write_results
from edgebed.running.run import run as run_scenario
from edgebed.runtimes.signals import ending_by_signal
from edgebed.studies.cells.cells import CellRun, CellSpec, CellSpecs
from edgebed.studies.cells.result_cache import ResultCache
from edgebed.studies.cells.run_index import STATES, FoundTrial, RunIndex, is_planned

Tell = Callable[[str], None]


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


@dataclass(kw_only=True)
class CellRunner:
    """Runs what is wanted and missing; `failed` has what went wrong, by run."""

    cells: CellSpecs
    root: Path
    report: ReportWriter
    cache: ResultCache
    """Results of runs that may be elsewhere."""
    resume: bool
    """Whether existing results count."""
    processes: int | None
    progress: ProgressLike | None
    tell: Tell
    failed: dict[CellRun, str] = field(default_factory=dict)

    def run(self, wanted: list[CellRun]) -> None:
        """Run each cell in order; KeyboardInterrupt where the user ends it, ScenarioError before anything starts."""
        specs = distinct({run: self.cells.spec(run) for run in wanted})
        plans = self.cells.plans(specs)
        index = RunIndex(self.root)
        if self.resume:
            done = [
                run for run, spec in specs.items() if index.completed(plans[run], spec.runtime) or self.cache.find(run)
            ]
            if done:
                self.tell(f"{len(done)} of {count_text(len(specs), 'run')} are there already")
            specs = {run: spec for run, spec in specs.items() if run not in done}
        pace = Pace()
        with ending_by_signal():
            for number, run in enumerate(tuple(specs), start=1):
                left_s = pace.left_s(specs)
                left = "" if left_s is None else f"; about {seconds_text(left_s)} to go"
                self.tell(f"[{number}/{number - 1 + len(specs)}] {run_text(run, specs[run])}{left}")
                began_s = time.monotonic()
                updates = self._measure(run, specs.pop(run), plans[run], index)
                pace.note(run.cell, updates, time.monotonic() - began_s)
        if self.resume:  # another command may have completed some meanwhile
            self.failed = {
                run: why
                for run, why in self.failed.items()
                if not index.completed(plans[run], self.cells.declared[run.cell].runtime)
            }

    def _measure(self, run: CellRun, spec: CellSpec, plan: Plan, index: RunIndex) -> int:
        """Run or resume a cell; returns its size in updates where all of it was run, else 0."""
        there = (
            min(index.find(plan, spec.runtime), key=lambda found: STATES.index(found.state), default=None)
            if self.resume
            else None
        )
        if there and there.state == "completed":  # by another command, meanwhile
            return 0
        try:
            if there and there.state == "in progress":
                raise ScenarioError(f"somebody else runs it: {there.run.name}")
            # a live run measures a rate, which would be wrong for a run in two parts
            gone_on = self._go_on(there, plan) if there and is_virtual(spec.runtime) else None
            result = gone_on or self._begin(spec)
        except EdgebedError as error:
            self._fail(run, str(error))
            return 0
        if result.exit_code == 130:
            raise KeyboardInterrupt
        summary = result.trials[plan.trial].summary
        is_done = summary.is_sound
        if not is_done:
            self._fail(run, f"{result.folder.name} {outcome_text(summary)}")
        elif not is_planned(result.folder, plan):
            self._fail(run, f"{result.folder.name} is another trial: {spec.place} was changed meanwhile")
        return spec.updates if is_done and not gone_on else 0

    def _begin(self, spec: CellSpec) -> Run:
        return run_scenario(
            self.report,
            spec.scenario,
            runtime=spec.runtime,
            set=spec.sets,
            variants=[spec.variant],
            processes=self.processes,
            runs_dir=self.root,
            progress=self.progress,
        )

    def _go_on(self, found: FoundTrial, plan: Plan) -> Run | None:
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
                        processes=self.processes,
                        runs_dir=self.root,
                        progress=self.progress,
                    )
                reason = "in a resumed trial, nodes that had died are there again"
            except InfrastructureError:
                raise
            except EdgebedError as error:  # another code or scenario, or a broken journal
                reason = str(error)
        self.tell(f"{found.run.name} broke off and is begun anew: {reason}")
        return None

    def _fail(self, run: CellRun, reason: str) -> None:
        self.failed[run] = reason
        self.tell(f"failed: {run.cell}, seed {run.seed}: {reason}")


def distinct(specs: Mapping[CellRun, CellSpec]) -> dict[CellRun, CellSpec]:
    """One run for each recipe: cells that differ in their size alone are one at the size that the user asks for."""
    first = {spec: run for run, spec in reversed(list(specs.items()))}
    return {run: spec for run, spec in specs.items() if first[spec] == run}


def run_text(run: CellRun, spec: CellSpec) -> str:
    """A run in words, e.g. `asgd, seed 2: 50,000 updates, 20 %`."""
    share = "" if run.scale == 1 else f", {100 * run.scale:g} % of the paper's"
    return f"{run.cell}, seed {run.seed}: {count_text(spec.updates, 'update')}{share}"


def going_on(words: list[str]) -> str:
    """The command that resumes what `words` began."""
    return shlex.join([*words, *(["--resume"] if "--resume" not in words else [])])
