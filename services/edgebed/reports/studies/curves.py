"""Charts of arms: the moving average of the headline against updates, bytes or time, a line an arm.

The line is the mean over the seeds, in a band from the lowest of them to the highest, with a thin line each. Between
two evaluations a curve is straight; the mean goes as far as every seed does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from edgebed.journal.columns.evaluations import Evaluations
from edgebed.journal.series import Floats, Series
from edgebed.reports.run.charts import AXES, ExamplesPerUpdate, bytes_of, bytes_scale, value_axis
from edgebed.reports.run.trial_measures import headline_of
from edgebed.reports.writing.figures import Chart, line_style, percent_axis
from edgebed.studies.measures import moving_average

BAND = (
    "A line is the mean over seeds, thin lines are the seeds, and the band goes from the lowest of them to the highest."
)

Over = Literal["updates", "examples", "traffic", "ingress", "egress", "time"]
BYTES = ("traffic", "ingress", "egress")
Arms = Mapping[str, Sequence[Series]]
"""The series of each arm's trials, one a seed, by the arm's name in the legend."""
BAND_ALPHA = 0.18
SEED_ALPHA, SEED_WIDTH = 0.5, 0.5
ERROR_MIN = 5e-4
"""Least error that is drawn; smaller ones are drawn as this one."""
TICKS = (*(percent / 100 for percent in (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 97, 98, 99)), 0.995, 0.998, 0.999)
STEPS = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Steps of the ticks where fewer than TICKS_MIN of these are in sight, the widest that are enough."""
TICKS_MIN = 3
TICKS_APART = 0.06
"""Least distance of two ticks, as a share of the axis."""
MARGIN = 0.04
"""Margin beyond the data, as a share of the axis."""
POINTS_MAX = 400
"""Points of a line whose seeds were not evaluated at the same places."""


class MeanBand(NamedTuple):
    """A line and its band, (P,) each."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


def curves_chart(
    title: str, arms: Arms, over: Over, window: int = 1, examples_per_update: ExamplesPerUpdate | None = None
) -> Chart:
    """A chart of all arms; empty where none has been evaluated. `examples_per_update` is for examples alone."""
    return Chart(title, _plot(arms, over, window, examples_per_update or {}), len(arms))


def curve(
    trials: Sequence[Series], over: Over, window: int = 1, examples_per_update: float | None = None
) -> MeanBand | None:
    """The mean and the extremes over seeds, where all were measured; None where they have no place in common."""
    found = (_line(trial.evaluations, over, window, examples_per_update) for trial in trials)
    lines = [line for line in found if len(line[0])]
    if not lines:
        return None
    low, high = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    places = np.unique(np.concatenate([x for x, _ in lines]))
    places = places[(places >= low) & (places <= high)]
    if not len(places):
        return None
    if len(places) > POINTS_MAX:
        places = places[np.linspace(0, len(places) - 1, POINTS_MAX).round().astype(int)]
    scale = np.log if over in BYTES else np.asarray
    y = np.array([np.interp(scale(places), scale(x), value) for x, value in lines])
    return MeanBand(places, y.mean(axis=0), y.min(axis=0), y.max(axis=0))


def _line(
    evaluations: Evaluations, over: Over, window: int, examples_per_update: float | None
) -> tuple[Floats, Floats]:
    """Where a trial was evaluated, and the moving average there; a logarithmic axis does not show the start."""
    values = moving_average(evaluations.values, window)
    if over in BYTES:
        x = bytes_of(evaluations, over)
        return x[x > 0], values[x > 0]
    if over == "time":
        return evaluations.t, values
    updates = evaluations.version.astype(np.float64)
    if over == "updates":
        return updates, values
    return (updates * examples_per_update, values) if examples_per_update else (updates[:0], values[:0])


def _plot(arms: Arms, over: Over, window: int, examples: ExamplesPerUpdate) -> Callable[[Axes], None]:
    def plot(axes: Axes) -> None:
        found = {name: curve(trials, over, window, examples.get(name)) for name, trials in arms.items()}
        lines = [line for line in found.values() if line is not None]
        for index, (name, line) in enumerate(found.items()):
            if line is not None:
                style = line_style(index, len(line.x))
                axes.plot(line.x, line.mean, label=name, **style)
                if len(arms[name]) > 1:
                    for trial in arms[name]:
                        x, y = _line(trial.evaluations, over, window, examples.get(name))
                        axes.plot(x, y, color=style["color"], alpha=SEED_ALPHA, linewidth=SEED_WIDTH)
                    axes.fill_between(line.x, line.low, line.high, color=style["color"], alpha=BAND_ALPHA, linewidth=0)
        if over in BYTES:
            low = min((line.x[0] for line in lines), default=0.0)
            bytes_scale(axes, over, low, max((line.x[-1] for line in lines), default=0.0))
        else:
            axes.set_xlabel(AXES[over])
        every = [trial for trials in arms.values() for trial in trials]
        headline = headline_of(every)
        value_axis(axes, every)
        if headline.is_share and headline.better == "more":
            _error_axis(axes, lines)

    return plot


def _error_axis(axes: Axes, lines: Sequence[MeanBand]) -> None:
    """Set up an axis of shares on a logarithmic scale of the error: 98 and 99 % are as far apart as 80 and 90 %."""
    axes.set_yscale("function", functions=(_height, _share))
    percent_axis(axes.yaxis)
    axes.set_ylabel(f"{axes.get_ylabel()}\nlogarithmic in the error")
    axes.yaxis.set_minor_locator(NullLocator())
    if lines:
        low, high = min(line.low.min() for line in lines), max(line.high.max() for line in lines)
        ends = _height(np.array([low, high]))
        margin = MARGIN * max(ends[1] - ends[0], MARGIN)
        axes.set_ylim(*_share(ends + np.array([-margin, margin])))
        axes.yaxis.set_major_locator(FixedLocator(_ticks(low, high)))


def _height(share: Floats) -> Floats:
    return -np.log10(np.maximum(1.0 - np.asarray(share, dtype=np.float64), ERROR_MIN))


def _share(height: Floats) -> Floats:
    return np.asarray(1.0 - 10.0 ** -np.asarray(height, dtype=np.float64))


def _ticks(low: float, high: float) -> list[float]:
    """Round accuracies between two, from the top down, none too close to the previous one."""
    ticks: list[float] = []
    for round_ones in (TICKS, *(np.arange(0.0, 1.0, step).tolist() for step in STEPS)):
        ticks = _apart([tick for tick in reversed(round_ones) if low <= tick <= high], low, high)
        if len(ticks) >= TICKS_MIN:
            return ticks
    return ticks or [low, high]


def _apart(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """The ticks, without those that are too close to the previous one."""
    apart = TICKS_APART * (_height(np.array(high)) - _height(np.array(low)))
    kept: list[float] = []
    for tick in ticks:
        if not kept or _height(np.array(kept[-1])) - _height(np.array(tick)) >= apart:
            kept.append(tick)
    return kept
