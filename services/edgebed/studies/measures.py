"""Measures of a trial for comparisons: moving averages, and what it took to reach a level.

Which level that is, the scenarios say: `named_level`, else `level_told`. Shapes: E evaluations.
"""

import math
from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np

from edgebed.core.measures.task import TEST, TaskMeasure
from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import mean_of_text, percent_text
from edgebed.journal.columns.evaluations import Evaluations
from edgebed.journal.series import Floats

LADDER = (*(percent / 100 for percent in (*range(10, 90, 5), *range(90, 100))), 0.995, 0.999)
"""Values that are tried where the user names none to be reached, of measures that are good at 1."""
ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
"""Leading digits of those of all other measures, whose values may be of any size: errors, perplexities, rewards."""
WINDOW = 3
"""Evaluations whose mean counts where no scenario says over how many: of many single ones one is lucky."""
LEARNT_MIN = 0.5
"""Share of what the best of all trials learnt below which a trial does not decide to what level costs are told."""
BELOW_MIN = 0.01
"""Share by which the last evaluations must be below a level that was reached: their scatter is mostly less."""
ROUNDING = 1e-9
"""Tolerance for the rounding error of a mean; far below the share of one example."""


class CostToLevel(msgspec.Struct, frozen=True, kw_only=True):
    """What had passed when a level was first reached."""

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


class Level(msgspec.Struct, frozen=True):
    """A value of a measure to which costs are told."""

    measure: TaskMeasure
    value: float
    window: int = WINDOW
    """Evaluations whose mean must be as good."""
    part: str = TEST
    """Part of the data that it is reached on."""
    is_named: bool = False
    """Whether scenarios or the user ask for it; else it is the highest round one that all reached."""

    @property
    def text(self) -> str:
        """The level in words, e.g. `97 % accuracy in the mean of 3 evaluations`."""
        on = "" if self.part == TEST else f" on the {self.part} part"
        return f"{self.measure.level_told(self.value)}{on}{mean_of_text(self.window)}"


