"""Run a scenario: load it, plan it, run one trial after another, write summary and report.

load ---> plan ---> for each trial: runtime ---> journal ---> summary.json, report.html

The function that writes a report is handed in, so that this package imports no reports.
"""

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from edgebed.core import records
from edgebed.core.console import say
from edgebed.core.errors import EdgebedError, LocatedProblem, ScenarioError
from edgebed.core.imports import is_of_main, source_of, sources
from edgebed.core.package import fingerprint
from edgebed.core.plan import Part, Plan, ProgramsPlan, TrainingPlan
from edgebed.core.runtimes import EMULATIONS, RUNTIMES, TRAITS, Emulation, Runtime
from edgebed.emulation.means import check_conditions, check_mechanisms
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import RunFolder, TrialFolder, checked_note, runs_root, write_atomically
from edgebed.journal.summary import TrialSummary
from edgebed.journal.trial_state import TrialStatus
from edgebed.learning.beginning import Beginning
from edgebed.planning.deadlines import check_deadlines
from edgebed.planning.link_warnings import check_links
from edgebed.planning.memory import check_caps
from edgebed.planning.planned import PlannedTrial
from edgebed.planning.planning import PlannedTraining, plan_trials
from edgebed.planning.program_plans import PlannedPrograms, check_programs, plan_programs
from edgebed.roles.control.controller import ResumedTrial
from edgebed.roles.control.ending import BY_USER
from edgebed.roles.control.name import NAME as CONTROLLER
from edgebed.running.results import ProgramTrial, Run, Trial
from edgebed.runtimes.hosting import TrialHost, runtime_of
from edgebed.runtimes.programs.files import left_out
from edgebed.runtimes.signals import ending_by_signal, finishing
from edgebed.scenario.faults.availability import AvailabilityFault
from edgebed.scenario.hosts import require_use
from edgebed.scenario.links import LinkSection
from edgebed.scenario.load import load_scenario, resolved_yaml
from edgebed.scenario.overrides import Settings, options_of
from edgebed.scenario.schema import AnyTrial, Scenario, TrialSection

CODE_BYTES_MAX = 1 << 20
ReportWriter = Callable[[Run], None]
"""A function that writes the report of a run into its folder."""


def without_report(run: Run) -> None:
    """Write no report: for runs that nobody looks at."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario is run, as far as resuming the run depends on it."""

    runtime: Runtime
    emulation: Emulation
    trace: bool
    force: bool


class ProgressLike(Protocol):
    """An observer of a run's progress (reports/live/progress.py)."""

    def trial_started(self, plan: Plan) -> None:
        """Called when a trial begins."""
        ...

    def update(self, status: TrialStatus) -> None:
        """Called with the trial's state, again and again."""
        ...

    def trial_ended(self, summary: TrialSummary) -> None:
        """Called when a trial is over."""
        ...


