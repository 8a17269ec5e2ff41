"""Compare runs: the results of each arm, and how far it is from the baseline over the same seeds.

    runs ---> arms (arms.py) ---> outcomes, one a trial ---> measures: by seed, mean and interval, against the baseline

Shares, and measures of which more is better, are compared by their difference, all else by the ratio: bytes, times and
errors of two methods differ by factors.
Where an arm does not reach the level in each of its seeds there is no mean of what that took: leaving out the seeds
that failed would make the arm look better than it is.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.measure import Family
from edgebed.core.measures.measure import Measure as OfTrials
from edgebed.core.measures.task import TEST, TaskMeasure
from edgebed.core.measures.trial import MEASURES, all_measures, program_measures
from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import UNMEASURED
from edgebed.journal.programs.summary import ProgramSummary
from edgebed.running.tables import table_html
from edgebed.scenario.mistakes.problems import choose
from edgebed.studies.arms import Arm, ArmTrial, Gathered
from edgebed.studies.changes import SettingChange
from edgebed.studies.comparison.clients import ClientsOfArm, compare_clients
from edgebed.studies.comparison.warnings import warnings_of
from edgebed.studies.measures import (
    WINDOW,
    CostToLevel,
    Level,
    best_average,
    expected_values,
    fall_of,
    level_told,
    named_level,
    no_better_text,
    part_of,
    reach,
)
from edgebed.studies.statistics import CONFIDENCE, ConfidenceInterval, interval, paired, paired_ratio
from edgebed.studies.sweep.winners import Win, win

By = Literal["difference", "ratio"]
TASK = "task"
INCOMPARABLE = (f"{TASK}.data", f"{TASK}.model")
OF_THE_METHOD = (f"{TASK}.compression_time", f"{TASK}.exchange_time")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one trial. None: not measured, or never reached."""

    run: str
    seed: int
    measures: dict[str, float | None]
    """The measures that are compared, by name; the best value of the headline is that of the moving average."""
    reached: CostToLevel | None = None
    """What it took to reach the comparison's level."""
    diverged: bool = False
    """Whether a loss was not finite."""
    was_evaluated: bool = True
    """Whether the server's model was: where each worker keeps a model of its own, it is not."""

    def value(self, name: str) -> float | None:
        """A measure by its name; None where it was not measured, or the level not reached."""
        if name in self.measures:
            return self.measures[name]
        value: float | None = getattr(self.reached, name.removesuffix("_to"), None)
        return value


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity of an arm over its seeds."""

    values: dict[int, float]
    """Values by seed, without seeds that have none."""
    mean: ConfidenceInterval | None
    """Mean over seeds; None where a seed has no value."""
    by: By
    against: ConfidenceInterval | None
    """Difference or ratio to the baseline, over the seeds that both have. None for the baseline itself."""


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """One arm in numbers."""

    scenario: str
    trial: str
    runtime: str
    changes: tuple[SettingChange, ...]
    """Settings that differ from the baseline's."""
    outcomes: tuple[Outcome, ...]
    """Results by seed."""
    measures: dict[str, Measure]
    """Measures by their names."""
    examples_per_update: float | None = None
    """Training examples that an update stands for, the mean over workers; None: not known."""
    most_frequent_class: float | None = None
    """The share of the test set's most frequent class: what who always says it comes to. None: not known."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the arm, in increasing order."""
        return tuple(outcome.seed for outcome in self.outcomes)

    @property
    def num_reached(self) -> int:
        """Number of seeds in which the arm reached the level."""
        return sum(outcome.reached is not None for outcome in self.outcomes)

    @property
    def num_evaluated(self) -> int:
        """Number of seeds in which the arm's model was evaluated."""
        return sum(outcome.was_evaluated for outcome in self.outcomes)

    @property
    def num_diverged(self) -> int:
        """Number of seeds in which the arm diverged."""
        return sum(outcome.diverged for outcome in self.outcomes)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Some arms, and how far each is from the baseline."""

    baseline: str
    """Name of the arm that others are compared with."""
    headline: TaskMeasure
    """The measure of the task that results are told by; of programs the first that they tell, or the time."""
    told: tuple[str, ...] | None = None
    """What programs of the user's told, by name; None: the trials train."""
    window: int = 1
    """Evaluations that a moving average of it is taken over."""
    selects_by: str = TEST
    """The part of the data by which levels are reached and best versions are chosen: test or validation."""
    level: Level | None = None
    """What `to` and the like refer to; None where there is none that all arms reached. It is named where it was asked
    for, by the user or by all scenarios alike, else the best of a ladder that all arms reached in each seed."""
    confidence: float
    """Confidence of all intervals."""
    firsts: dict[str, Win] = {}
    """The arm that needs least to reach the level, by measure, of those that reached it in each of their seeds."""
    arms: dict[str, ArmResult]
    """Results of the arms by name, in the order of the runs given."""
    clients: dict[str, ClientsOfArm] = {}
    """What each arm does to the clients; empty where nothing was measured client by client."""
    other_tasks: tuple[str, ...] = ()
    """Differences of tasks, for each arm that does not train the baseline's. To be read before anything else."""
    left_out: tuple[str, ...]
    """Trials that are not compared, and why."""
    notes: tuple[str, ...]
    """What a reader must know before trusting the numbers."""

    @property
    def whole(self) -> dict[str, OfTrials]:
        """Measures of whole trials that are compared."""
        return compared(self.headline) if self.told is None else compared_programs(self.told)

    @property
    def measures(self) -> dict[str, OfTrials]:
        """Measures of an arm."""
        return self.whole | REACHED if self.told is None else self.whole

    @property
    def family(self) -> Family:
        """The family of the trials; that of parameter servers where some are of each."""
        if self.told is not None:
            return "program"
        outcomes = [outcome for arm in self.arms.values() for outcome in arm.outcomes]
        return "server" if any(outcome.measures["ingress_bytes"] is not None for outcome in outcomes) else "shards"

    @property
    def examples_per_update(self) -> dict[str, float | None]:
        """Training examples that an update stands for, by arm."""
        return {name: arm.examples_per_update for name, arm in self.arms.items()}

    def _repr_html_(self) -> str:
        """A row for each arm with the mean of each measure and half its interval, for notebooks."""
        told = self.measures
        rows = [
            (name, str(len(arm.outcomes)), *(_mean_text(each, arm.measures.get(key)) for key, each in told.items()))
            for name, arm in self.arms.items()
        ]
        reached = "" if self.level is None else f"; ..._to: until {self.level.text}"
        title = f"means over seeds, against {self.baseline}{reached}"
        return table_html(title, ("arm", "seeds", *told), rows)


