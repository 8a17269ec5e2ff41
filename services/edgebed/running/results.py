"""The results of a run for scripted experiments: `edgebed.load("quickstart").trials["adacomp"].series.evaluations`.

Series and summaries are computed from the journals when first asked for, so a run that crashed, or is still in
progress, can be loaded as well.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import WITHOUT_LOG, EdgebedError, ScenarioError
from edgebed.core.plan import ProgramsPlan, TrainingPlan
from edgebed.journal import summary as summaries
from edgebed.journal.journal import Entry, read_journal
from edgebed.journal.outcome import RunSummary, outcome_of
from edgebed.journal.programs.summary import ProgramSummary, summarise_programs
from edgebed.journal.run_folder import RunFolder, TrialFolder, list_runs, runs_of, runs_root
from edgebed.journal.series import Series
from edgebed.journal.summary import TrialSummary
from edgebed.roles.control.name import NAME as CONTROLLER
from edgebed.running.tables import trials_html

if TYPE_CHECKING:
    from torch import nn


class _Begun:
    """A trial of a run, whatever its nodes run."""

    def __init__(self, folder: TrialFolder, *, in_progress: bool = False) -> None:
        """`in_progress`: its run is; then a journal without an end is still being written."""
        self.folder = folder
        self.name = folder.name
        self.in_progress = in_progress

    def events(self) -> Iterator[Entry]:
        """The journal's entries, (t in seconds, node, record), in order; none where there is no journal yet."""
        return read_journal(self.folder.journal) if self.folder.journal.exists() else iter(())

    def __repr__(self) -> str:
        """The trial's name and folder."""
        return f"{type(self).__name__}({self.name!r}, {str(self.folder.path)!r})"


class ProgramTrial(_Begun):
    """One trial whose nodes run programs of the user's."""

    @cached_property
    def plan(self) -> ProgramsPlan:
        """Every node with its caps, its link and its command."""
        plan = self.folder.read_any_plan()
        assert isinstance(plan, ProgramsPlan)
        return plan

    @cached_property
    def series(self) -> Series:
        """The journal as arrays; `series.programs` has what programs told. EdgebedError as of `Trial.series`."""
        if not self.folder.journal.exists():
            return Series.empty()
        return Series.from_journal(self.folder.journal, self.plan.stop_time_s)

    @cached_property
    def summary(self) -> ProgramSummary:
        """The numbers and the judged expectations."""
        found = summarise_programs(self.plan, self.series)
        if self.in_progress and found.outcome == "unfinished":
            return msgspec.structs.replace(found, outcome="running", reason="")
        return found


class Trial(_Begun):
    """One trial of a run."""

    @cached_property
    def plan(self) -> TrainingPlan:
        """Every node with its caps, its data and its parts."""
        return self.folder.read_plan()

    @cached_property
    def series(self) -> Series:
        """The journal as arrays; EdgebedError where it is broken before its last line."""
        if not self.folder.journal.exists():
            return Series.empty()
        return Series.from_journal(self.folder.journal, self.plan.stop_time_s, self.plan.measures)

    @cached_property
    def summary(self) -> TrialSummary:
        """The numbers and the judged expectations."""
        found = summaries.summarise(self.plan, self.series)
        if self.in_progress and found.outcome == "unfinished":
            return msgspec.structs.replace(found, outcome="running", reason="")
        return found

    def checkpoint(self) -> NDArray[np.float32]:
        """The trained model, flat, shape (n,); EdgebedError where the trial left none.

        `plan.nodes[0].task.layout` has the names and shapes of its tensors, in order.
        """
        from edgebed.journal.checkpoints import read_checkpoint  # loads what trains shards, too

        return read_checkpoint(self.folder.final_checkpoint).theta

    def model(self) -> "nn.Module":
        """The trained model as a torch module, in evaluation mode; EdgebedError where the trial left none.

        The model's function is called once more, and makes the tensors that training does not change.
        """
        from edgebed.learning.models import registry as models  # loads torch, which other results do not need

        return models.trained_model(self.plan.nodes[0].task, self.plan.seed, self.checkpoint())

    def _repr_html_(self) -> str:
        """A row of its key figures, for notebooks."""
        return trials_html(self.name, [self.summary])


AnyTrial = Trial | ProgramTrial


