"""Charts of trials: what was measured against bytes, updates and time, staleness, updates a second.

Faults and actions by hand are marked: a line with words where there are few, else a tick above the axes; those close
together are one mark. A level line is what who always says the most frequent class comes to.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from edgebed.core.quantities import number_text, updates_text
from edgebed.journal.columns.evaluations import Evaluations
from edgebed.journal.columns.updates import Updates
from edgebed.journal.series import Floats, Ints, Series
from edgebed.reports.run.trial_measures import (
    ValueRange,
    headline_of,
    most_frequent_label,
    selects_by,
    told_alike,
    value_range,
)
from edgebed.reports.writing.figures import DASHES, INK, PALETTE, Chart, bytes_axis, line_style, log_axis, percent_axis

RATE_BINS = 40
ROOM_ABOVE = 0.05
"""Share of an axis that stays free above the highest value, where its lower end is set."""
ROOM = 1.08
"""Factor by which the axis of rates goes beyond the highest, so that no line lies on the frame."""
MARKS_APART = 0.02
"""Share of the axis below which marks are merged."""
LINES_MAX = 12
"""Number of marks beyond which they become ticks."""
NAMED_MARKS_MAX = 8
NAMES_APART = 0.06
"""Share of the axis below which words are merged into one text."""
TICK_HEIGHT = 0.025
"""Height of a tick, as a share of the axes."""
AXES = {
    "updates": "updates applied (number)",
    "examples": "training examples gone through, by all workers (number)",
    "traffic": "up and down: pushes and the models sent (bytes; logarithmic)",
    "ingress": "up: payload of the pushes (bytes; logarithmic)",
    "egress": "down: payload of the models sent (bytes; logarithmic)",
    "time": "time since training started (s)",
}
"""Titles of horizontal axes."""

Trials = Mapping[str, Series]
"""Series by the trial's name, in the order of the legend."""
ExamplesPerUpdate = Mapping[str, float | None]
"""Training examples that an update of each trial stands for; None: not known."""
Place = Callable[[str, Series, Floats], Floats | Ints]
"""A function from times, (F,), of a trial of this name to places on the horizontal axis, (F,)."""
Marks = list[tuple[float, str]]
"""Places on the horizontal axis where something was done, with what."""


def charts_of(
    trials: Trials, examples_per_update: ExamplesPerUpdate | None = None, most_frequent: Collection[float] = ()
) -> dict[str, Chart]:
    """All charts of trials, by name in the order of a report; `most_frequent`: see `with_most_frequent`.

    Trials whose headline is another than the first one's are drawn by that one, where they measure it.
    Where updates of trials stand for different numbers of examples, as a round of models and a gradient do, they are
    drawn against the examples instead of the updates.
    """
    examples = {name: (examples_per_update or {}).get(name) for name in trials}
    part = selects_by(trials.values())
    drawn = {**CHARTS, "over-updates": _over_examples(examples)} if updates_text(examples) else CHARTS
    told = told_alike(trials)
    charts = {name: draw(told if name.startswith("over-") else trials) for name, draw in drawn.items()}
    return {
        name: with_most_frequent(chart, most_frequent, part) if name.startswith("over-") else chart
        for name, chart in charts.items()
    }


def with_most_frequent(chart: Chart, shares: Collection[float], part: str) -> Chart:
    """A chart of a part's values with a line at the share of each test part's most frequent class.

    One below all that is drawn is left out, since it would take the room of the curves.
    """

    def plot(axes: Axes) -> None:
        chart.plot(axes)
        for share in sorted(set(shares)) if axes.has_data() else ():
            ends, (low, high) = axes.get_xlim(), axes.get_ylim()
            if share >= low:
                axes.plot(
                    ends, (share, share), label=most_frequent_label(part), color=INK, linestyle="dashed", linewidth=1.0
                )
                axes.set_xlim(ends)
                axes.set_ylim(low, max(high, share))

    return dataclasses.replace(chart, plot=plot, num_lines=chart.num_lines + len(set(shares)))


def over_traffic(trials: Trials) -> Chart:
    """The headline against the payload of all pushes and all models sent so far, on a logarithmic axis."""
    return _over_bytes("bytes up and down", trials, "traffic")


def over_ingress(trials: Trials) -> Chart:
    """The headline against the payload of all pushes so far, on a logarithmic axis."""
    return _over_bytes("bytes up", trials, "ingress")


def over_egress(trials: Trials) -> Chart:
    """The headline against the payload of all models sent so far, on a logarithmic axis."""
    return _over_bytes("bytes down", trials, "egress")


def over_updates(trials: Trials) -> Chart:
    """The headline against the number of updates."""
    return _over_work("updates", trials, "updates", dict.fromkeys(trials, 1))


def over_time(trials: Trials) -> Chart:
    """The headline against the time since training started."""
    return _chart(title_of(trials, "time"), trials, _over_time, lambda _, __, t: t)


def staleness(trials: Trials) -> Chart:
    """Share of the updates by staleness."""
    return _chart("Staleness", trials, _staleness)