def _mean_text(of: OfTrials, measure: Measure | None) -> str:
    """A measure's mean, with half the width of its interval where there are several seeds."""
    if measure is None or measure.mean is None:
        return UNMEASURED
    mean, write = measure.mean, of.text
    text = write(mean.mean)
    return text if mean.low is None or mean.high is None else f"{text} ± {write((mean.high - mean.low) / 2)}"


REACHED = {
    f"{name}_to": each for name, each in MEASURES.items() if each.compared and name in CostToLevel.__struct_fields__
}
"""What had passed of some measures at the comparison's level."""
FIRSTS = ("time_s_to", "traffic_bytes_to")
"""Measures of which it is said who needs least."""


def compared(headline: TaskMeasure) -> dict[str, OfTrials]:
    """Measures of whole trials that are compared."""
    return {name: each for name, each in all_measures([headline]).items() if each.compared}


def compared_programs(told: Iterable[str]) -> dict[str, OfTrials]:
    """Measures of trials of programs that are compared, which told these."""
    return {name: each for name, each in program_measures(told).items() if each.compared}


def compare_arms(
    gathered: Gathered,
    *,
    baseline: str | None = None,
    to: float | None = None,
    measure: str | None = None,
    window: int | None = None,
    force: bool = False,
) -> Comparison:
    """Compare arms that have been gathered from runs.

    `baseline` is the name of an arm (default: the first), `to` the value of `measure` (default: the headline) that
    updates, time and bytes are counted to (default: the level of all scenarios, else the best round one that every arm
    reached in every seed), `window` how many evaluations a moving average is taken over (default: that of all
    scenarios, else WINDOW), `force` allows arms with different data sets or models. Raises ScenarioError for what
    cannot be compared.
    """
    if window is not None and window < 1:
        raise ScenarioError(f"--window: {window} is below 1; give a number of evaluations, e.g. 5.")
    arms = gathered.arms
    base = _baseline(arms, baseline)
    if of_programs := [arm for arm in arms if arm.runs_programs]:
        if to is not None or len(of_programs) < len(arms):
            raise ScenarioError(_unfit(of_programs, arms))
        return _compare_programs(gathered, base)
    headline = next(iter(base.members.values())).trial.series.evaluations.headline
    if not force:
        _check_tasks(arms, base)
    trials = [member.trial for arm in arms for member in arm.members.values()]
    plans = [trial.plan for trial in trials]
    part = part_of(trial.series.evaluations.selects_by for trial in trials if len(trial.series.evaluations))
    named = named_level(plans)
    if to is not None:
        named = Level(_measure(plans, headline, measure, to), to, named.window if named else WINDOW, is_named=True)
    asked = named and msgspec.structs.replace(named, window=window or named.window, part=part)
    told = level_told(
        asked,
        [trial.series.evaluations for trial in trials],
        expected=expected_values(plans),
        window=window or WINDOW,
    )
    level = told if to is None else asked
    window = level.window if level else window or WINDOW
    outcomes = {arm.name: _outcomes(arm, compared(headline), level, window) for arm in arms}
    results = {arm.name: _result(arm, base, outcomes, compared(headline) | REACHED) for arm in arms}
    return Comparison(
        baseline=base.name,
        headline=headline,
        window=window,
        selects_by=part,
        level=level,
        confidence=CONFIDENCE,
        firsts={name: found for name in FIRSTS if (found := _first(results, name))},
        arms=results,
        clients=compare_clients(arms, base, headline),
        other_tasks=tuple(
            f"{arm.name} does not train the task of {base.name}: {', '.join(map(str, changes))}"
            for arm in arms
            if (changes := _task_changes(arm, base))
        ),
        left_out=gathered.left_out,
        notes=(
            *([f"no trial reached {asked.text}"] if asked and asked != level else []),
            *warnings_of(arms, base, window),
            *_falls(arms, level),
            *_no_better(results, headline),
        ),
    )


