"""The answer of a run in a sentence or two, from the data: what each trial took to the accuracy that all reached.

That accuracy is the one which the scenario expects of all trials, or stops at; else the highest round one that all
reached. A trial whose best accuracy is far below that of the others does not decide it, and is told apart. Of shards,
which push nothing, the answer is how fast they are and what holds them up.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from edgebed.core.quantities import bytes_text, number_text, percent_text, seconds_text
from edgebed.reports.run.busy import bottleneck_text
from edgebed.running.results import Trial
from edgebed.studies.measures import LADDER, CostToAccuracy, best_accuracy, reach

ACCURACIES = ("best_accuracy", "final_accuracy")
"""Measures of an expectation that are an accuracy."""
LEARNT_MIN = 0.5
"""Share of the best accuracy of all trials below which a trial does not decide to what accuracy costs are told."""
NAMED_MAX = 8
"""Trials that a sentence names."""


def answer_lines(trials: Sequence[Trial]) -> tuple[str, ...]:
    """The sentences; none where no trial has been evaluated and no shard has made two steps."""
    return tuple(filter(None, (_speeds(trials), *_costs(trials), _best(trials))))


def level_of(trials: Sequence[Trial]) -> float | None:
    """The accuracy to which costs are told, as a fraction; None where there is none that all reached."""
    bests = {trial.name: best for trial in trials if (best := _best_of(trial)) is not None}
    top = max(bests.values(), default=0.0)
    learnt = [trial for trial in trials if bests.get(trial.name, 0.0) >= LEARNT_MIN * top > 0.0]
    levels = [*_asked(trials), *reversed(LADDER)]
    return next((level for level in levels if learnt and all(_reached(trial, level) for trial in learnt)), None)


def _asked(trials: Sequence[Trial]) -> Iterator[float]:
    """Accuracies that every trial is to reach, the highest first."""
    asked = [
        {bound for measure, sign, bound in trial.plan.expectations if measure in ACCURACIES and sign in (">=", ">")}
        | ({trial.plan.stop_accuracy} if trial.plan.stop_accuracy and trial.plan.stop_window == 1 else set())
        for trial in trials
    ]
    yield from sorted(set.intersection(*asked) if asked else (), reverse=True)


class Cost(NamedTuple):
    """What it took to reach an accuracy."""

    ingress_bytes: float | None
    traffic_bytes: float | None
    time_s: float


def costs_text(accuracy: float, costs: Mapping[str, Cost]) -> str:
    """What each took to the accuracy, the cheapest first, e.g. `To 95 %: adacomp 2 MB up, 21 MB in all, 4.00 s`."""
    ranked = sorted(costs, key=lambda name: (costs[name].traffic_bytes or 0.0, costs[name].time_s))
    has_bytes = all(cost.traffic_bytes for cost in costs.values())
    texts = []
    for name in ranked[:NAMED_MAX]:
        cost = costs[name]
        sizes = f"{bytes_text(cost.ingress_bytes)} up, {bytes_text(cost.traffic_bytes)} in all, " * has_bytes
        texts.append(f"{name} {sizes}{seconds_text(cost.time_s)}")
    more = f"; {len(ranked) - NAMED_MAX} more below" if len(ranked) > NAMED_MAX else ""
    return f"To {100 * accuracy:.6g} %: {'; '.join(texts)}{more}."


def _costs(trials: Sequence[Trial]) -> Iterator[str]:
    """What each trial took to the accuracy, and who did not reach it."""
    level = level_of(trials)
    if level is None:
        return
    costs = {
        trial.name: Cost(found.ingress_bytes, found.traffic_bytes, found.time_s)
        for trial in trials
        if (found := _reached(trial, level))
    }
    absent = [trial.name for trial in trials if trial.name not in costs and len(trial.series.evaluations)]
    never = f" {_names(absent)} did not reach it." if absent else ""
    yield costs_text(level, costs) + never


def _speeds(trials: Sequence[Trial]) -> str:
    """Steps a second of shards, the fastest trial first, and what held up each."""
    rates: Mapping[str, float] = {
        trial.name: trial.summary.steps_per_s for trial in trials if trial.summary.steps_per_s is not None
    }
    ranked = sorted(rates, key=lambda name: -rates[name])
    texts = []
    for name in ranked[:NAMED_MAX]:
        trial = next(trial for trial in trials if trial.name == name)
        why = bottleneck_text(trial)
        texts.append(f"{name} {number_text(rates[name])}" + (f" ({why})" if why else ""))
    return f"Steps a second, and what holds each up: {'; '.join(texts)}." if texts else ""


def _best(trials: Sequence[Trial]) -> str:
    """The best accuracy of each trial, the highest first."""
    bests = {trial.name: best for trial in trials if (best := _best_of(trial)) is not None}
    ranked = sorted(bests, key=lambda name: -bests[name])
    texts = [f"{name} {percent_text(bests[name])}" for name in ranked[:NAMED_MAX]]
    return f"Best accuracy: {', '.join(texts)}." if texts else ""


def _best_of(trial: Trial) -> float | None:
    return best_accuracy(trial.series.evaluations)


def _reached(trial: Trial, level: float) -> CostToAccuracy | None:
    return reach(trial.series.evaluations, level)


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