def update_rate(trials: Trials) -> Chart:
    """Updates a second over time."""
    return _chart("Updates a second", trials, _update_rate, lambda _, __, t: t)


CHARTS: dict[str, Callable[[Trials], Chart]] = {
    "over-traffic": over_traffic,
    "over-updates": over_updates,
    "over-time": over_time,
    "over-ingress": over_ingress,
    "over-egress": over_egress,
    "staleness": staleness,
    "update-rate": update_rate,
}


def bytes_of(counted: Updates | Evaluations, over: str) -> Floats:
    """The bytes that the axis of this name shows, as a column; NaN: not known."""
    columns = {"traffic": counted.traffic_bytes, "ingress": counted.ingress_bytes, "egress": counted.egress_bytes}
    return columns[over].astype(np.float64)


def _over_examples(examples: ExamplesPerUpdate) -> Callable[[Trials], Chart]:
    factors = {name: math.nan if value is None else value for name, value in examples.items()}
    return lambda trials: _over_work("examples", trials, "examples", factors)


def _over_work(what: str, trials: Trials, over: str, factors: Mapping[str, float]) -> Chart:
    """The headline against the number of updates times a factor."""

    def plot(axes: Axes, trials: Trials) -> None:
        for index, (name, series) in enumerate(trials.items()):
            evaluations = series.evaluations
            if len(evaluations):
                x = factors[name] * evaluations.version
                axes.plot(x, evaluations.values, label=name, **line_style(index, len(evaluations)))
        axes.set_xlabel(AXES[over])
        value_axis(axes, trials.values())

    return _chart(
        title_of(trials, what),
        trials,
        plot,
        lambda name, series, t: factors[name] * _at(series, t, series.updates.version),
    )


def _over_bytes(what: str, trials: Trials, over: str) -> Chart:
    def plot(axes: Axes, trials: Trials) -> None:
        low, high = np.inf, 0.0
        for index, (name, series) in enumerate(trials.items()):
            x, y = bytes_of(series.evaluations, over), series.evaluations.values
            seen = x > 0  # The evaluation of the initial model has no place on a logarithmic axis.
            if seen.any():
                axes.plot(x[seen], y[seen], label=name, **line_style(index, int(seen.sum())))
                low, high = min(low, float(x[seen].min())), max(high, float(x[seen].max()))
        bytes_scale(axes, over, low, high)
        value_axis(axes, trials.values())

    return _chart(
        title_of(trials, what), trials, plot, lambda _, series, t: _at(series, t, bytes_of(series.updates, over))
    )


def _chart(title: str, trials: Trials, plot: Callable[[Axes, Trials], None], place: Place | None = None) -> Chart:
    def plot_marked(axes: Axes) -> None:
        plot(axes, trials)
        if place and axes.has_data():
            _mark_faults(axes, trials, place)

    return Chart(title, plot_marked, len(trials))


def title_of(trials: Trials, what: str) -> str:
    """Title of a chart of the headline against something."""
    return f"{headline_of(trials.values()).title} against {what}"


def value_axis(axes: Axes, trials: Iterable[Series]) -> None:
    """Set up the vertical axis for values of the headline that are drawn, in per cent where they are shares."""
    trials = list(trials)
    headline = headline_of(trials)
    axes.set_ylabel(f"{selects_by(trials)} {headline.titled_unit}")
    if headline.is_share:
        percent_axis(axes.yaxis)
    drawn = [float(value) for line in axes.get_lines() for value in np.asarray(line.get_ydata())]
    shown = value_range(headline, drawn)
    if shown and shown.is_log:
        log_values(axes, shown)
    elif shown and shown.low > np.nanmin(drawn):
        axes.set_ylim(shown.low, shown.high + ROOM_ABOVE * (shown.high - shown.low))


def log_values(axes: Axes, shown: ValueRange) -> None:
    """Make the vertical axis logarithmic, and say so."""
    axes.set_ylabel(f"{axes.get_ylabel()}\nlogarithmic")
    axes.set_yscale("log")
    log_axis(axes.yaxis, shown.low, shown.high, number_text)


def bytes_scale(axes: Axes, over: str, low: float, high: float) -> None:
    """Set up a logarithmic axis of bytes for data from `low` to `high`; 0 where there is none."""
    if high:
        axes.set_xscale("log")
        bytes_axis(axes.xaxis, low, high)
    axes.set_xlabel(AXES[over])


def _over_time(axes: Axes, trials: Trials) -> None:
    for index, (name, series) in enumerate(trials.items()):
        evaluations = series.evaluations
        if len(evaluations):
            axes.plot(evaluations.t, evaluations.values, label=name, **line_style(index, len(evaluations)))
    axes.set_xlabel(AXES["time"])
    value_axis(axes, trials.values())


