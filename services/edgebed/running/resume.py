"""Resume a run that has broken off, in its own folder.

Trials that came to their end stay as they are. One that did not is resumed from its latest checkpoint: its journal is
appended to, its clock continues from the journal's last line, and each node's incarnations are counted on. Trials that
had not begun follow.

The resumed run must be the one that was begun: the scenario in the run's folder is planned anew, and has to give the
same plans, with the same code.
"""

import contextlib
import dataclasses
import shutil
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgebed.core import records
from edgebed.core.actions import ACTIONS
from edgebed.core.errors import DamagedFileError, EdgebedError, ScenarioError
from edgebed.core.package import fingerprint
from edgebed.core.plan import Plan, TrainingPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.reading import open_file
from edgebed.journal.checkpoints import read_checkpoint
from edgebed.journal.folds import Counters, Fold, Timeline, on
from edgebed.journal.journal import read_journal
from edgebed.journal.run_folder import RunFolder, TrialFolder, find_resumable, runs_root
from edgebed.metrics import table
from edgebed.planning.planned import PlannedTrial
from edgebed.planning.planning import PlannedTraining
from edgebed.roles.control.active_faults import BY_HAND
from edgebed.roles.control.controller import ResumedTrial
from edgebed.roles.control.fault_text import injection_of
from edgebed.roles.control.name import NAME as CONTROLLER
from edgebed.roles.control.record_permissions import is_timely
from edgebed.roles.server.entries import DURABLE, is_durable
from edgebed.running.results import Run
from edgebed.running.run import (
    Options,
    ProgressLike,
    ReportWriter,
    holding,
    host_of,
    own_code,
    plan_checked,
    program_files,
    programs_checked,
    run_trials,
    working_on,
    write_results,
)
from edgebed.runtimes.live.control import SOCKET
from edgebed.runtimes.log_file import NAME
from edgebed.runtimes.server_log import has_updates
from edgebed.runtimes.signals import ending_by_signal
from edgebed.scenario.load import load_scenario

ANEW = "begin a new run"
OF_PROGRAMS = ("files", "scratch")
"""Folders of a trial of programs, which cannot go on: the program's state is its own."""


def resume(
    report: ReportWriter,
    run: str | Path,
    *,
    from_checkpoint: bool = False,
    processes: int | None = None,
    runs_dir: str | Path | None = None,
    port: int = 0,
    progress: ProgressLike | None = None,
) -> Run:
    """Resume a run; arguments, result and errors are those of `edgebed.resume` (reports/reported.py)."""
    folder = find_resumable(runs_root(runs_dir), run)
    with holding(folder) as hold, contextlib.redirect_stdout(sys.stderr):
        _require_own(folder)
        options = _options(folder)
        with _in_folder_of(folder):
            left = _left(folder, _planned(folder, options))
            if not left:
                hold.close()
                return write_results(folder, report)
            with ending_by_signal(), host_of(options, left, processes, port) as host, working_on(folder, report, hold):
                folder.reopen(sys.argv)  # from here on, whoever looks sees that it is in progress
                trials = [folder.trial(each.plan.trial) for each in left]
                pasts = {
                    each.plan.trial: past_of(trial, from_checkpoint=from_checkpoint)
                    if isinstance(each, PlannedTraining)
                    else None
                    for each, trial in zip(left, trials, strict=True)
                }
                for trial in trials:
                    _clear(trial, pasts[trial.name])
                run_trials(left, folder, host, progress, pasts)
            return write_results(folder, report)


def past_of(folder: TrialFolder, *, from_checkpoint: bool = False) -> ResumedTrial | None:
    """How far a trial had come; None: it had not begun to train.

    `from_checkpoint`: the server's log is not to be gone on from. ScenarioError where the trial has updates, and no
    journal that tells of them.
    """
    past = _Past().add_all(read_journal(folder.journal) if folder.journal.exists() else ())
    if past.timeline.began_s is None:
        if found := _updates_in(folder):
            raise ScenarioError(
                f"{folder.journal}: it does not say that training began, and there is {found}. Put the journal back, "
                f"or {ANEW}; where nothing of this trial is needed, remove {folder.path} to have it begun anew"
            )
        return None
    return ResumedTrial(
        began_s=past.timeline.began_s,
        until_s=past.last_t,
        trained_s=past.trained_s,
        updates=past.updates,
        incarnations=past.timeline.incarnations,
        update_bytes=past.update_bytes,
        traffic=past.counters.totals(records.Traffic).get((table.SERVER,)),
        durable=0 if from_checkpoint else past.durable,
        from_checkpoint=from_checkpoint,
        evaluated=past.evaluated,
        measured=past.measured,
        triggered_s=past.triggered_s,
        by_hand=tuple(past.by_hand),
    )


