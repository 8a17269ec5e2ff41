"""Run a scenario: load it, plan it, run one trial after another, write summary and report.

load ---> plan ---> for each trial: runtime ---> journal ---> summary.json, report.html
"""

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from edgebed.emulation.means import check_means
from edgebed.errors import EdgebedError, ScenarioError
from edgebed.fingerprint import fingerprint
from edgebed.learning.beginning import Beginning
from edgebed.learning.imports import sources
from edgebed.observe import report
from edgebed.observe.journal import JournalWriter
from edgebed.observe.run_folder import RunFolder, TrialFolder, runs_root, write_atomically
from edgebed.observe.standing import Status
from edgebed.observe.summary import TrialSummary
from edgebed.results import Run, Trial
from edgebed.roles.controller import Past
from edgebed.runtimes import EMULATIONS, RUNTIMES, Emulation, Runtime, hosting
from edgebed.runtimes.signals import ending_by_signal
from edgebed.scenario.link_doubts import check_links
from edgebed.scenario.load import load_scenario, resolved_yaml
from edgebed.scenario.memory import check_caps
from edgebed.scenario.plan import Plan
from edgebed.scenario.planning import PlannedTrial, plan_trials
from edgebed.scenario.schema import Scenario


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario is run, as far as going on with the run depends on it."""

    runtime: Runtime
    emulation: Emulation
    trace: bool
    force: bool


class ProgressLike(Protocol):
    """Who is told how the run goes (observe/progress.py)."""

    def trial_started(self, plan: Plan) -> None:
        """A trial begins."""
        ...

    def update(self, status: Status) -> None:
        """This is how it stands."""
        ...

    def trial_ended(self, summary: TrialSummary) -> None:
        """It is over."""
        ...


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    runtime: Runtime = "process",
    emulation: Emulation = "auto",
    set: Sequence[str] = (),  # noqa: A002 # the name of the command line's option
    variants: Sequence[str] = (),
    trace: bool = False,
    processes: int | None = None,
    runs_dir: str | Path | None = None,
    port: int = 0,
    force: bool = False,
    progress: ProgressLike | None = None,
) -> Run:
    """Run the trials of a scenario and return the results; `Run.exit_code` tells whether the expectations were met.

    `set` overrides parts of the scenario, e.g. `["fleet.edge.count=8"]`; `variants` names the trials to run (default:
    all). `processes` is how many the simulation
    computes with (default: all cores); it changes no result. `port` is where the controller serves metrics, targets
    and status, on loopback, or in a container on its management network (0: any free one). `force` runs a scenario
    although a container's memory cap is below what its node needs. `emulation` is what holds links and caps in the
    process runtime: the kernel, which takes root, or the transport's model and pacing. Raises ScenarioError for a
    scenario that cannot be run, found before anything starts, and InfrastructureError when this machine gives up.
    """
    if isinstance(set, str):
        raise ScenarioError(f"set: {set!r} is one string; give a list of them, e.g. ['fleet.edge.count=8']")
    if isinstance(variants, str):
        raise ScenarioError(f"variants: {variants!r} is one string; give a list of names, e.g. ['adacomp']")
    if runtime not in RUNTIMES:
        raise ScenarioError(f"--runtime: {runtime!r} is none of {', '.join(RUNTIMES)}")
    if emulation not in EMULATIONS:
        raise ScenarioError(f"--emulation: {emulation!r} is none of {', '.join(EMULATIONS)}")
    if processes is not None and processes < 1:
        raise ScenarioError(f"--processes: {processes} is below 1")
    options = Options(runtime=runtime, emulation=emulation, trace=trace, force=force)
    with contextlib.redirect_stdout(sys.stderr):  # what a user's own model prints is not a result
        loaded = load_scenario(scenario, set).only(variants)
        planned = plan_checked(loaded, options)
        with ending_by_signal(), host_of(options, processes, port) as host:
            folder = RunFolder.create(runs_root(runs_dir), loaded.name)
            with working_on(folder):  # from here on, whoever looks sees that it is in progress
                folder.write_manifest(
                    seed=loaded.seed,
                    runtime=runtime,
                    command=sys.argv,
                    trials=[trial.plan.trial for trial in planned],
                    scenario_file=None if isinstance(scenario, Mapping) else str(scenario),
                    sets=set,
                    variants=variants,
                    options=msgspec.to_builtins(options),
                    code=fingerprint(),
                    own_code=own_code(trial.plan for trial in planned),
                    data={trial.data.name: trial.data.note for trial in planned if trial.data.note},
                    engine=host.engine,
                )
                folder.write_scenario(resolved_yaml(loaded))
                run_trials(planned, folder, host, progress)
        return write_results(folder)


def plan_checked(scenario: Scenario, options: Options) -> list[PlannedTrial]:
    """Every trial of a scenario; ScenarioError where this machine cannot run it as asked."""
    planned = plan_trials(scenario, trace=options.trace)
    check_means([trial.plan for trial in planned], options.runtime, options.emulation)
    check_links(scenario, planned, options.runtime, options.emulation)
    if options.runtime == "docker":
        check_caps(scenario, planned, force=options.force)
    return planned


def host_of(options: Options, processes: int | None, port: int) -> hosting.Host:
    """Where the trials are to run."""
    return hosting.Host(
        runtime=options.runtime,
        processes=processes or len(os.sched_getaffinity(0)),
        port=port,
        emulation=options.emulation,
    )


def own_code(plans: Iterable[Plan]) -> dict[str, str]:
    """The user's own modules that these trials have imported: their paths, each with a digest of its text."""
    texts = {path: text for plan in plans for path, text in sources(plan.nodes[0].task.python_path)}
    return {path: hashlib.sha256(text.encode()).hexdigest()[:16] for path, text in texts.items()}


