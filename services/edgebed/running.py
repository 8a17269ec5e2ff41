"""Run a scenario: load it, plan it, run one trial after another, write summary and report.

load ---> plan ---> for each trial: runtime ---> journal ---> summary.json, report.html
"""

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from edgebed.emulation.means import check_means
from edgebed.errors import EdgebedError, ScenarioError
from edgebed.learning import models
from edgebed.observe import report
from edgebed.observe.journal import JournalWriter
from edgebed.observe.progress import Status
from edgebed.observe.run_folder import RunFolder, TrialFolder, runs_root, write_atomically
from edgebed.observe.summary import TrialSummary
from edgebed.results import Run, Trial
from edgebed.runtimes import EMULATIONS, RUNTIMES, Emulation, Runtime, hosting
from edgebed.runtimes.signals import ending_by_signal
from edgebed.scenario.link_doubts import check_links
from edgebed.scenario.load import load_scenario, resolved_yaml
from edgebed.scenario.memory import check_caps
from edgebed.scenario.plan import Plan
from edgebed.scenario.planning import PlannedTrial, plan_trials


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
    trace: bool = False,
    processes: int | None = None,
    runs_dir: str | Path | None = None,
    port: int = 0,
    force: bool = False,
    progress: ProgressLike | None = None,
) -> Run:
    """Run every trial of a scenario and return the results; `Run.exit_code` tells whether the expectations were met.

    `set` overrides parts of the scenario, e.g. `["fleet.edge.count=8"]`. `processes` is how many the simulation
    computes with (default: all cores); it changes no result. `port` is where the controller serves metrics, targets
    and status, on loopback, or in a container on its management network (0: any free one). `force` runs a scenario
    although a container's memory cap is below what its node needs. `emulation` is what holds links and caps in the
    process runtime: the kernel, which takes root, or the transport's model and pacing. Raises ScenarioError for a
    scenario that cannot be run, found before anything starts, and InfrastructureError when this machine gives up.
    """
    if isinstance(set, str):
        raise ScenarioError(f"set: {set!r} is one string; give a list of them, e.g. ['fleet.edge.count=8']")
    if runtime not in RUNTIMES:
        raise ScenarioError(f"--runtime: {runtime!r} is none of {', '.join(RUNTIMES)}")
    if emulation not in EMULATIONS:
        raise ScenarioError(f"--emulation: {emulation!r} is none of {', '.join(EMULATIONS)}")
    if processes is not None and processes < 1:
        raise ScenarioError(f"--processes: {processes} is below 1")
    with contextlib.redirect_stdout(sys.stderr):  # what a user's own model prints is not a result
        loaded = load_scenario(scenario, set)
        planned = plan_trials(loaded, trace=trace)
        check_means([trial.plan for trial in planned], runtime, emulation)
        check_links(loaded, planned, runtime, emulation)
        if runtime == "docker":
            check_caps(loaded, planned, force=force)
        host = hosting.Host(
            runtime=runtime, processes=processes or len(os.sched_getaffinity(0)), port=port, emulation=emulation
        )
        with ending_by_signal(), host:
            folder = RunFolder.create(runs_root(runs_dir), loaded.name)
            folder.write_manifest(
                seed=loaded.seed,
                runtime=runtime,
                command=sys.argv,
                trials=[trial.plan.trial for trial in planned],
                scenario_file=None if isinstance(scenario, Mapping) else str(scenario),
                sets=set,
                engine=host.engine,
            )
            folder.write_scenario(resolved_yaml(loaded))
            host.run = f"{folder.scenario_name}/{folder.path.name}"
            try:
                with folder.held():
                    for trial in planned:
                        if not _run_trial(trial, folder.trial(trial.plan.trial), host, progress):
                            break
            except (EdgebedError, KeyboardInterrupt):
                with contextlib.suppress(EdgebedError):  # what there is of it is worth reading, if it can be written
                    _write_results(folder)
                raise
        return _write_results(folder)


def _write_results(folder: RunFolder) -> Run:
    result = Run(folder)
    write_atomically(folder.summary, result.summary_json())
    report.write_report(result)
    return result


def _run_trial(planned: PlannedTrial, folder: TrialFolder, host: hosting.Host, progress: ProgressLike | None) -> bool:
    """Run one trial; False if no other is to follow."""
    folder.make(planned.plan)
    theta = models.initial_parameters(planned.plan.nodes[0].task, planned.plan.seed)
    if progress:
        progress.trial_started(planned.plan)
    trial = Trial(folder)
    with JournalWriter(folder.journal) as journal:
        show = progress.update if progress else lambda _: None
        host.run_trial(planned, theta, folder, journal, show, lambda: trial.summary.fidelity)
    summary = trial.summary
    if progress:
        progress.trial_ended(summary)
    return summary.outcome == "completed"