def _unfit(of_programs: Sequence[Arm], arms: Sequence[Arm]) -> str:
    """Why arms of programs are not compared as asked."""
    if others := [arm.name for arm in arms if arm not in of_programs]:
        return f"{of_programs[0].name} runs programs and {others[0]} trains: leave out the runs of one or the other"
    return "--to: which values of a program's measures are good is not known; leave it out"


def _compare_programs(gathered: Gathered, base: Arm) -> Comparison:
    """Compare arms whose nodes run programs."""
    members = [member for arm in gathered.arms for member in arm.members.values()]
    summaries = {member.name: each for member in members if isinstance(each := member.begun.summary, ProgramSummary)}
    told = tuple(dict.fromkeys(name for each in summaries.values() for name in each.measures))
    measures = compared_programs(told)
    outcomes = {
        arm.name: tuple(
            Outcome(
                run=member.run.folder.name,
                seed=seed,
                measures={name: summaries[member.name].value(name) for name in measures},
                was_evaluated=False,
            )
            for seed, member in arm.members.items()
        )
        for arm in gathered.arms
    }
    return Comparison(
        baseline=base.name,
        headline=TaskMeasure(next(iter(told), "time")),
        told=told,
        confidence=CONFIDENCE,
        arms={arm.name: _result(arm, base, outcomes, measures) for arm in gathered.arms},
        left_out=gathered.left_out,
        notes=warnings_of(gathered.arms, base),
    )


def _result(
    arm: Arm, base: Arm, outcomes: Mapping[str, tuple[Outcome, ...]], measures: Mapping[str, OfTrials]
) -> ArmResult:
    summary = next(iter(arm.members.values())).begun.summary
    return ArmResult(
        scenario=str(arm.settings["scenario"]),
        trial=arm.trial,
        runtime=str(arm.settings["runtime"]),
        changes=arm.changes(base),
        outcomes=outcomes[arm.name],
        measures=_measures(measures, outcomes[arm.name], None if arm is base else outcomes[base.name]),
        examples_per_update=summary.examples_per_update,
        most_frequent_class=summary.most_frequent_class,
    )


def _measure(plans: Sequence[TrainingPlan], headline: TaskMeasure, name: str | None, to: float) -> TaskMeasure:
    """The measure of which a value is named; ScenarioError where a task has none of that name, or no such value."""
    common = set.intersection(*({each.name for each in plan.measures} for plan in plans))
    known = {each.name: each for plan in plans for each in plan.measures if each.name in common}
    measure = headline if name is None else known.get(name)
    if measure is None:
        raise ScenarioError(f"--to: the tasks have no measure '{name}' in common; {choose(str(name), sorted(known))}")
    if measure.is_share and not 0 < to <= 1:
        raise ScenarioError(
            f"--to: {to:g} is not above 0 and at most 1; give the {measure.words}, e.g. 0.97, or 97% in a shell."
        )
    return measure


def _first(arms: Mapping[str, ArmResult], name: str) -> Win | None:
    """The arm that needs least of a measure, of those that have it in all seeds; None where there are not two."""
    needed = {arm: each.measures[name].values if each.measures[name].mean else {} for arm, each in arms.items()}
    since = {arm: max((each.reached.since for each in arms[arm].outcomes if each.reached), default=0.0) for arm in arms}
    return win(needed, since) if len(arms) > 1 else None


