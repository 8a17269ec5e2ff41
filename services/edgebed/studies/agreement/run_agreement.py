"""Run a scenario in several runtimes with several seeds, and judge whether the runtimes agree.

    run_all: runtimes x seeds ---> ordinary runs ---> judge: series by trial, runtime and seed ---> agreement.py

Runs that exist already are judged just the same.
"""

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import msgspec

from edgebed.core.errors import InfrastructureError, Place, ScenarioError
from edgebed.core.quantities import seconds_text
from edgebed.core.runtimes import Emulation, Runtime, is_virtual
from edgebed.journal.outcome import outcome_text
from edgebed.journal.run_folder import RunFolder, runs_root
from edgebed.running.results import Run
from edgebed.running.run import Options, ProgressLike, ReportWriter, plan_checked, refuse_objects, require_runtime
from edgebed.runtimes.signals import ending_by_signal
from edgebed.scenario.load import load_scenario
from edgebed.scenario.source import from_plain
from edgebed.studies.agreement.agreement import SEEDS_MIN, Agreement, Verdict, agreement, overall
from edgebed.studies.arms import Arm, gather
from edgebed.studies.cells.jobs import Job, Tell, begin
from edgebed.studies.cells.parallel import by_time, show_ended, spread

Key = tuple[Runtime, int]
"""Runtime and seed."""
ORDER: tuple[Runtime, ...] = ("simulation", "process", "docker")
"""Default order of the runtimes: what the first predicts, the others are to do."""
HOSTS = ("runtime", "emulation")
"""Settings that may differ between runs that are compared."""