def _staleness(axes: Axes, trials: Trials) -> None:
    for index, (name, series) in enumerate(trials.items()):
        values = series.updates.staleness
        if not len(values) or series.shards.resumed:  # shards push nothing
            continue
        width = int(values.max()) // 60 + 1
        counts = np.bincount(values // width)
        edges = np.arange(len(counts) + 1) * width - 0.5
        style: dict[str, Any] = {
            "color": PALETTE[index % len(PALETTE)],
            "linestyle": DASHES[index % len(DASHES)],
            "linewidth": 1.8,
        }
        axes.stairs(counts / len(values), edges, label=name, **style)
        axes.stairs(counts / len(values), edges, fill=True, alpha=0.15, color=style["color"])
    axes.set_xlabel("staleness (updates between a worker's pull and its push)")
    axes.set_ylabel("share of the updates (%)")
    percent_axis(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _update_rate(axes: Axes, trials: Trials) -> None:
    for index, (name, series) in enumerate(trials.items()):
        t = series.updates.t
        if len(t) < 2 or t[-1] <= t[0]:
            continue
        of_training = (0.0, max(series.trained_s, float(t[-1])))
        counts, edges = np.histogram(t, min(RATE_BINS, max(1, len(t) // 5)), of_training)
        line = line_style(index, len(counts))
        axes.plot((edges[1:] + edges[:-1]) / 2, counts / np.diff(edges), label=name, **{**line, "marker": None})
    axes.set_xlabel(AXES["time"])
    axes.set_ylabel("updates a second (1/s)")
    if axes.has_data():
        axes.set_ylim(0.0, ROOM * max(float(np.max(line.get_ydata())) for line in axes.get_lines()))


def _at(series: Series, t: Floats, counted: Floats | Ints) -> Floats:
    """Counters of updates, (U,), at each time; 0 before the first."""
    reached = np.searchsorted(series.updates.t, t, side="right")
    return np.concatenate([np.zeros(1), counted])[reached]


def _mark_faults(axes: Axes, trials: Trials, place: Place) -> None:
    limits = axes.get_xlim()
    found = [_marks(axes, name, series, place) for name, series in trials.items()]
    if all(_are_same(axes, found[0], other) for other in found):
        found = found[:1]
    number = sum(map(len, found))
    style: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "alpha": 0.55, "linewidth": 1.0}
    for index, marks in enumerate(found):
        style["colors"] = PALETTE[index % len(PALETTE)] if len(found) > 1 else INK
        places = [x for x, _ in marks]
        if number <= LINES_MAX:
            axes.vlines(places, 0.0, 1.0, linestyles="dotted", **style)
        else:
            bottom = 1.0 + 1.4 * index * TICK_HEIGHT
            axes.vlines(places, bottom, bottom + TICK_HEIGHT, clip_on=False, **style)
    if number <= NAMED_MARKS_MAX:
        _name_marks(axes, [mark for marks in found for mark in marks])
    if number > LINES_MAX:
        axes.set_title(" ", fontsize=8 * len(found))  # room for the ticks
    axes.set_xlim(*limits)


def _name_marks(axes: Axes, marks: Marks) -> None:
    """Write words beside lines, from the bottom; those of lines that are close together in one text."""
    share_of = _share_of(axes)
    named: list[tuple[float, list[str]]] = []
    for x, label in sorted(marks):
        if named and share_of(x) - share_of(named[-1][0]) < NAMES_APART:
            named[-1][1].append(label)
        else:
            named.append((x, [label]))
    how: dict[str, Any] = {"rotation": 90, "ha": "right", "va": "bottom", "fontsize": 8}
    for x, labels in named:
        axes.text(x, 0.015, ", ".join(dict.fromkeys(labels)), transform=axes.get_xaxis_transform(), **how)


def _marks(axes: Axes, name: str, series: Series, place: Place) -> Marks:
    """Marks of what was done, and when, e.g. `freeze x20`; only those that the axis shows."""
    done = [each for each in series.faults if each.was_done]
    low, high = axes.get_xlim()
    share_of = _share_of(axes)
    groups: list[tuple[float, float, Counter[str]]] = []
    places = place(name, series, np.array([each.t for each in done], dtype=np.float64)).tolist()
    for x, each in sorted(zip(places, done, strict=True), key=lambda pair: pair[0]):
        if low <= x <= high:
            share = share_of(x)
            if not groups or share - groups[-1][1] > MARKS_APART:
                groups.append((x, share, Counter()))
            groups[-1][2][each.record.action] += 1
    return [(x, _label(actions)) for x, _, actions in groups]


def _share_of(axes: Axes) -> Callable[[float], float]:
    """A function from a value to its place as a share of the horizontal axis."""
    low, high = axes.get_xlim()
    scale = math.log if axes.get_xscale() == "log" else float
    return lambda x: (scale(x) - scale(low)) / (scale(high) - scale(low))


def _are_same(axes: Axes, marks: Marks, others: Marks) -> bool:
    """Whether two trials have the same marks, so that they need not be distinguished."""
    low, high = axes.get_xlim()
    pairs = zip(marks, others, strict=False)
    return len(marks) == len(others) and all(
        label == other and abs(x - at) <= MARKS_APART * (high - low) for (x, label), (at, other) in pairs
    )


def _label(actions: Counter[str]) -> str:
    """Words for a mark, e.g. `freeze ×20`."""
    return ", ".join(f"{action} ×{count}" if count > 1 else action for action, count in actions.items())
