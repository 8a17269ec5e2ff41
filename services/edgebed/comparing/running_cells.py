"""Run cells one after the other, be they of a paper or of a sweep, and nothing twice that is there already.

A cell that breaks off or fails is reported, and the others go on. An interruption ends it all; begun again
with `resume` it skips what has completed, goes on with what broke off, and runs the rest.
"""

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import edgebed
from edgebed.comparing.cells import CellRun, Recipe, Recipes
from edgebed.comparing.keeping import Kept
from edgebed.comparing.matching import STATES, Finder, Found, is_planned
from edgebed.errors import EdgebedError, InfrastructureError, ScenarioError
from edgebed.observe.outcome import outcome_text
from edgebed.observe.quantities import count_text, seconds_text
from edgebed.results import Run, Trial
from edgebed.running import ProgressLike, write_results
from edgebed.runtimes.signals import ending_by_signal
from edgebed.scenario.plan import Plan

Tell = Callable[[str], None]


@dataclass(kw_only=True)
class Pace:
    """How long what is left may take, by what has been done so far; pure. Times in seconds."""

    spent_s: dict[str, float] = field(default_factory=dict)
    """By cell."""
    updates: dict[str, int] = field(default_factory=dict)

    def note(self, cell: str, updates: int, spent_s: float) -> None:
        """A run of this cell of so many updates, which may have ended before, took that time."""
        if updates > 0:
            self.spent_s[cell] = self.spent_s.get(cell, 0.0) + spent_s
            self.updates[cell] = self.updates.get(cell, 0) + updates

    def left_s(self, left: Mapping[CellRun, Recipe]) -> float | None:
        """A cell takes as long an update as before, one that is new as long as all together; None before the first."""
        if not self.updates:
            return None
        mean_s = sum(self.spent_s.values()) / sum(self.updates.values())
        pace_s = {cell: self.spent_s[cell] / self.updates[cell] for cell in self.updates}
        return sum(pace_s.get(run.cell, mean_s) * recipe.updates for run, recipe in left.items())


@dataclass(kw_only=True)
class CellRunner:
    """Runs what is wanted and is not there; `failed` has what went wrong, by run."""

    cells: Recipes
    root: Path
    kept: Kept
    """What is left of runs that may be elsewhere."""
    resume: bool
    """Whether what is there counts."""
    processes: int | None
    progress: ProgressLike | None
    tell: Tell
    failed: dict[CellRun, str] = field(default_factory=dict)

    def run(self, wanted: list[CellRun]) -> None:
        """Run each in order; KeyboardInterrupt where the user ends it, ScenarioError before anything has started."""
        recipes = distinct({run: self.cells.recipe(run) for run in wanted})
        plans = self.cells.plans(recipes)
        finder = Finder(self.root)
        if self.resume:
            done = [
                run
                for run, recipe in recipes.items()
                if finder.completed(plans[run], recipe.runtime) or self.kept.find(run)
            ]
            if done:
                self.tell(f"{len(done)} of {count_text(len(recipes), 'run')} are there already")
            recipes = {run: recipe for run, recipe in recipes.items() if run not in done}
        pace = Pace()
        with ending_by_signal():
            for number, run in enumerate(tuple(recipes), start=1):
                left_s = pace.left_s(recipes)
                left = "" if left_s is None else f"; about {seconds_text(left_s)} to go"
                self.tell(f"[{number}/{number - 1 + len(recipes)}] {run_text(run, recipes[run])}{left}")
                began_s = time.monotonic()
                updates = self._measure(run, recipes.pop(run), plans[run], finder)
                pace.note(run.cell, updates, time.monotonic() - began_s)
        if self.resume:  # another command may have completed them meanwhile
            self.failed = {
                run: why
                for run, why in self.failed.items()
                if not finder.completed(plans[run], self.cells.declared[run.cell].runtime)
            }

    def _measure(self, run: CellRun, recipe: Recipe, plan: Plan, finder: Finder) -> int:
        """Run it or go on with it; returns its size in updates where all of it was run, else 0."""
        there = (
            min(finder.find(plan, recipe.runtime), key=lambda found: STATES.index(found.state), default=None)
            if self.resume
            else None
        )
        if there and there.state == "completed":  # by another command, meanwhile
            return 0
        try:
            if there and there.state == "in progress":
                raise ScenarioError(f"somebody else runs it: {there.run.name}")
            # what is measured live is a rate, and that of a run in two parts would be of neither
            gone_on = self._go_on(there, plan) if there and recipe.runtime == "simulation" else None
            result = gone_on or self._begin(recipe)
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
            self._fail(run, f"{result.folder.name} is another trial: {recipe.place} was changed meanwhile")
        return recipe.updates if is_done and not gone_on else 0

    def _begin(self, recipe: Recipe) -> Run:
        return edgebed.run(
            recipe.scenario,
            runtime=recipe.runtime,
            set=recipe.sets,
            variants=[recipe.variant],
            processes=self.processes,
            runs_dir=self.root,
            progress=self.progress,
        )

    def _go_on(self, found: Found, plan: Plan) -> Run | None:
        """The run gone on with; None where that would be another trial than one that never broke off."""
        reason = "it was not begun for this trial alone"
        if found.run.read_manifest().get("trials") == [plan.trial]:
            try:
                if Trial(found.trial).series.ran_to_end:
                    return write_results(found.run)  # all that it had not come to
                if not plan.faults:
                    return edgebed.resume(
                        found.run.path, processes=self.processes, runs_dir=self.root, progress=self.progress
                    )
                reason = "in a trial that goes on, nodes that had died are there again"
            except InfrastructureError:
                raise
            except EdgebedError as error:  # another code or scenario, or a broken journal
                reason = str(error)
        self.tell(f"{found.run.name} broke off and is begun anew: {reason}")
        return None

    def _fail(self, run: CellRun, reason: str) -> None:
        self.failed[run] = reason
        self.tell(f"failed: {run.cell}, seed {run.seed}: {reason}")


def distinct(recipes: Mapping[CellRun, Recipe]) -> dict[CellRun, Recipe]:
    """One run for each recipe: cells that differ in their size alone are one at the size that the user asks for."""
    first = {recipe: run for run, recipe in reversed(list(recipes.items()))}
    return {run: recipe for run, recipe in recipes.items() if first[recipe] == run}


def run_text(run: CellRun, recipe: Recipe) -> str:
    """E.g. `asgd, seed 2: 50,000 updates, 20 %`."""
    share = "" if run.scale == 1 else f", {100 * run.scale:g} % of the paper's"
    return f"{run.cell}, seed {run.seed}: {count_text(recipe.updates, 'update')}{share}"


def going_on(words: list[str]) -> str:
    """The command that goes on with what `words` began."""
    return shlex.join([*words, *(["--resume"] if "--resume" not in words else [])])