def _clear(folder: TrialFolder, past: ResumedTrial | None) -> None:
    """Remove the final model, and all that a trial has left that is begun anew."""
    folder.final_checkpoint.unlink(missing_ok=True)
    if past is None:
        folder.journal.unlink(missing_ok=True)
        folder.latest_checkpoint.unlink(missing_ok=True)
        for place in (folder.server_log, *(folder.path / name for name in OF_PROGRAMS)):
            shutil.rmtree(place, ignore_errors=True)


def _updates_in(folder: TrialFolder) -> str:
    """Where a trial has updates, whatever its journal says; empty: nowhere."""
    log = folder.server_log / NAME
    if log.exists():
        try:
            with open_file(log) as content:
                if has_updates(content):
                    return f"a log of its server with updates ({log})"
        except EdgebedError as error:
            raise DamagedFileError(f"{log}: {error}") from error
    elif folder.server_log.is_dir() and any(folder.server_log.iterdir()) and _is_empty(folder.journal):
        return f"a log of its server on a container engine ({folder.server_log})"
    if folder.latest_checkpoint.exists() and (version := read_checkpoint(folder.latest_checkpoint).version):
        return f"a checkpoint of update {version:,} ({folder.latest_checkpoint})"
    return ""


def _is_empty(path: Path) -> bool:
    """Whether there is no such file, or nothing in it."""
    return not path.exists() or not path.stat().st_size


class _Past(Fold):
    """What a journal says of how far its trial has come."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.counters = Counters(self.timeline)
        super().__init__(self.timeline, self.counters)
        self.trained_s = 0.0
        """Seconds of training until the last that was observed of it."""
        self.is_over = False
        """Whether training has ended: what is told now is not observed of it."""
        self.updates = 0
        self.update_bytes = 0
        self.durable = 0
        """Records of what is in the server's present log."""
        self.evaluated: tuple[float, int] | None = None
        self.measured: dict[str, float] = {}
        self.triggered_s: dict[tuple[str, str], float] = {}
        self.by_hand: list[tuple[float, Injection]] = []
        self.controller_t = 0.0
        """The latest time of the controller's own, in seconds since the launch."""

    def add(self, t: float, node: str, record: records.Record) -> None:
        """Take in one record; what a node says to be of later than it can be is of when the controller had it."""
        if node == CONTROLLER:
            self.controller_t = max(self.controller_t, t)
        super().add(t if is_timely(t, self.controller_t) else self.controller_t, node, record)

    @on(*records.RECORDS)
    def _observed(self, t: float, _: str, record: records.Record) -> None:
        if self.timeline.began_s is not None and not self.is_over:
            self.trained_s = max(self.trained_s, self.timeline.since_began(t))
        if isinstance(record, records.Finished | records.Ended):
            self.is_over = True
        elif isinstance(record, records.Restored | records.Continued | records.Trial):
            self.is_over = False

    @on(*DURABLE)
    def _logged(self, _: float, __: str, record: records.Record) -> None:
        self.durable += is_durable(record)

    @on(records.Restored)
    def _restored(self, _: float, __: str, record: records.Restored) -> None:
        self.durable = 0 if record.replayed is None else self.durable

    @on(records.Update)
    def _update(self, _: float, __: str, record: records.Update) -> None:
        self.updates = max(self.updates, record.version)
        self.update_bytes += record.bytes

    @on(records.Step)
    def _step(self, _: float, __: str, record: records.Step) -> None:
        self.updates = max(self.updates, record.made)

    @on(records.Evaluated)
    def _evaluated(self, t: float, _: str, record: records.Evaluated) -> None:
        self.evaluated = self.timeline.since_began(t), record.version
        self.measured = record.selecting

    @on(records.Fault)
    def _fault(self, _: float, __: str, record: records.Fault) -> None:
        asked_s = self.timeline.since_began(record.asked_s)
        self.triggered_s.setdefault((record.name, record.target), asked_s)
        if record.name == BY_HAND and ACTIONS[record.action].outlasts and not record.problem:
            try:
                self.by_hand.append((asked_s, injection_of(record.target, record.action, record.change)))
            except ValueError as error:
                raise DamagedFileError(f"{record.action} of {record.target} by hand: {error}") from None


def _require_own(folder: RunFolder) -> None:
    """ScenarioError where something in the folder leads out of it, or can't be read as a file.

    Resuming a run writes into its folder, which may be a stranger's.
    """
    for place in folder.path.rglob("*"):
        kind = place.lstat().st_mode
        if not (stat.S_ISDIR(kind) or stat.S_ISREG(kind) or place == folder.path / SOCKET):
            leads = f"a link to {place.readlink()}" if stat.S_ISLNK(kind) else "no file"
            raise ScenarioError(f"{place}: it is {leads}, where a run has its own file; put that here, or {ANEW}")