def _falls(arms: Sequence[Arm], level: Level | None) -> Iterator[str]:
    """A sentence on each trial that did not keep what it reached."""
    for member in (member for arm in arms for member in arm.members.values()):
        if fall := fall_of(member.trial.series.evaluations, level):
            yield f"{member.name} did not stay: {fall.text}"


def _no_better(arms: Mapping[str, ArmResult], headline: TaskMeasure) -> Iterator[str]:
    """A sentence on each arm that was never better than whoever always says the most frequent class."""
    for name, arm in arms.items():
        bests = [best for outcome in arm.outcomes if (best := outcome.measures[f"best_{headline.name}"]) is not None]
        if bests and arm.most_frequent_class is not None and max(bests) <= arm.most_frequent_class:
            yield f"{name} is {no_better_text(arm.most_frequent_class)}"


def _baseline(arms: Sequence[Arm], name: str | None) -> Arm:
    """The arm called `name`; the trial's name is enough where one arm alone has it."""
    if name is None:
        return arms[0]
    found = [arm for arm in arms if arm.name == name] or [arm for arm in arms if arm.trial == name]
    if len(found) != 1:
        raise ScenarioError(f"--baseline: no arm '{name}'; {choose(name, [arm.name for arm in arms])}")
    return found[0]


def _check_tasks(arms: Sequence[Arm], base: Arm) -> None:
    """ScenarioError where data sets or models differ: then no number of one arm can be set against another's."""
    found = {arm.name: [each for each in _task_changes(arm, base) if each.path in INCOMPARABLE] for arm in arms}
    if problems := [f"{name}: {', '.join(map(str, changes))}" for name, changes in found.items() if changes]:
        raise ScenarioError(
            f"not the task of {base.name}: {'; '.join(problems)}. Values, bytes and times of different data sets "
            "or models say nothing about methods; leave these runs out, or give --force to compare them nevertheless"
        )


def _task_changes(arm: Arm, base: Arm) -> list[SettingChange]:
    """Settings of the task that differ, without the time that the method's compression takes."""
    task = f"{TASK}."
    return [each for each in arm.changes(base) if each.path.startswith(task) and each.path not in OF_THE_METHOD]


def _outcomes(arm: Arm, measures: Mapping[str, OfTrials], level: Level | None, window: int) -> tuple[Outcome, ...]:
    return tuple(_outcome(member, seed, measures, level, window) for seed, member in arm.members.items())


def _outcome(
    member: ArmTrial, seed: int, measures: Mapping[str, OfTrials], level: Level | None, window: int
) -> Outcome:
    series, summary = member.trial.series, member.trial.summary
    return Outcome(
        run=member.run.folder.name,
        seed=seed,
        measures={name: summary.value(name) for name in measures}
        | {f"best_{series.evaluations.headline.name}": best_average(series.evaluations, window)},
        reached=reach(series.evaluations, level.value, window, level.measure) if level else None,
        diverged=series.outcome == "diverged",
        was_evaluated=bool(len(series.evaluations)),
    )


def _measures(
    of: Mapping[str, OfTrials], outcomes: Sequence[Outcome], baseline: Sequence[Outcome] | None
) -> dict[str, Measure]:
    """Values of measures over the seeds of an arm; `baseline` is None for the baseline itself."""
    measures = {}
    for name, measure in of.items():
        values, by = _by_seed(outcomes, name), measure.unit.by
        measures[name] = Measure(
            values=values,
            mean=interval(list(values.values())) if len(values) == len(outcomes) else None,
            by=by,
            against=_against(outcomes, baseline, name, by) if baseline is not None else None,
        )
    return measures


def _against(outcomes: Sequence[Outcome], baseline: Sequence[Outcome], name: str, by: By) -> ConfidenceInterval | None:
    """The paired difference or ratio; None where a seed that both have lacks a value in one of them."""
    common = {outcome.seed for outcome in outcomes} & {outcome.seed for outcome in baseline}
    values, base = _by_seed(outcomes, name), _by_seed(baseline, name)
    if not common <= values.keys() & base.keys():
        return None
    return (paired if by == "difference" else paired_ratio)(values, base)


def _by_seed(outcomes: Sequence[Outcome], name: str) -> dict[int, float]:
    """A measure's values by seed, of the trials that have one; what is not finite, as after a divergence, is none."""
    values = {outcome.seed: outcome.value(name) for outcome in outcomes}
    return {seed: float(value) for seed, value in values.items() if value is not None and math.isfinite(value)}
