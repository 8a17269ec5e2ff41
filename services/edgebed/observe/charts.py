"""Charts of trials: accuracy against ingress, updates and time, staleness, updates a second.

What was done to nodes is marked: a line with words where there are few, else a tick above the axes; what is close
together is one mark.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from edgebed.observe.drawing import DASHES, INK, PALETTE, Chart, bytes_axis, line_style, percent_axis
from edgebed.observe.series import Floats, Ints, Series

RATE_BINS = 40
MARKS_APART = 0.02
"""Of the axis: closer ones are one mark."""
LINES_MAX = 12
"""More marks than that are ticks."""
NAMED_MARKS_MAX = 8
NAMES_APART = 0.06
"""Of the axis: words that are closer are one text."""
TICK_HEIGHT = 0.025
"""Of the axes."""
AXES = {
    "updates": "updates applied (number)",
    "ingress": "server ingress: payload of the pushes (bytes; logarithmic)",
    "time": "time since training started (s)",
}
"""Titles of horizontal axes."""

Trials = Mapping[str, Series]
"""Series by the trial's name, in the order of the legend."""
Place = Callable[[Series, Floats], Floats | Ints]
"""Where on the horizontal axis times of a trial are, (F,) -> (F,)."""
Marks = list[tuple[float, str]]
"""Where on the horizontal axis something was done, and what."""


def charts_of(trials: Trials) -> tuple[Chart, ...]:
    """All charts of trials, by name in the order of a report."""
    return tuple(draw(trials) for draw in CHARTS.values())


def accuracy_over_ingress(trials: Trials) -> Chart:
    """Test accuracy against the payload of all pushes so far, the ingress on a logarithmic axis."""
    return _chart("Accuracy against ingress", trials, _accuracy_over_ingress, _ingress_at)


def accuracy_over_updates(trials: Trials) -> Chart:
    """Test accuracy against the number of updates."""
    return _chart("Accuracy against updates", trials, _accuracy_over_updates, _version_at)


def accuracy_over_time(trials: Trials) -> Chart:
    """Test accuracy against the time since training started."""
    return _chart("Accuracy against time", trials, _accuracy_over_time, _time_at)


def staleness(trials: Trials) -> Chart:
    """How large a part of the updates had each staleness."""
    return _chart("Staleness", trials, _staleness)


def update_rate(trials: Trials) -> Chart:
    """Updates a second over time."""
    return _chart("Updates a second", trials, _update_rate, _time_at)


CHARTS: dict[str, Callable[[Trials], Chart]] = {
    "accuracy-ingress": accuracy_over_ingress,
    "accuracy-updates": accuracy_over_updates,
    "accuracy-time": accuracy_over_time,
    "staleness": staleness,
    "update-rate": update_rate,
}


def _chart(title: str, trials: Trials, plot: Callable[[Axes, Trials], None], place: Place | None = None) -> Chart:
    def plot_marked(axes: Axes) -> None:
        plot(axes, trials)
        if place and axes.has_data():
            _mark_faults(axes, trials, place)

    return Chart(title, plot_marked, len(trials))


def accuracy_axis(axes: Axes) -> None:
    """Accuracies upwards, in per cent."""
    axes.set_ylabel("test accuracy (%)")
    percent_axis(axes.yaxis)


def ingress_axis(axes: Axes, low: float, high: float) -> None:
    """Bytes to the right, logarithmic, for data from `low` to `high`; 0 where there is none."""
    if high:
        axes.set_xscale("log")
        bytes_axis(axes.xaxis, low, high)
    axes.set_xlabel(AXES["ingress"])


def _accuracy_over_ingress(axes: Axes, trials: Trials) -> None:
    low, high = np.inf, 0.0
    for index, (name, series) in enumerate(trials.items()):
        x, y = series.evaluations.ingress_bytes, series.evaluations.accuracy
        seen = x > 0  # The evaluation of the initial model has no place on a logarithmic axis.
        if seen.any():
            axes.plot(x[seen], y[seen], label=name, **line_style(index, int(seen.sum())))
            low, high = min(low, float(x[seen].min())), max(high, float(x.max()))
    ingress_axis(axes, low, high)
    accuracy_axis(axes)