class Fall(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial reached and did not keep."""

    best: float
    """Value of its best evaluation, on the test part."""
    final: float
    """Value of its last model, on the test part."""
    measure: TaskMeasure

    @property
    def text(self) -> str:
        """The fall in words."""
        best = self.measure.text(self.best) if self.measure.is_share else self.measure.told(self.best)
        return f"it reached {best} and ended at {self.measure.text(self.final)}"


def named_level(plans: Iterable[TrainingPlan]) -> Level | None:
    """What all these trials are to reach, or runs of their sweep; None where that differs."""
    plans = list(plans)
    given = {(plan.stop_level or plan.sweep_level, plan.measures) for plan in plans}
    level, measures = given.pop() if len(given) == 1 else (None, ())
    if level is None:
        return None
    measure = next(each for each in measures if each.name == level.measure)
    part = part_of(plan.evaluator.selects_by for plan in plans)
    return Level(measure, level.value, level.window, part, is_named=True)


def part_of(parts: Iterable[str]) -> str:
    """The part of the data that choices look at, in words where trials differ in it."""
    return " or ".join(sorted(set(parts), reverse=True)) or TEST


def expected_values(plans: Sequence[TrainingPlan]) -> set[float]:
    """Values of the headline that are expected of every trial."""
    expected = [
        {
            bound
            for measure, sign, bound in plan.expectations
            if measure in (f"best_{plan.headline.name}", f"final_{plan.headline.name}")
            and sign in ((">=", ">") if plan.headline.better == "more" else ("<=", "<"))
        }
        for plan in plans
    ]
    return set.intersection(*expected) if expected else set()


def level_told(
    named: Level | None, trials: Sequence[Evaluations], *, expected: Collection[float] = (), window: int = WINDOW
) -> Level | None:
    """The level to which what the trials took is told: `named`, where one of them reached it.

    Else, of the measure and window that `named` has, or of the first trial's headline, the best of `expected`, which
    are of the headline, else the best round value, that every trial reached that learnt something, after its beginning;
    None where there is none, or not all measure it. Trials that were never evaluated have no part in it.
    """
    trials = [each for each in trials if len(each)]
    if named is not None and any(reach(each, named.value, named.window, named.measure) for each in trials):
        return named
    if not trials:
        return None
    measure, window = (trials[0].headline, window) if named is None else (named.measure, named.window)
    if not all(measure in each.measures for each in trials):
        return None
    gains = [_learnt(each, window, measure) for each in trials]
    learnt = [each for each, gain in zip(trials, gains, strict=True) if gain >= LEARNT_MIN * max(gains) > 0.0]
    bests = [best for each in learnt if (best := best_average(each, window, measure)) is not None]
    expected = expected if measure == trials[0].headline else ()
    levels = (*sorted(expected, key=measure.rank), *sorted(round_values(measure, bests), key=measure.rank))
    part = part_of(each.selects_by for each in trials)
    for level in levels:
        costs = [reach(each, level, window, measure) for each in learnt]
        if costs and all(cost and cost.updates for cost in costs):
            return Level(measure, level, window, part, is_named=level in expected)
    return None


def round_values(measure: TaskMeasure, bests: Sequence[float]) -> Sequence[float]:
    """Round values of the size of some best ones."""
    if measure.better == "more" and max(bests, default=0.0) <= 1.0:
        return LADDER
    positive = [best for best in bests if best > 0.0]
    if not positive:
        return ()
    first, last = (math.floor(math.log10(pick(positive))) for pick in (min, max))
    return [float(f"{digit}e{power}") for power in range(first - 1, last + 2) for digit in ROUND]


def _learnt(evaluations: Evaluations, window: int, measure: TaskMeasure) -> float:
    """By how much the best of a trial is better than its first evaluation."""
    best = best_average(evaluations, window, measure)
    gain = measure.progress(float(evaluations.measured[measure.name][0]), math.nan if best is None else best)
    return max(0.0, gain)  # NaN is none, too


def fall_of(evaluations: Evaluations, level: Level | None) -> Fall | None:
    """What the trial reached and did not keep; None where it stayed, or has no final evaluation.

    It did not stay where its last model is FALL_MIN below its best evaluation, or where it reached the level and its
    last evaluations, as many as the level counts, have a mean that is BELOW_MIN below it.
    """
    measure = evaluations.headline
    best, final = best_average(evaluations), evaluations.final_value
    if best is None or final is None or not np.isfinite(final):
        return None
    whole = 1.0 if measure.is_share else abs(best)
    has_left = (
        level is not None
        and level.measure == measure
        and measure.gain(level.value, moving_average(evaluations.values, level.window)[-1]) > BELOW_MIN * whole
        and reach(evaluations, level.value, level.window) is not None
    )
    is_worse = measure.has_fallen(best, final)
    return Fall(best=best, final=final, measure=measure) if has_left or is_worse else None


def no_better_text(share: float) -> str:
    """Words on a trial whose best value is at most the share of the most frequent class."""
    return f"no better than the most frequent class ({percent_text(share)})"


def moving_average(values: Floats, window: int) -> Floats:
    """(E,) means of each value and the `window` - 1 before it, of fewer at the beginning."""
    if window < 1:
        raise ValueError(f"a moving average over {window} values")
    first = [values[: end + 1].mean() for end in range(min(window - 1, len(values)))]
    whole = np.lib.stride_tricks.sliding_window_view(values, window).mean(axis=1) if len(values) >= window else []
    return np.concatenate([np.zeros(0), first, whole])


def best_average(evaluations: Evaluations, window: int = 1, measure: TaskMeasure | None = None) -> float | None:
    """The best moving average of a measure, else the headline, over whole windows (all, if fewer); None without any.

    It is that of the test part, over the evaluations whose mean was best on the part that versions are chosen by.
    """
    measure = measure or evaluations.headline
    if not len(evaluations):
        return None
    selecting = moving_average(evaluations.selecting[measure.name], window)
    first = _first_whole(selecting, window)
    place = first + measure.best_place(selecting[first:])
    return float(moving_average(evaluations.measured[measure.name], window)[place])


def reach(
    evaluations: Evaluations, value: float, window: int = 1, measure: TaskMeasure | None = None
) -> CostToLevel | None:
    """What it took until the moving average of the measure over a whole window was as good as `value`; None: never.

    It is measured on the part that versions are chosen by. Without a validation part, a value of the headline is
    reached exactly if there is a whole window and `best_average` of it is as good.
    """
    measure = measure or evaluations.headline
    if measure.name not in evaluations.measured:  # another task's
        return None
    averages = moving_average(evaluations.selecting[measure.name], window)
    if len(averages) < window:
        return None
    first_whole = _first_whole(averages, window)
    there = np.flatnonzero(measure.gain(averages[first_whole:], value) >= -ROUNDING * max(1.0, abs(value)))
    if not len(there):
        return None
    first = first_whole + int(there[0])
    is_known = np.isfinite(evaluations.egress_bytes[first])
    updates = int(evaluations.version[first])
    before = int(evaluations.version[first - 1]) if first else updates
    return CostToLevel(
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
