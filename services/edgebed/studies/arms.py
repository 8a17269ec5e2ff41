"""Arms: the trials of several runs, gathered where nothing but the seed differs.

    runs ---> trials, each with its settings ---> arms: trials by seed

A trial belongs to an arm by its name, its scenario, its settings as resolved, its runtime and the user's own modules.
What a scenario expects and asks does not affect training, and is ignored. Trials that did not complete, or whose
accounting does not close, are left out, and named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgebed.core import reading
from edgebed.core.errors import ScenarioError
from edgebed.core.runtimes import has_choice_of_emulation
from edgebed.journal.outcome import outcome_text
from edgebed.running.results import AnyTrial, ProgramTrial, Run, Trial
from edgebed.scenario import source
from edgebed.scenario.load import TRIAL_KEYS
from edgebed.studies.changes import SettingChange, Settings, changes_between

NO_SETTINGS_OF_TRAINING = ("expect",)
NAMED_CHANGES_MAX = 2
"""Number of settings in the name of an arm."""
NAMED_VALUE_MAX = 20
"""Number of characters of a value in the name of an arm."""


@dataclass(frozen=True, kw_only=True)
class ArmTrial:
    """One trial of an arm."""

    run: Run
    begun: AnyTrial

    @property
    def trial(self) -> Trial:
        """The trial, of an arm that trains."""
        assert isinstance(self.begun, Trial)
        return self.begun

    @property
    def name(self) -> str:
        """The trial's name with its run's, e.g. `mnist/0001: adacomp`."""
        return f"{self.run.folder.name}: {self.begun.name}"


@dataclass(kw_only=True)
class Arm:
    """Trials that differ in nothing but the seed."""

    settings: Settings
    """Settings of the trial as resolved, with `scenario`, `runtime` and the like around them."""
    trial: str
    """The common name of the arm's trials."""
    name: str = ""
    """Name of the arm, unique in a comparison."""
    members: dict[int, ArmTrial] = field(default_factory=dict)
    """Trials by seed."""

    @property
    def runs_programs(self) -> bool:
        """Whether nodes run programs of the user's, and train nothing that edgebed knows."""
        return any(isinstance(member.begun, ProgramTrial) for member in self.members.values())

    def changes(self, baseline: "Arm") -> tuple[SettingChange, ...]:
        """Settings that differ from those of `baseline`."""
        return changes_between(baseline.settings, self.settings)


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """The arms of some runs."""

    arms: tuple[Arm, ...]
    """Arms in the order in which their first trials were given."""
    left_out: tuple[str, ...]
    """Sentences about trials that are in no arm."""


def gather(runs: Sequence[Run]) -> Gathered:
    """The trials of `runs` that came to their end as arms, each with a name of its own.

    Of two trials of an arm with the same seed the one of the run given last counts. Raises ScenarioError where no trial
    has completed, and EdgebedError where a run's files are broken.
    """
    arms: list[Arm] = []
    left_out: list[str] = []
    for run in {run.path.resolve(): run for run in runs}.values():
        for name, settings in settings_of(run).items():
            member = ArmTrial(run=run, begun=run.begun[name])
            if problem := _why_not(member):
                left_out.append(problem)
                continue
            arm = next((arm for arm in arms if arm.trial == name and arm.settings == settings), None)
            if arm is None:
                arms.append(arm := Arm(settings=settings, trial=name))
            seed = member.begun.plan.seed
            if before := arm.members.pop(seed, None):
                left_out.append(f"{before.name} has the seed and the settings of {member.name}, which was given later")
            arm.members[seed] = member
        left_out += [f"{run.folder.name}: {name} did not begin" for name in run.summary.not_begun]
    if not arms:
        raise ScenarioError(f"nothing to compare: no trial has completed. {'; '.join(left_out)}.")
    for arm in arms:
        arm.members = dict(sorted(arm.members.items()))
    _give_names(arms)
    return Gathered(arms=tuple(arms), left_out=tuple(left_out))


def _why_not(member: ArmTrial) -> str:
    """Why a trial is not compared, and what to do; "" if it is."""
    trial, run = member.begun, member.run
    if trial.series.ran_to_end:
        return "" if trial.summary.is_sound else f"{member.name} {outcome_text(trial.summary)}"
    if run.folder.is_running():
        return f"{member.name} is still running"
    hint = f"; {run.resume_command} resumes it" if run.can_be_resumed else ""
    after = "" if isinstance(trial, ProgramTrial) else f" after {len(trial.series.updates):,} updates"
    return f"{member.name} is {trial.series.outcome}{after}{hint}"


def settings_of(run: Run) -> dict[str, Settings]:
    """Settings of each trial that has begun."""
    document = source.read_file(run.folder.scenario, read=reading.read_file).plain()
    around = {"scenario": run.scenario, **_conditions(run.manifest)}
    trials: dict[str, Settings] = {}
    for name in run.begun:
        trial = document.get("variants", {}).get(name, document)
        known = {key: trial[key] for key in TRIAL_KEYS if key in trial and key not in NO_SETTINGS_OF_TRAINING}
        trials[name] = around | known
    return trials


def _conditions(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a trial depends on besides its scenario."""
    runtime = manifest.get("runtime", "unknown")
    conditions: dict[str, Any] = {"runtime": runtime}
    if has_choice_of_emulation(runtime):
        conditions["emulation"] = manifest.get("options", {}).get("emulation", "unknown")
    own_code = {Path(path).name: digest for path, digest in sorted(manifest.get("own_code", {}).items())}
    return conditions | ({"own code": own_code} if own_code else {})


def _give_names(arms: Sequence[Arm]) -> None:
    """Name each arm by its trial where no other arm has that, else with the first addition that makes it unique."""
    for trial in {arm.trial: None for arm in arms}:
        namesakes = [arm for arm in arms if arm.trial == trial]
        names = [trial]
        for additions in _additions(namesakes) if len(namesakes) > 1 else ():
            names = [f"{trial} ({addition})" for addition in additions]
            if len(set(names)) == len(names):
                break
        for arm, name in zip(namesakes, names, strict=True):
            arm.name = name


def _additions(arms: Sequence[Arm]) -> Iterator[list[str]]:
    """Additions that may distinguish arms of one name, best first; the last one always does."""
    yield [str(arm.settings["scenario"]) for arm in arms]
    yield [str(arm.settings["runtime"]) for arm in arms]
    changes = [{change.path: change for change in arm.changes(arms[0])} for arm in arms]
    first = {path: change.before for each in changes for path, change in each.items()}
    values = [first | {path: change.after for path, change in each.items()} for each in changes]
    texts = [text for each in values for text in each.values()]
    if len(first) <= NAMED_CHANGES_MAX and max(map(len, texts)) <= NAMED_VALUE_MAX:
        yield [", ".join(f"{path.rpartition('.')[2]} {value}" for path, value in each.items()) for each in values]
    yield [next(iter(arm.members.values())).run.folder.name for arm in arms]