def run(
    report: ReportWriter,
    scenario: str | Path | Mapping[str, Any],
    *,
    runtime: Runtime = "process",
    emulation: Emulation = "auto",
    hosts: str | Path | None = None,
    set: Settings = (),  # noqa: A002 # the name of the command line's option
    variants: Sequence[str] = (),
    trace: bool = False,
    processes: int | None = None,
    runs_dir: str | Path | None = None,
    port: int = 0,
    force: bool = False,
    progress: ProgressLike | None = None,
    note: str = "",
) -> Run:
    """Run the trials of a scenario; arguments, result and errors are those of `edgebed.run` (reports/reported.py)."""
    sets = options_of(set)
    note = checked_note(note, "--note")
    if isinstance(variants, str):
        raise ScenarioError(f"variants: {variants!r} is one string; give a list of names, e.g. ['adacomp']")
    if runtime not in RUNTIMES:
        raise ScenarioError(f"--runtime: {runtime!r} is none of {', '.join(RUNTIMES)}")
    if emulation not in EMULATIONS:
        raise ScenarioError(f"--emulation: {emulation!r} is none of {', '.join(EMULATIONS)}")
    if processes is not None and processes < 1:
        raise ScenarioError(f"--processes: {processes} is below 1")
    options = Options(runtime=runtime, emulation=emulation, trace=trace, force=force)
    with contextlib.redirect_stdout(sys.stderr):  # output of a user's own model is not a result
        loaded = load_scenario(scenario, sets, hosts=hosts).only(variants)
        require_use(hosts, runtime, loaded.trials.values())
        if loaded.runs_programs:
            check_programs(loaded, runtime, emulation)
        if TRAITS[runtime].has_containers:
            from edgebed.running.hosts import with_capacities  # loads the engine's client

            loaded = with_capacities(loaded)
        planned = _planned(loaded, options)
        training = [trial for trial in planned if isinstance(trial, PlannedTraining)]
        programs = [trial.plan for trial in planned if isinstance(trial, PlannedPrograms)]
        with ending_by_signal(), host_of(options, planned, processes, port) as host:
            folder = RunFolder.create(runs_root(runs_dir), loaded.name)
            with working_on(folder, report, holding(folder)):  # from here on, others see that the run is in progress
                folder.write_manifest(
                    seed=loaded.seed,
                    runtime=runtime,
                    command=sys.argv,
                    trials=[trial.plan.trial for trial in planned],
                    scenario_file=loaded.source or None,
                    sets=sets,
                    variants=variants,
                    options=msgspec.to_builtins(options),
                    code=fingerprint(),
                    own_code=own_code((trial.plan for trial in training), (trial.data.name for trial in training))
                    | program_files(programs, folder.path.parent.parent.resolve()),
                    data={trial.data.name: trial.data.note for trial in training if trial.data.note},
                    recordings=recordings_of(loaded.trials.values()),
                    engine=host.engine,
                    note=note,
                    runs_programs=loaded.runs_programs,
                )
                folder.write_scenario(resolved_yaml(loaded))
                run_trials(planned, folder, host, progress)
        return write_results(folder, report)


def _planned(scenario: Scenario, options: Options) -> Sequence[PlannedTrial]:
    """The plans of all trials; ScenarioError where this machine cannot run them as asked, or not in time."""
    if scenario.runs_programs:
        return programs_checked(scenario, options)
    planned = plan_checked(scenario, options)
    check_deadlines(scenario, [trial.plan for trial in planned], options.runtime)
    return planned


def programs_checked(scenario: Scenario, options: Options) -> list[PlannedPrograms]:
    """The plans of trials that run programs of the user's; as `plan_checked`."""
    planned = plan_programs(scenario)
    if TRAITS[options.runtime].has_local_processes:
        check_conditions([trial.plan for trial in planned])
    check_links(scenario, planned, options.runtime, options.emulation)
    return planned


def plan_checked(scenario: Scenario, options: Options) -> list[PlannedTraining]:
    """The plans of all trials of a scenario; ScenarioError where this machine cannot run it as asked."""
    if not TRAITS[options.runtime].is_virtual:
        refuse_objects(
            scenario, ("model", "objective"), f"nodes of the {options.runtime} runtime are programs of their own"
        )
    planned = plan_trials(scenario, trace=options.trace)
    check_mechanisms([trial.plan for trial in planned], options.runtime, options.emulation)
    check_links(scenario, planned, options.runtime, options.emulation)
    if TRAITS[options.runtime].has_containers:
        check_caps(scenario, planned, force=options.force)
    return planned


def host_of(options: Options, planned: Sequence[PlannedTrial], processes: int | None, port: int) -> TrialHost:
    """Where the trials are to run."""
    return _host_of(options, [trial.plan for trial in planned], processes, port)


def require_runtime(options: Options, plans: Sequence[TrainingPlan]) -> None:
    """InfrastructureError where this machine lacks what any run of these plans needs: an engine, the nodes' images."""
    with _host_of(options, plans, processes=1, port=0):
        pass