def _options(folder: RunFolder) -> Options:
    """The options with which the run was begun; ScenarioError where other code began it."""
    manifest = folder.read_manifest()
    try:
        options = msgspec.convert(manifest.get("options"), Options)
    except msgspec.ValidationError:
        raise ScenarioError(f"{folder.manifest}: does not say how the run was begun; {ANEW}") from None
    if manifest.get("code") != fingerprint():
        commit = manifest.get("commit")
        remedy = (
            f"resume with the code of that time (commit {commit})" if commit else "resume with the code of that time"
        )
        raise ScenarioError(f"run {folder.name} was begun by other code of edgebed; {remedy}, or {ANEW}")
    return options


def _in_folder_of(folder: RunFolder) -> contextlib.AbstractContextManager[None]:
    """Change to the folder in which the run was begun: names of files and modules are relative to it."""
    begun_in = Path(folder.read_manifest().get("folder", ""))
    return contextlib.chdir(begun_in) if begun_in.is_dir() else contextlib.nullcontext()


def _planned(folder: RunFolder, options: Options) -> list[PlannedTrial]:
    """The plans of every trial of the run; ScenarioError where one is no longer what it was."""
    manifest = folder.read_manifest()
    begun_from = manifest.get("scenario_file") or ""
    loaded = load_scenario(folder.scenario, resolved_from=begun_from)
    loaded = loaded.model_copy(update={"source": begun_from})
    planned: list[PlannedTrial]
    if loaded.runs_programs:
        programs = programs_checked(loaded, options)
        planned = [*programs]
        now = program_files([each.plan for each in programs], folder.path.parent.parent.resolve())
    else:
        training = plan_checked(loaded, options)
        planned = [_with_sweep(trial, [each.read_plan() for each in folder.trials()]) for trial in training]
        now = own_code((trial.plan for trial in training), (trial.data.name for trial in training))
    changed = [path for path, digest in manifest.get("own_code", {}).items() if now.get(path, digest) != digest]
    if changed:
        raise ScenarioError(f"run {folder.name} was begun with another {', '.join(changed)}; restore it, or {ANEW}")
    begun = {trial.name: trial.read_any_plan() for trial in folder.trials()}
    for trial in planned:
        if trial.plan.trial in begun:
            _require_same(folder.trial(trial.plan.trial), begun[trial.plan.trial], trial.plan)
    return planned


def _with_sweep(planned: PlannedTraining, begun: Iterable[TrainingPlan]) -> PlannedTraining:
    """The trial with the level of the scenario's sweep, of which the resolved scenario tells nothing."""
    level = next((plan.sweep_level for plan in begun if plan.sweep_level), None)
    if planned.plan.stop_level:
        return planned
    return dataclasses.replace(planned, plan=msgspec.structs.replace(planned.plan, sweep_level=level))


def _require_same(folder: TrialFolder, begun: Plan, plan: Plan) -> None:
    """ScenarioError where the plan is not the one that the trial began with."""
    was, now = msgspec.to_builtins(begun), msgspec.json.decode(msgspec.json.encode(plan))
    difference = first_difference(was, now)
    if difference:
        raise ScenarioError(
            f"{folder.plan}: trial {plan.trial} would not be the same: {difference}. The data or what the scenario "
            f"refers to has changed since; restore it, or {ANEW}"
        )


def first_difference(was: Any, now: Any, place: str = "") -> str:
    """Where two trees of plain values differ first, and how; empty if they are equal."""
    if isinstance(was, dict) and isinstance(now, dict):
        inside = [(f"{place}.{key}".lstrip("."), was.get(key), now.get(key)) for key in was | now]
    elif isinstance(was, list | tuple) and isinstance(now, list | tuple) and len(was) == len(now):
        inside = [(f"{place}[{k}]", before, after) for k, (before, after) in enumerate(zip(was, now, strict=True))]
    else:
        return "" if was == now else f"{place} was {_short(was)} and is {_short(now)}"
    differences = (first_difference(before, after, where) for where, before, after in inside)
    return next((difference for difference in differences if difference), "")


def _short(value: Any, length_max: int = 60) -> str:
    text = str(value)
    return text if len(text) <= length_max else f"{text[:length_max]}…"


def _left(folder: RunFolder, planned: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """The trials that did not come to their end; ScenarioError where all did, and the run has its summary."""
    over = {name for name, trial in Run(folder).begun.items() if trial.series.ran_to_end}
    left = [trial for trial in planned if trial.plan.trial not in over]
    if not left and folder.summary.exists():
        raise ScenarioError(f"run {folder.name} is complete: there is nothing to resume")
    return left