def _accuracy_over_updates(axes: Axes, trials: Trials) -> None:
    for index, (name, series) in enumerate(trials.items()):
        evaluations = series.evaluations
        if len(evaluations):
            axes.plot(evaluations.version, evaluations.accuracy, label=name, **line_style(index, len(evaluations)))
    axes.set_xlabel(AXES["updates"])
    accuracy_axis(axes)


def _accuracy_over_time(axes: Axes, trials: Trials) -> None:
    for index, (name, series) in enumerate(trials.items()):
        evaluations = series.evaluations
        if len(evaluations):
            axes.plot(evaluations.t, evaluations.accuracy, label=name, **line_style(index, len(evaluations)))
    axes.set_xlabel(AXES["time"])
    accuracy_axis(axes)


def _staleness(axes: Axes, trials: Trials) -> None:
    for index, (name, series) in enumerate(trials.items()):
        values = series.updates.staleness
        if not len(values) or series.resumed:  # shards push nothing
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
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _update_rate(axes: Axes, trials: Trials) -> None:
    for index, (name, series) in enumerate(trials.items()):
        t = series.updates.t
        if len(t) < 2 or t[-1] <= t[0]:
            continue
        counts, edges = np.histogram(t, bins=min(RATE_BINS, max(1, len(t) // 5)))
        line = line_style(index, len(counts))
        axes.plot((edges[1:] + edges[:-1]) / 2, counts / np.diff(edges), label=name, **{**line, "marker": None})
    axes.set_xlabel(AXES["time"])
    axes.set_ylabel("updates a second (1/s)")
    if axes.has_data():
        axes.set_ylim(bottom=0)


def _time_at(series: Series, t: Floats) -> Floats:
    return t


def _version_at(series: Series, t: Floats) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), series.updates.version])[_made_by(series, t)]


def _ingress_at(series: Series, t: Floats) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), series.updates.ingress_bytes])[_made_by(series, t)]


def _made_by(series: Series, t: Floats) -> Ints:
    """How many of the updates had been applied at each time."""
    return np.searchsorted(series.updates.t, t, side="right")


def _mark_faults(axes: Axes, trials: Trials, place: Place) -> None:
    limits = axes.get_xlim()
    found = [_marks(axes, series, place) for series in trials.values()]
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
    """Words beside lines, from the bottom; those of lines that are close together in one text."""
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


def _marks(axes: Axes, series: Series, place: Place) -> Marks:
    """Where something was done, and what, e.g. `freeze x20`; only what the axis shows."""
    done = [each for each in series.faults if each.was_done]
    low, high = axes.get_xlim()
    share_of = _share_of(axes)
    groups: list[tuple[float, float, Counter[str]]] = []
    places = place(series, np.array([each.t for each in done], dtype=np.float64)).tolist()
    for x, each in sorted(zip(places, done, strict=True), key=lambda pair: pair[0]):
        if low <= x <= high:
            share = share_of(x)
            if not groups or share - groups[-1][1] > MARKS_APART:
                groups.append((x, share, Counter()))
            groups[-1][2][each.record.action] += 1
    return [(x, _label(actions)) for x, _, actions in groups]


def _share_of(axes: Axes) -> Callable[[float], float]:
    """How far to the right a value is, of the horizontal axis."""
    low, high = axes.get_xlim()
    scale = math.log if axes.get_xscale() == "log" else float
    return lambda x: (scale(x) - scale(low)) / (scale(high) - scale(low))


def _are_same(axes: Axes, marks: Marks, others: Marks) -> bool:
    """Whether two trials have the same marks, so that they need not be told apart."""
    low, high = axes.get_xlim()
    pairs = zip(marks, others, strict=False)
    return len(marks) == len(others) and all(
        label == other and abs(x - at) <= MARKS_APART * (high - low) for (x, label), (at, other) in pairs
    )


def _label(actions: Counter[str]) -> str:
    """E.g. `freeze ×20`."""
    return ", ".join(f"{action} ×{count}" if count > 1 else action for action, count in actions.items())