class Agreements(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of all trials of a scenario in several runtimes."""

    scenario: str
    verdict: Verdict
    runs: dict[str, dict[int, str]]
    """The runs that were compared, by runtime and seed."""
    trials: tuple[Agreement, ...]
    notes: tuple[str, ...] = ()
    """What a reader of the comparison should know."""


def run_all(
    report: ReportWriter,
    scenario: str | Path | Mapping[str, Any],
    *,
    runtimes: Sequence[Runtime] = ("simulation", "process"),
    seeds: int = 3,
    set: Sequence[str] = (),  # noqa: A002 # the name of the command line's option
    emulation: Emulation = "auto",
    processes: int | None = None,
    force: bool = False,
    runs_dir: str | Path | None = None,
    progress: ProgressLike | None = None,
    executor: Executor | None = None,
    tell: Tell = lambda _: None,
) -> list[Run]:
    """Run the scenario with seeds 1 to `seeds` in each runtime; all trials of these runs have completed.

    Simulated runs are made on the `executor`, if there is one. Each runtime is checked to be available before anything
    runs. Raises ScenarioError for what cannot be run, InfrastructureError where a trial does not complete, and
    KeyboardInterrupt where one was interrupted.
    """
    _check(runtimes, seeds)
    loaded = load_scenario(scenario, set)
    if executor is not None:
        refuse_objects(
            loaded, ("model", "objective", "data"), "runs that are made at the same time are programs of their own"
        )
    for runtime in runtimes:
        options = Options(runtime=runtime, emulation=emulation, trace=False, force=force)
        require_runtime(options, [trial.plan for trial in plan_checked(loaded, options)])
    jobs = {
        (runtime, seed): Job(
            name=f"{runtime}, seed {seed}",
            scenario=from_plain(scenario, Place("")).plain() if isinstance(scenario, Mapping) else str(scenario),
            runtime=runtime,
            emulation=emulation,
            set=(*set, f"seed={seed}"),
            processes=processes,
            force=force,
            runs_dir=str(runs_root(runs_dir)),
        )
        for runtime in runtimes
        for seed in range(1, seeds + 1)
    }
    runs, here = {}, jobs
    if executor is not None:
        virtual, here = by_time(jobs, tell)
        runs = _spread(executor, virtual, report, progress, tell)
    for key, job in here.items():
        runs[key] = begin(job, report, progress)
        _check_completed(runs[key])
    return [runs[key] for key in jobs]


def _spread(
    executor: Executor, jobs: Mapping[Key, Job], report: ReportWriter, progress: ProgressLike | None, tell: Tell
) -> dict[Key, Run]:
    """The runs of these jobs, all of which have completed; errors as in `run_all`, at which the others are ended."""
    runs: dict[Key, Run] = {}
    with ending_by_signal(), contextlib.closing(spread(executor, jobs, report, tell)) as results:
        for key, result in results:
            if result.failure:
                raise (ScenarioError if result.exit_code == ScenarioError.exit_code else InfrastructureError)(
                    f"{jobs[key].name}: {result.failure}"
                )
            show_ended(result, progress)
            runs[key] = Run(RunFolder(Path(result.run)))
            _check_completed(runs[key])
            tell(f"[{len(runs)}/{len(jobs)}] {jobs[key].name}, in {seconds_text(result.took_s)}")
    return runs


def judge(runs: Sequence[Run], runtimes: Sequence[Runtime] | None = None) -> Agreements:
    """Compare finished runs of one scenario, by trial; the first of `runtimes` (else of ORDER) is the reference.

    Runs of other runtimes are left out. Raises ScenarioError where runs differ in more than runtime and seed, have not
    completed, or are too few.
    """
    runs = _chosen(runs, runtimes)
    if not runs:
        raise ScenarioError("there is no run to compare; give runs of one scenario, of two runtimes at least")
    scenarios = dict.fromkeys(run.scenario for run in runs)
    if len(scenarios) > 1:
        raise ScenarioError(f"the runs are of several scenarios: {', '.join(scenarios)}; give those of one")
    trials = arms_by_trial(runs, runtimes)
    agreements = tuple(
        agreement(
            trial,
            {
                runtime: {seed: member.trial.series for seed, member in arm.members.items()}
                for runtime, arm in arms.items()
            },
        )
        for trial, arms in trials.items()
    )
    return Agreements(
        scenario=runs[0].scenario,
        verdict=overall(agreements),
        runs={
            runtime: {seed: member.run.folder.name for seed, member in arm.members.items()}
            for arms in trials.values()
            for runtime, arm in arms.items()
        },
        trials=agreements,
        notes=_notes(runs),
    )


def arms_by_trial(runs: Sequence[Run], runtimes: Sequence[Runtime] | None = None) -> dict[str, dict[str, Arm]]:
    """The arms of each trial by runtime, the reference first; ScenarioError where they cannot be compared.

    Runs of other runtimes than `runtimes` are left out.
    """
    gathered = gather(_chosen(runs, runtimes))
    if gathered.left_out:
        raise ScenarioError(*gathered.left_out)
    if any(arm.runs_programs for arm in gathered.arms):
        raise ScenarioError(
            "agreement is of what edgebed trains; of runs of programs edgebed compare shows the differences"
        )
    trials = dict.fromkeys(arm.trial for arm in gathered.arms)
    order = runtimes or ORDER
    return {trial: _by_runtime([arm for arm in gathered.arms if arm.trial == trial], order) for trial in trials}


def _chosen(runs: Sequence[Run], runtimes: Sequence[Runtime] | None) -> list[Run]:
    """The runs of these runtimes, or all."""
    return [run for run in runs if runtimes is None or run.manifest.get("runtime") in runtimes]


def _check(runtimes: Sequence[Runtime], seeds: int) -> None:
    if len(runtimes) < 2 or len(dict.fromkeys(runtimes)) < len(runtimes):
        raise ScenarioError(
            f"--runtimes: {','.join(runtimes) or 'none'}; give two or three different ones, e.g. simulation,process"
        )
    if seeds < SEEDS_MIN:
        raise ScenarioError(
            f"--seeds: {seeds} is below {SEEDS_MIN}; what runtimes differ by is judged by what seeds differ by"
        )


def _check_completed(run: Run) -> None:
    summary = run.summary
    if summary.exit_code == 130:
        raise KeyboardInterrupt
    reasons = "; ".join(f"{each.trial}: {outcome_text(each)}" for each in summary.trials if not each.is_sound)
    if reasons or summary.not_begun:
        raise InfrastructureError(
            f"run {run.folder.name} ({summary.runtime}, seed {summary.seed}) leaves nothing to compare: "
            f"{summary.text} {reasons}"
        )


def _by_runtime(arms: Sequence[Arm], order: Sequence[str]) -> dict[str, Arm]:
    """The arms of one trial, in order; ScenarioError where they differ in more than what hosts them."""
    found: dict[str, Arm] = {}
    for arm in sorted(arms, key=lambda arm: _place(arm, order)):
        first = next(iter(found.values()), arm)
        if others := [change for change in arm.changes(first) if change.path not in HOSTS]:
            raise ScenarioError(
                f"trial {arm.trial}: {_name(arm)} differs from {_name(first)} in more than runtime and seed: "
                f"{others[0]}; give runs of the same settings"
            )
        runtime = str(arm.settings["runtime"])
        if runtime in found:
            raise ScenarioError(
                f"trial {arm.trial}: {_name(arm)} and {_name(found[runtime])} are both of the {runtime} runtime, with "
                "another emulation; give the runs of one of them"
            )
        found[runtime] = arm
    return found


def _place(arm: Arm, order: Sequence[str]) -> int:
    runtime = arm.settings["runtime"]
    return order.index(runtime) if runtime in order else len(order)


def _name(arm: Arm) -> str:
    return next(iter(arm.members.values())).run.folder.name


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """Notes where code differed, and on each trial's conditions; the same note of several runs once."""
    concerned: dict[str, list[str]] = {}
    for run in runs:
        for trial in run.summary.trials:
            told = [f"{trial.trial} {outcome_text(trial)}"] if trial.outcome == "diverged" else []
            if trial.fidelity:
                remarks = () if is_virtual(run.summary.runtime) else trial.fidelity.remarks
                told += (*trial.fidelity.reasons, *remarks)
            for text in told:
                concerned.setdefault(text, []).append(f"{run.path.name} ({run.summary.runtime})")
    codes = {run.manifest.get("code", "") for run in runs}
    differing = ("the runs were made by different versions of edgebed's code",) if len(codes) > 1 else ()
    return (*differing, *(f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in concerned.items()))