def _host_of(options: Options, plans: Sequence[Plan], processes: int | None, port: int) -> TrialHost:
    runtime = runtime_of(
        options.runtime,
        processes=processes or len(os.sched_getaffinity(0)),
        emulation=options.emulation,
        hosts=list(dict.fromkeys(host.address for plan in plans for host in plan.hosts)),
    )
    return TrialHost(runtime, port)


def refuse_objects(scenario: Scenario, keys: Sequence[str], why: str) -> None:
    """ScenarioError where a task's `keys`, e.g. its model or data, name what only this notebook or script has."""
    problems: dict[LocatedProblem, None] = {}  # in order, each once: variants share most of a scenario
    for name, trial in scenario.training.items():
        for key in keys:
            value = getattr(trial.task, key)
            value = value.name if isinstance(value, Part) else value
            if is_of_main(value):
                own = value.partition(":")[2]
                problem = scenario.cause(name, f"task.{key}").problem(
                    f"{own} is defined in this notebook or script, and {why}. Put it into a module beside the "
                    f"scenario, e.g. mytask.py, and say `{key}: mytask:{own}`"
                )
                problems[problem] = None
    if problems:
        raise ScenarioError(*problems)


def own_code(plans: Iterable[TrainingPlan], data: Iterable[str] = ()) -> dict[str, str]:
    """The user's own modules that these trials have imported, and what they have of a notebook or script.

    Paths of modules, and import paths of a notebook's models, objectives and `data`, each with a digest of its text.
    """
    tasks = [plan.nodes[0].task for plan in plans]
    texts = {path: text for task in tasks for path, text in sources(task.python_path)}
    names = (*(name for task in tasks for name in (task.model, task.objective.name)), *data)
    texts |= {name: source_of(name) for name in names if is_of_main(name)}
    return {path: hashlib.sha256(text.encode()).hexdigest()[:16] for path, text in texts.items()}


def program_files(plans: Iterable[ProgramsPlan], runs: Path) -> dict[str, str]:
    """The folders of the user's files that these programs have, each with a digest; `runs` is no part of them.

    Of a file that is larger than CODE_BYTES_MAX, which is no code, its name and size count.
    """
    found, ignored = {}, left_out({runs})
    for folder in dict.fromkeys(plan.program.files for plan in plans if plan.program.files):
        digest = hashlib.sha256()
        for place, folders, files in os.walk(folder, followlinks=True):  # a node has what links lead to
            folders[:] = sorted({*folders} - {*ignored(place, folders)})
            for path in sorted(Path(place, each) for each in files):
                size = path.stat().st_size if path.is_file() else 0
                digest.update(f"{path.relative_to(folder)}\0{size}\0".encode())
                digest.update(path.read_bytes() if path.is_file() and size <= CODE_BYTES_MAX else b"")
        found[folder] = digest.hexdigest()[:16]
    return found


def recordings_of(trials: Iterable[AnyTrial]) -> list[dict[str, str]]:
    """What there is to say of the recorded bandwidths and availabilities that trials follow, each once."""
    found: dict[str, dict[str, str]] = {}
    for trial in trials:
        serving = (trial.server, *trial.serving.values()) if isinstance(trial, TrialSection) else ()
        sections: tuple[LinkSection, ...] = (*trial.fleet.values(), *serving)
        traces = [section.link_trace.facts() for section in sections if section.link_trace]
        present = [entry.availability.facts() for entry in trial.faults if isinstance(entry, AvailabilityFault)]
        found |= {each["sha256"]: each for each in (*traces, *present)}
    return list(found.values())


