"""Measures of a trial for comparisons: moving averages, and what it took to reach an accuracy.

Which accuracy that is, the scenarios say: `named_level`, else `level_told`. Shapes: E evaluations.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from edgebed.core.plan import Plan
from edgebed.core.quantities import level_text, percent_text
from edgebed.journal.series import Evaluations, Floats

LADDER = (*(percent / 100 for percent in (*range(10, 90, 5), *range(90, 100))), 0.995, 0.999)
"""Accuracies that are tried where the user names none, as fractions."""
WINDOW = 3
"""Evaluations whose mean counts where no scenario says over how many: of many single ones one is lucky."""
LEARNT_MIN = 0.5
"""Share of the best accuracy of all trials below which a trial does not decide to what accuracy costs are told."""
FALL_MIN = 0.05
"""Accuracy that a trial must have lost from its best evaluation to its last model to be said not to have stayed."""
BELOW_MIN = 0.01
"""Accuracy by which the last evaluations must be below a level that was reached: their scatter is mostly less."""
ACCURACIES = ("best_accuracy", "final_accuracy")
"""Measures of an expectation that are an accuracy."""
ROUNDING = 1e-9
"""Tolerance for the rounding error of a mean of accuracies; far below the share of one example."""


class CostToAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """What had passed when an accuracy was first measured."""

    updates: int
    time_s: float
    """Seconds since training started."""
    ingress_bytes: int
    """Bytes up: payload of the pushes that made that version."""
    since: float
    """Share of these updates that came after the previous evaluation; within them the moment is not known."""
    egress_bytes: int | None = None
    """Bytes down: payload of the models sent for it. None here and below: not known."""
    traffic_bytes: int | None = None
    """Bytes up and down together."""


class Level(NamedTuple):
    """An accuracy to which costs are told."""

    accuracy: float
    window: int = WINDOW
    """Evaluations whose mean must be that high."""
    is_named: bool = False
    """Whether scenarios or the user ask for it; else it is the highest round one that all reached."""

    @property
    def text(self) -> str:
        """The level in words, e.g. `97 % in the mean of 3 evaluations`."""
        return level_text(self.accuracy, self.window)


class Fall(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial reached and did not keep."""

    best: float
    """Accuracy of its best evaluation."""
    final: float
    """Accuracy of its last model."""

    @property
    def text(self) -> str:
        """The fall in words."""
        return f"it reached {percent_text(self.best)} and ended at {percent_text(self.final)}"


def named_level(plans: Iterable[Plan]) -> Level | None:
    """The accuracy at which all these trials stop, or at which runs of their sweep end; None where they differ."""
    levels = {
        (plan.sweep_accuracy, plan.sweep_window)
        if plan.stop_accuracy is None
        else (plan.stop_accuracy, plan.stop_window)
        for plan in plans
    }
    accuracy, window = levels.pop() if len(levels) == 1 else (None, 1)
    return None if accuracy is None else Level(accuracy, window, is_named=True)


def expected_accuracies(plans: Sequence[Plan]) -> set[float]:
    """Accuracies that are expected of every trial."""
    expected = [
        {bound for measure, sign, bound in plan.expectations if measure in ACCURACIES and sign in (">=", ">")}
        for plan in plans
    ]
    return set.intersection(*expected) if expected else set()


def level_told(
    named: Level | None, trials: Sequence[Evaluations], *, expected: Collection[float] = (), window: int = WINDOW
) -> Level | None:
    """The level to which what the trials took is told: `named`, where one of them reached it.

    Else the highest of `expected`, else of LADDER, that the mean of `window` evaluations reached in every trial that
    learnt something; None where there is none.
    """
    if named is not None and any(reach(each, named.accuracy, named.window) for each in trials):
        return named
    bests = [best_accuracy(each, window) or 0.0 for each in trials]
    top = max(bests, default=0.0)
    learnt = [each for each, best in zip(trials, bests, strict=True) if best >= LEARNT_MIN * top > 0.0]
    levels = (*sorted(expected, reverse=True), *reversed(LADDER))
    reached = (level for level in levels if learnt and all(reach(each, level, window) for each in learnt))
    return next((Level(level, window, is_named=level in expected) for level in reached), None)


def fall_of(evaluations: Evaluations, level: Level | None) -> Fall | None:
    """What the trial reached and did not keep; None where it stayed, or has no final evaluation.

    It did not stay where its last model is FALL_MIN below its best evaluation, or where it reached the level and its
    last evaluations, as many as the level counts, have a mean that is BELOW_MIN below it.
    """
    best, final = best_accuracy(evaluations), evaluations.final_value
    if best is None or final is None:
        return None
    has_left = (
        level is not None
        and moving_average(evaluations.values, level.window)[-1] < level.accuracy - BELOW_MIN
        and reach(evaluations, level.accuracy, level.window) is not None
    )
    return Fall(best=best, final=final) if has_left or best - final > FALL_MIN else None


def no_better_text(share: float) -> str:
    """Words on a trial whose best accuracy is at most the share of the most frequent class."""
    return f"no better than the most frequent class ({percent_text(share)})"


def moving_average(values: Floats, window: int) -> Floats:
    """(E,) means of each value and the `window` - 1 before it, of fewer at the beginning."""
    if window < 1:
        raise ValueError(f"a moving average over {window} values")
    first = [values[: end + 1].mean() for end in range(min(window - 1, len(values)))]
    whole = np.lib.stride_tricks.sliding_window_view(values, window).mean(axis=1) if len(values) >= window else []
    return np.concatenate([np.zeros(0), first, whole])


def best_accuracy(evaluations: Evaluations, window: int = 1) -> float | None:
    """The highest moving average of the accuracy, over whole windows (over all, if fewer); None without any."""
    averages = moving_average(evaluations.values, window)
    return float(averages[_first_whole(averages, window) :].max()) if len(averages) else None


def reach(evaluations: Evaluations, accuracy: float, window: int = 1) -> CostToAccuracy | None:
    """What it took until the moving average over a whole window was `accuracy`; None if it never was.

    So an accuracy is reached exactly if there is a whole window and `best_accuracy` of it is that high.
    """
    averages = moving_average(evaluations.values, window)
    if len(averages) < window:
        return None
    first_whole = _first_whole(averages, window)
    there = np.flatnonzero(averages[first_whole:] >= accuracy - ROUNDING)
    if not len(there):
        return None
    first = first_whole + int(there[0])
    is_known = np.isfinite(evaluations.egress_bytes[first])
    updates = int(evaluations.version[first])
    before = int(evaluations.version[first - 1]) if first else updates
    return CostToAccuracy(
        updates=updates,
        time_s=float(evaluations.t[first]),
        ingress_bytes=int(evaluations.ingress_bytes[first]),
        egress_bytes=int(evaluations.egress_bytes[first]) if is_known else None,
        traffic_bytes=int(evaluations.traffic_bytes[first]) if is_known else None,
        since=(updates - before) / updates if updates else 0.0,
    )


def _first_whole(averages: Floats, window: int) -> int:
    """Index of the first average over a whole window; of the last one, if there are fewer values."""
    return max(0, min(window, len(averages)) - 1)
