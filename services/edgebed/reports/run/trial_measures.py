"""What a run's trials came to, measure by measure: a column a trial on the page, a row a trial in a terminal.

Which measures these are, in which words and unit, `core/measures/trial.py` declares.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from edgebed.core.measures.measure import COUNT, Measure
from edgebed.core.measures.task import TEST, TaskMeasure
from edgebed.core.measures.trial import all_measures
from edgebed.core.quantities import UNMEASURED, seconds_text
from edgebed.journal.outcome import RunSummary, outcome_text
from edgebed.journal.series import Series
from edgebed.journal.summary import TrialSummary
from edgebed.learning.objectives.registry import declared
from edgebed.reports.run.traffic_text import measured_rows
from edgebed.reports.writing.page import Grid
from edgebed.studies.measures import part_of

PHASES = {
    "started_s": "all nodes had started", "joined_s": "all nodes had joined", "training_s": "training began",
    "contributed_s": "each worker had an update applied",
}  # fmt: skip
"""When each phase of a trial's start is over, by its name."""
LOG_FROM = 30.0
"""Ratio of the largest to the smallest value from which on errors and losses have a logarithmic axis."""
FLOOR = -1.0
"""Lowest value that is drawn of a measure that is good at 1: far below it, as R2 is of a model that learns nothing yet,
values say no more, and would take the room of all others."""
DISPENSABLE = (
    "staleness", "a push", "updates/s", "messages a step", "time", "updates", "up", "down", "total", "exchanged",
    "validated", "best",
)  # fmt: skip


class ValueRange(NamedTuple):
    """What a vertical axis shows of a measure."""

    low: float
    high: float
    is_log: bool


def value_range(headline: TaskMeasure, values: Iterable[float]) -> ValueRange | None:
    """What an axis shows of a measure's values; None where none is finite."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return None
    low, high = min(known), max(known)
    is_wide = headline.better == "less" and not headline.is_share and high >= LOG_FROM * low
    if headline.better == "more" and FLOOR < high <= 1.0:
        low = max(low, FLOOR)
    return ValueRange(low, high, low > 0.0 and (headline.scale == "log" or is_wide))


def most_frequent_of(trials: Iterable[TrialSummary]) -> set[float]:
    """Shares of the most frequent classes of the trials' test sets, each once."""
    return {trial.most_frequent_class for trial in trials if trial.most_frequent_class is not None}


def most_frequent_label(part: str) -> str:
    """What charts of this part's values call what who always says the test part's most frequent class comes to."""
    return "most frequent class" + ("" if part == TEST else f" of the {TEST} part")


def headline_of(each: Iterable[Series]) -> TaskMeasure:
    """The headline of the first of some trials that measured one; without any that of a classification."""
    return next((series.evaluations.headline for series in each if len(series.evaluations)), declared(())[0])


def told_alike(trials: Mapping[str, Series]) -> dict[str, Series]:
    """Trials for one axis: each told by the headline of the first, without those that have measured others alone."""
    headline = headline_of(trials.values())
    return {
        name: dataclasses.replace(series, evaluations=series.evaluations.told_by(headline))
        for name, series in trials.items()
        if headline in series.evaluations.measures or not len(series.evaluations)
    }


def selects_by(each: Iterable[Series]) -> str:
    """The part of the data whose values are drawn: the one that choices look at."""
    return part_of(series.evaluations.selects_by for series in each if len(series.evaluations))


def measures_grid(summary: RunSummary) -> Grid:
    """All measures that any trial has, a row each, with a column for each trial that began."""
    trials = summary.trials
    shown = [each for each in _measures(trials).values() if each.words]
    first = [each for each in shown if each.column or each.family != "all"]
    rows = [
        ("outcome", *map(outcome_text, trials)),
        ("method", *(trial.method for trial in trials)),
        *((each.words, *(_text(each, trial) for trial in trials)) for each in first),
        *((each.words, *(_text(each, trial) for trial in trials)) for each in shown if each not in first),
        *(
            (f"from the launch until {what}", *(_phase_text(name, trial) for trial in trials))
            for name, what in PHASES.items()
        ),
    ]
    return Grid(("", *(trial.trial for trial in trials)), measured_rows(rows) if trials else [])


def results_grid(summary: RunSummary) -> Grid:
    """Some measures, a column each, with a row for each trial."""
    own = "server" if any(trial.server for trial in summary.trials) or not summary.trials else "shards"
    unwanted = set() if any(trial.has_idle_end for trial in summary.trials) else {"last update"}
    unwanted |= set() if any(trial.validated for trial in summary.trials) else {"validated"}
    unwanted |= {"updates/s"} if own == "shards" else set()  # it is that of the steps
    shown = [each for each in _measures(summary.trials).values() if each.column and each.family in ("all", own)]
    measures = [each for each in shown if each.column not in unwanted]
    rows = [(trial.trial, *(_text(each, trial) for each in measures)) for trial in summary.trials]
    absent = [(name, *(UNMEASURED for _ in measures)) for name in summary.not_begun]
    return Grid(("trial", *(each.column for each in measures)), [*rows, *absent], dispensable=DISPENSABLE)


def _measures(trials: Iterable[TrialSummary]) -> dict[str, Measure]:
    """All measures that any of the trials has; without trials those of a classification."""
    return all_measures({each: None for trial in trials for each in trial.measures} or declared(()))


def _text(measure: Measure, trial: TrialSummary) -> str:
    """A trial's value; a dash where it was not measured, or where there is nothing to tell of what is to be avoided."""
    value = trial.value(measure.name)
    is_quiet = measure.unit is COUNT and measure.better == "less" and not value
    is_usual = measure.name == "last_update_s" and not trial.has_idle_end
    return UNMEASURED if is_quiet or is_usual else measure.text(value)


def _phase_text(name: str, trial: TrialSummary) -> str:
    return seconds_text(getattr(trial.start_up, name)) if trial.start_up else UNMEASURED
