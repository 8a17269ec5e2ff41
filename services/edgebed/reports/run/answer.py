"""The answer of a run in a few sentences, from the data: what each trial took to the level that was asked for.

That level is the one at which the scenario stops, by the mean of as many evaluations; else the one that it expects
of all trials, or the highest round one that all reached, by the mean of three. A trial whose best value is far
below that of the others does not decide it, and is told apart. Of shards, which push nothing, the answer is how fast
they are and what holds them up.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from edgebed.core.measures.task import TEST, VALIDATION
from edgebed.core.quantities import bytes_text, factor_text, number_text, seconds_text
from edgebed.journal.columns.evaluations import Evaluations
from edgebed.reports.run.step_breakdown import bottleneck_text
from edgebed.running.results import Trial
from edgebed.studies.measures import (
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
from edgebed.studies.statistics import CONFIDENCE
from edgebed.studies.sweep.winners import Win, win

NAMED_MAX = 8
"""Trials that a sentence names."""
ONE_SEED = "One seed: not decided."


def answer_lines(trials: Sequence[Trial]) -> tuple[str, ...]:
    """The sentences; none where no trial has been evaluated and no shard has made two steps."""
    measured = {trial.name: trial.series.evaluations for trial in trials if len(trial.series.evaluations)}
    plans = [trial.plan for trial in trials]
    named = named_level(plans)
    level = level_told(named, list(measured.values()), expected=expected_values(plans))
    lines = [_speeds(trials)]
    if named and named != level and measured:
        lines.append(f"No trial reached {named.text}.")
    if level:
        lines += _costs(level, measured)
        lines += _before_faults(level, trials)
    lines += [_finals(measured), *_falls(measured, level), *_no_better(trials)]
    return tuple(filter(None, lines))


class Cost(NamedTuple):
    """What it took to reach a level."""

    ingress_bytes: float | None
    traffic_bytes: float | None
    time_s: float


def costs_text(level: Level, costs: Mapping[str, Cost]) -> str:
    """What each took to the level, the cheapest first, e.g. `To 95 % accuracy: adacomp 2 MB up, 4 MB in all, 4 s`."""
    ranked = sorted(costs, key=lambda name: (costs[name].traffic_bytes or 0.0, costs[name].time_s))
    has_bytes = all(cost.traffic_bytes for cost in costs.values())
    texts = []
    for name in ranked[:NAMED_MAX]:
        cost = costs[name]
        sizes = f"{bytes_text(cost.ingress_bytes)} up, {bytes_text(cost.traffic_bytes)} in all, " * has_bytes
        texts.append(f"{name} {sizes}{seconds_text(cost.time_s)}")
    more = f"; {len(ranked) - NAMED_MAX} more below" if len(ranked) > NAMED_MAX else ""
    return f"To {level.text}: {'; '.join(texts)}{more}."


def firsts_text(wins: Mapping[str, Win | None], *, has_seeds: bool) -> str:
    """Who is first by each quantity, e.g. `First by time: top-k (dgc takes 1.41 ×). One seed: not decided`.

    `has_seeds`: whether there are several, which may decide it. Empty where nobody has a second.
    """
    texts = [f"by {quantity}: {_win_text(found, has_seeds)}" for quantity, found in wins.items() if found]
    if not any(found and found.second for found in wins.values()):
        return ""
    return f"First {'; '.join(texts)}." + ("" if has_seeds else f" {ONE_SEED}")


def _win_text(found: Win, has_seeds: bool) -> str:
    if found.second is None:
        return f"{found.method} alone"
    if found.factor == 1.0:
        return f"{found.method} and {found.second} alike"
    takes = f"takes {'≈ ' * found.is_coarse}{factor_text(found.factor)} ×" if found.factor else "takes longer"
    decided = f", decided at {100 * CONFIDENCE:.0f} %" if found.is_decided else ", not decided"
    return f"{found.method} ({found.second} {takes}{decided * has_seeds})"


def _falls(trials: Mapping[str, Evaluations], level: Level | None) -> Iterator[str]:
    """A sentence on each trial that did not keep what it reached."""
    for name, evaluations in trials.items():
        if fall := fall_of(evaluations, level):
            yield f"{name} did not stay: {fall.text}."


def _costs(level: Level, measured: Mapping[str, Evaluations]) -> Iterator[str]:
    """What each trial took to the level, who did not reach it, and who is first."""
    reached = {
        name: found
        for name, evaluations in measured.items()
        if (found := reach(evaluations, level.value, level.window, level.measure))
    }
    absent = [name for name in measured if name not in reached]
    never = f" {_names(absent)} did not reach it." if absent else ""
    costs = {name: Cost(found.ingress_bytes, found.traffic_bytes, found.time_s) for name, found in reached.items()}
    yield costs_text(level, costs) + never
    since = {name: found.since for name, found in reached.items()}
    needed = {
        "time": {name: {1: found.time_s} for name, found in reached.items()},
        "bytes": {name: {1: float(found.traffic_bytes)} for name, found in reached.items() if found.traffic_bytes},
    }
    wins = {quantity: win(each, since) for quantity, each in needed.items() if len(each) == len(reached)}
    yield firsts_text(wins, has_seeds=False)


def _before_faults(level: Level, trials: Sequence[Trial]) -> Iterator[str]:
    """A sentence on trials with faults that had met none of them when they reached the level."""
    spared, firsts = list[str](), list[float]()
    for trial in trials:
        found = reach(trial.series.evaluations, level.value, level.window, level.measure)
        times_s = [each.t for each in trial.series.faults if each.was_done]
        if found and trial.plan.faults and found.time_s < min(times_s, default=math.inf):
            spared.append(trial.name)
            firsts += times_s
    if spared:
        since = f" (the first came at {seconds_text(min(firsts))})" if firsts else ""
        yield f"By then {_names(spared)} had met no fault{since}."


def _speeds(trials: Sequence[Trial]) -> str:
    """Steps a second of shards, the fastest trial first, and what held up each."""
    rates: Mapping[str, float] = {
        trial.name: rate for trial in trials if (rate := trial.summary.value("steps_per_s")) is not None
    }
    ranked = sorted(rates, key=lambda name: -rates[name])
    texts = []
    for name in ranked[:NAMED_MAX]:
        trial = next(trial for trial in trials if trial.name == name)
        why = bottleneck_text(trial)
        texts.append(f"{name} {number_text(rates[name])}" + (f" ({why})" if why else ""))
    return f"Steps a second, and what holds each up: {'; '.join(texts)}." if texts else ""


def _finals(measured: Mapping[str, Evaluations]) -> str:
    """The final headline of each trial with its best, the best first; a dash where it came to no end."""
    sentences = []
    for headline in dict.fromkeys(each.headline for each in measured.values()):
        alike = {name: each for name, each in measured.items() if each.headline == headline}
        known = {name: (each.final_value, best_average(each)) for name, each in alike.items()}
        ranks = {name: [headline.rank(value) for value in values] for name, values in known.items()}
        ranked = sorted(known, key=ranks.__getitem__)
        told = (f"{name} {headline.text(known[name][0])} ({headline.text(known[name][1])})" for name in ranked)
        chose = {TEST: "best", VALIDATION: "where validation was best"}.get(
            part_of(each.selects_by for each in alike.values()), "best, by validation where there is one"
        )
        sentences.append(f"Final {headline.words} ({chose}): {', '.join(itertools.islice(told, NAMED_MAX))}.")
    return " ".join(sentences)


def _no_better(trials: Sequence[Trial]) -> Iterator[str]:
    """A sentence on trials that were never better than whoever always says the test set's most frequent class."""
    for trial in trials:
        share, best = trial.summary.most_frequent_class, trial.summary.best.get(trial.summary.headline.name)
        if share is not None and best is not None and best <= share:
            yield f"{trial.name} is {no_better_text(share)}."


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