class Run:
    """One run: its trials by name, in order."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.path = folder.path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Seed, runtime, versions, host facts, command; empty where the run died before writing them."""
        return self.folder.read_manifest()

    @cached_property
    def trials(self) -> dict[str, Trial]:
        """The trials that have begun, by name; none where nodes run programs of the user's."""
        if self._runs_programs:
            return {}
        return {folder.name: Trial(folder, in_progress=self._in_progress) for folder in self.folder.trials()}

    @cached_property
    def programs(self) -> dict[str, ProgramTrial]:
        """The trials that have begun whose nodes run programs of the user's, by name; none where they train."""
        if not self._runs_programs:
            return {}
        return {folder.name: ProgramTrial(folder, in_progress=self._in_progress) for folder in self.folder.trials()}

    @property
    def begun(self) -> "Mapping[str, AnyTrial]":
        """The trials that have begun, by name, whatever their nodes run."""
        return self.programs or self.trials

    @property
    def _runs_programs(self) -> bool:
        """Whether the nodes run programs of the user's: all trials of a scenario do, or none does."""
        return bool(self.manifest.get("runs_programs"))

    @cached_property
    def _in_progress(self) -> bool:
        """Whether the run was in progress before its journals were read."""
        return self.folder.is_running()

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return self.folder.scenario_name

    @property
    def exit_code(self) -> int:
        """0: all expectations met; 1: one is not, or a trial diverged; 3: there is no result; 130: interrupted.

        journal/outcome.py says which of several decides.
        """
        return self.summary.exit_code

    @property
    def started_s(self) -> float:
        """When the run began, in Unix time; 0 where it died before noting that."""
        started = self.manifest.get("started")
        return dt.datetime.fromisoformat(started).timestamp() if started else 0.0

    def chosen_trials(self, names: Sequence[str], purpose: str) -> "list[AnyTrial]":
        """The trials with these names, all if none is given, in the run's order; ScenarioError where there is none.

        `purpose`: what they are wanted for, e.g. `export`.
        """
        there = ", ".join(self.begun) or "none yet"
        unknown = [name for name in names if name not in self.begun]
        if unknown:
            raise ScenarioError(
                *(f"--trial: {self.folder.name} has no trial '{name}'; there are {there}" for name in unknown)
            )
        if not self.begun:
            raise ScenarioError(f"{self.folder.name}: nothing to {purpose}: no trial has begun")
        return [trial for trial in self.begun.values() if not names or trial.name in names]

    @property
    def can_be_resumed(self) -> bool:
        """Whether something is left to do and no process is doing it: a trial that broke off, or has not begun.

        Not where all that began has failed before it trained: there is nothing to go on from.
        """
        begun = self.begun.values()
        done = self.summary.not_begun == () and all(trial.summary.ran_to_end for trial in begun)
        is_empty = begun and all(each.series.trial is None and each.summary.outcome == "failed" for each in begun)
        return bool(self.manifest.get("options")) and not done and not is_empty and not self.folder.is_running()

    @property
    def resume_command(self) -> str:
        """The command that resumes the run: without the server's log where a trial ended since that is of no use."""
        lacks_log = any(WITHOUT_LOG in trial.summary.reason for trial in self.begun.values())
        return f"edgebed resume {self.folder.name}" + (f" {WITHOUT_LOG}" if lacks_log else "")

    @cached_property
    def summary(self) -> RunSummary:
        """The run in numbers, computed from the journals."""
        trials = tuple(trial.summary for trial in self.trials.values())
        programs = tuple(trial.summary for trial in self.programs.values())
        begun = self.begun
        not_begun = tuple(name for name in self.manifest.get("trials", ()) if name not in begun)
        outcome = outcome_of(trials or programs, not_begun, is_running=self._in_progress)
        notes = (text for trial in begun.values() for _, node, text in trial.series.notes if node == CONTROLLER)
        plans = [trial.plan for trial in begun.values()]
        return RunSummary(
            scenario=self.scenario,
            question=plans[0].question if plans else "",
            runtime=str(self.manifest.get("runtime", "unknown")),
            seed=int(self.manifest.get("seed", plans[0].seed if plans else 0)),
            **outcome._asdict(),
            trials=trials,
            programs=programs,
            not_begun=not_begun,
            notes=tuple(dict.fromkeys(notes)),
        )

    def summary_json(self) -> bytes:
        """The summary as written in `summary.json`."""
        return msgspec.json.format(msgspec.json.encode(self.summary)) + b"\n"

    def _repr_html_(self) -> str:
        """A row of key figures for each trial, for notebooks."""
        title = f"{self.folder.name} ({self.summary.runtime}): {self.summary.badge}"
        return trials_html(title, self.summary.trials)

    def __repr__(self) -> str:
        """The run's scenario, number and trials."""
        return f"Run({self.scenario}/{self.path.name}, trials={list(self.begun)})"


def runs(scenario: str | None = None, *, runs_dir: str | Path | None = None) -> list[Run]:
    """List the runs there are, the newest first; none where there is no such folder.

    Arguments:
        scenario: the name of a scenario, whose runs alone are listed; None: those of all.
        runs_dir: the folder of runs (default: $EDGEBED_RUNS_DIR, else ./runs).

    Example:
        edgebed.compare(edgebed.runs("quickstart")[:2])
    """
    root = runs_root(runs_dir)
    folders = list_runs(root) if scenario is None else runs_of(root, scenario)
    return sorted(map(Run, folders), key=_started_s, reverse=True)


def _started_s(run: Run) -> tuple[float, int]:
    """When a run began, then its number; 0 where its manifest cannot be read."""
    try:
        return run.started_s, int(run.path.name)
    except EdgebedError:
        return 0.0, int(run.path.name)


def load(run: str | Path, *, runs_dir: str | Path | None = None) -> Run:
    """Open the results of a run, be it complete, broken off or in progress.

    Arguments:
        run: its path, `<scenario>` (its latest run), `<scenario>/<number>`, or `latest`.
        runs_dir: the folder of runs (default: $EDGEBED_RUNS_DIR, else ./runs).

    Raises ScenarioError, which lists the runs there are, where there is no such run.

    Example:
        edgebed.load("quickstart").trials["adacomp"].series.evaluations.values  # (E,) accuracies, 0 to 1
    """
    return Run(RunFolder.find(runs_root(runs_dir), run))