def run_trials(
    planned: Sequence[PlannedTrial],
    folder: RunFolder,
    host: hosting.Host,
    progress: ProgressLike | None,
    pasts: Mapping[str, Past | None] = MappingProxyType({}),
) -> None:
    """Run trials one after the other, as long as they complete; `pasts` tells of those that go on."""
    host.run = folder.name
    for trial in planned:
        name = trial.plan.trial
        folder.trial_begins(name)
        if not _run_trial(trial, folder.trial(name), host, progress, pasts.get(name)):
            break


@contextlib.contextmanager
def working_on(folder: RunFolder) -> Iterator[None]:
    """Hold the run's folder, and note how long it was worked on; where the run breaks off, write what there is of it.

    Raises ScenarioError where somebody else holds it.
    """
    with contextlib.ExitStack() as hold:
        hold.enter_context(folder.held())
        began_s = time.monotonic()
        try:
            yield
            folder.add_wall_time(time.monotonic() - began_s)
        except (EdgebedError, KeyboardInterrupt):
            with contextlib.suppress(EdgebedError):
                folder.add_wall_time(time.monotonic() - began_s)
            hold.close()
            with contextlib.suppress(EdgebedError):  # worth reading, if it can be written
                write_results(folder)
            raise


def write_results(folder: RunFolder) -> Run:
    """Write the summary and the report of a run that goes on no longer."""
    result = Run(folder)
    write_atomically(folder.summary, result.summary_json())
    report.write_report(result)
    return result


def _run_trial(
    planned: PlannedTrial,
    folder: TrialFolder,
    host: hosting.Host,
    progress: ProgressLike | None,
    past: Past | None,
) -> bool:
    """Run one trial; False if no other is to follow."""
    folder.make(planned.plan)
    beginning = Beginning(planned.plan)
    if progress:
        progress.trial_started(planned.plan)
    trial = Trial(folder)
    with JournalWriter(folder.journal) as journal:
        show = progress.update if progress else lambda _: None
        host.run_trial(planned, beginning, folder, journal, show, lambda: trial.summary, past)
    summary = trial.summary
    if progress:
        progress.trial_ended(summary)
    return summary.ran_to_end
