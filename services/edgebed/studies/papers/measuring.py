"""Measures that papers have in common; each takes the trials of one seed, by cell, and gives a number or None."""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from edgebed.studies.measures import CostToLevel, best_average, reach
from edgebed.studies.papers.measure import Measure, Spaced, resolution
from edgebed.studies.trial_result import FinishedTrial


def reached_by(
    cell: str,
    reached: Callable[[FinishedTrial], CostToLevel | None],
    value: Callable[[FinishedTrial, CostToLevel], float],
) -> Measure:
    """A measure of what it took to reach an accuracy; None if it was never reached."""

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        return None if (found := reached(trials[cell])) is None else value(trials[cell], found)

    def width(trials: Mapping[str, FinishedTrial]) -> float:
        return found.since * value(trials[cell], found) if (found := reached(trials[cell])) else 0.0

    return Spaced(measure, width)


def accuracy(cell: str, window: int = 1) -> Measure:
    """A measure: the highest moving average of the accuracy over `window` evaluations, in per cent; None: none."""

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        best = best_average(trials[cell].evaluations, window)
        return None if best is None else 100 * best

    return measure


def accuracy_at(cell: str, updates: int) -> Measure:
    """A measure: the last accuracy within `updates`, in per cent; None where there is none, or it ended before."""

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        evaluations = trials[cell].evaluations
        place = int(np.searchsorted(evaluations.version, updates, side="right")) - 1
        if place < 0 or evaluations.version[-1] < updates:
            return None
        return 100 * float(evaluations.values[place])

    return measure


def mean_accuracy(cell: str) -> Measure:
    """A measure: the mean accuracy of all evaluations but the first, of the initial weights, in per cent."""
    return times(_mean_later(cell, "accuracy"), 100)


def mean_loss(cell: str) -> Measure:
    """A measure: the mean loss of all evaluations but the first, of the initial weights; None without any."""
    return _mean_later(cell, "loss")


def _mean_later(cell: str, name: Literal["accuracy", "loss"]) -> Measure:
    """A measure: the mean of all evaluations but the first."""

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        later = trials[cell].evaluations.measured[name][1:]
        return float(later.mean()) if len(later) else None

    return measure


def updates_to(cell: str, target: float, window: int = 1) -> Measure:
    """A measure: updates until the moving average of the accuracy is first `target`; None if it never is."""
    return reached_by(cell, lambda trial: reach(trial.evaluations, target, window), lambda _, reached: reached.updates)


def of_summary(cell: str, name: str) -> Measure:
    """A measure: one of the trial (core/measures/trial.py), by its name; None where it was not measured."""

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        return trials[cell].summary.value(name)

    return measure


def final_accuracy(cell: str) -> Measure:
    """A measure: the accuracy of the last model, in per cent; None where there is no final evaluation."""
    return times(of_summary(cell, "final_accuracy"), 100)


def updates_per_s(cell: str) -> Measure:
    """A measure: updates a second, between the first and the last; None with fewer than two."""
    return of_summary(cell, "updates_per_s")


def difference(measure: Measure, baseline: Measure) -> Measure:
    """A measure: one measure minus another; None where one of them has no number."""

    def subtract(trials: Mapping[str, FinishedTrial]) -> float | None:
        value, base = measure(trials), baseline(trials)
        return None if value is None or base is None else value - base

    return Spaced(subtract, lambda trials: resolution(measure, trials) + resolution(baseline, trials))


def ratio(measure: Measure, baseline: Measure) -> Measure:
    """A measure: one measure divided by another; None where one of them has no number."""

    def divide(trials: Mapping[str, FinishedTrial]) -> float | None:
        value, base = measure(trials), baseline(trials)
        return None if value is None or not base else value / base

    def width(trials: Mapping[str, FinishedTrial]) -> float:
        value, base = measure(trials), baseline(trials)
        if not value or not base:
            return 0.0
        return abs(value / base) * (resolution(measure, trials) / abs(value) + resolution(baseline, trials) / abs(base))

    return Spaced(divide, width)


def times(measure: Measure, factor: float) -> Measure:
    """A measure multiplied by a factor; None where it has no number."""

    def multiply(trials: Mapping[str, FinishedTrial]) -> float | None:
        value = measure(trials)
        return None if value is None else factor * value

    return Spaced(multiply, lambda trials: abs(factor) * resolution(measure, trials))