def run_trials(
    planned: Sequence[PlannedTrial],
    folder: RunFolder,
    host: TrialHost,
    progress: ProgressLike | None,
    pasts: Mapping[str, ResumedTrial | None] = MappingProxyType({}),
) -> None:
    """Run trials one after the other, as long as they complete; `pasts` has the past of those that are resumed.

    KeyboardInterrupt where the user ends what cannot end in order; the journal says so.
    """
    host.run = folder.name
    try:
        for trial in planned:
            name = trial.plan.trial
            folder.trial_begins(name)
            if not _run_trial(trial, folder.trial(name), host, progress, pasts.get(name)):
                break
    except KeyboardInterrupt:
        with contextlib.suppress(EdgebedError):
            _journal_interruption(planned, folder)
        raise


def _journal_interruption(planned: Sequence[PlannedTrial], folder: RunFolder) -> None:
    """Journal that the user ended the run where no trial says so: in the first that has not run to its end."""
    for trial in planned:
        begun = folder.trial(trial.plan.trial)
        series = (ProgramTrial if isinstance(trial, PlannedPrograms) else Trial)(begun).series
        if series.ended is None:
            begun.make(trial.plan)
            with JournalWriter(begun.journal) as journal:
                journal.write(series.length_s, CONTROLLER, records.Ended(outcome="interrupted", reason=BY_USER))
        if not series.ran_to_end:
            return


def holding(folder: RunFolder) -> contextlib.ExitStack:
    """Hold a run's folder until the stack is closed; ScenarioError where another process holds it."""
    hold = contextlib.ExitStack()
    hold.enter_context(folder.locked())
    return hold


@contextlib.contextmanager
def working_on(folder: RunFolder, report: ReportWriter, hold: contextlib.ExitStack) -> Iterator[None]:
    """Note how long a run was worked on; where it breaks off, write what there is of it.

    `hold` holds the run's folder, which is let go at the end.
    """
    with hold:
        began_s = time.monotonic()
        try:
            yield
            folder.add_wall_time(time.monotonic() - began_s)
        except (EdgebedError, KeyboardInterrupt) as error:
            with contextlib.suppress(EdgebedError):
                folder.add_wall_time(time.monotonic() - began_s)
            hold.close()
            with contextlib.suppress(EdgebedError):  # worth reading, if it can be written
                result = write_results(folder, report)
                if isinstance(error, KeyboardInterrupt) and result.can_be_resumed:
                    say(f"to resume: {result.resume_command}")
            raise


def write_results(folder: RunFolder, report: ReportWriter) -> Run:
    """Write the summary and the report of a run that is over; an interruption waits for them, but no second one."""
    with finishing():
        result = Run(folder)
        write_atomically(folder.summary, result.summary_json())
        if result.summary.result != "interrupted":
            report(result)
            return result
    if report is not without_report:
        say(f"writing the report of what there is; Ctrl-C again leaves it to edgebed report {folder.name}")
    with ending_by_signal():
        report(result)
    return result


def _run_trial(
    planned: PlannedTrial,
    folder: TrialFolder,
    host: TrialHost,
    progress: ProgressLike | None,
    past: ResumedTrial | None,
) -> bool:
    """Run one trial; False if no other is to follow."""
    folder.make(planned.plan)
    beginning = Beginning(planned.plan) if isinstance(planned, PlannedTraining) else None
    if progress:
        progress.trial_started(planned.plan)
    trial = Trial(folder)
    with JournalWriter(folder.journal) as journal:
        show = progress.update if progress else lambda _: None
        try:
            if isinstance(planned, PlannedPrograms):
                return host.run_programs(planned.plan, folder, journal, show, lambda: ProgramTrial(folder).summary)
            if isinstance(planned, PlannedTraining) and beginning:
                host.run_trial(planned, beginning, folder, journal, show, lambda: trial.summary, past)
        except EdgebedError as error:
            with contextlib.suppress(EdgebedError):
                if not folder.journal.stat().st_size:  # what the nodes were to run in has failed
                    journal.write(0.0, CONTROLLER, records.Ended.failed(str(error)))
            raise
    summary = trial.summary
    if progress:
        progress.trial_ended(summary)
    return summary.ran_to_end
