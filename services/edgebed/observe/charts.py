"""Charts of trials as SVG: deterministic, colour-blind safe, readable on light and on dark.

A line has a colour of Okabe and Ito's palette (the blue made lighter, for dark backgrounds), a dash and a marker of
its own, so that it can be told in grey too. Axes and text take the colour of the surrounding text (`currentColor`); a
chart looked at as a file of its own follows the viewer's preference. Text stays text. Figures are objects; the state of
pyplot is never touched.

What was done to nodes is marked: a line with words where there are few, else a tick above the axes; what is close
together is one mark.
"""

import io
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

from edgebed.observe.quantities import bytes_text
from edgebed.observe.series import Floats, Ints, Series

PALETTE = ("#2680c2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
DASHES = ("solid", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P")
INK = "#010203"
"""Stands for the colour of the surrounding text until the SVG is written."""
MARKED_POINTS_MAX = 40
RATE_BINS = 40
LEGEND_COLUMNS = 3
MARKS_APART = 0.02
"""Of the axis: closer ones are one mark."""
LINES_MAX = 12
"""More marks than that are ticks."""
NAMED_MARKS_MAX = 8
TICK_HEIGHT = 0.025
"""Of the axes."""
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "text.parse_math": False,  # A `$` in a name is a dollar.
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
}
SIZE = (6.4, 3.8)
"""Width and height of a chart in inches."""
PNG_DPI = 150
AXES = {
    "updates": "updates",
    "ingress": "server ingress: payload of the pushes (logarithmic)",
    "time": "time since training started (s)",
}
"""Titles of horizontal axes."""
ALONE = "<style>:root{color:#222}@media screen and (prefers-color-scheme:dark){:root{color:#ddd}}</style>"

Trials = Mapping[str, Series]
"""Series by the trial's name, in the order of the legend."""
Place = Callable[[Series, Floats], Floats | Ints]
"""Where on the horizontal axis times of a trial are, (F,) -> (F,)."""
Marks = list[tuple[float, str]]
"""Where on the horizontal axis something was done, and what."""


def accuracy_over_ingress(trials: Trials) -> str:
    """Test accuracy against the payload of all pushes so far, the ingress on a logarithmic axis."""
    return _draw_trials("accuracy-ingress", trials, _accuracy_over_ingress, _ingress_at)


def accuracy_over_updates(trials: Trials) -> str:
    """Test accuracy against the number of updates."""
    return _draw_trials("accuracy-updates", trials, _accuracy_over_updates, _version_at)


def accuracy_over_time(trials: Trials) -> str:
    """Test accuracy against the time since training started."""
    return _draw_trials("accuracy-time", trials, _accuracy_over_time, _time_at)


def staleness(trials: Trials) -> str:
    """How large a part of the updates had each staleness."""
    return _draw_trials("staleness", trials, _staleness)


def update_rate(trials: Trials) -> str:
    """Updates a second over time."""
    return _draw_trials("update-rate", trials, _update_rate, _time_at)


CHARTS: dict[str, tuple[str, Callable[[Trials], str]]] = {
    "accuracy-ingress": ("Accuracy against ingress", accuracy_over_ingress),
    "accuracy-updates": ("Accuracy against updates", accuracy_over_updates),
    "accuracy-time": ("Accuracy against time", accuracy_over_time),
    "staleness": ("Staleness", staleness),
    "update-rate": ("Updates a second", update_rate),
}
"""File name without suffix -> (title, function of the trials that gives the SVG, "" where nothing was measured)."""


def stand_alone(svg: str) -> str:
    """An SVG that finds its own text colour, for a file of its own."""
    head, mark, rest = svg.partition(">")
    return f"{head}{mark}{ALONE}{rest}"


def draw_svg(name: str, num_lines: int, plot: Callable[[Axes], None], size: tuple[float, float] = SIZE) -> str:
    """A chart by itself as an SVG element; "" where nothing was plotted. `name` makes its ids its own.

    `size` is its width and height in inches, without the legend.
    """
    how = {"format": "svg", "metadata": {"Date": None, "Creator": None}}
    return _tidy(_draw(name, num_lines, plot, size, **how).decode())


def draw_png(num_lines: int, plot: Callable[[Axes], None]) -> bytes:
    """The same as a PNG, dark on white; b"" where nothing was plotted."""
    return _draw("", num_lines, plot, SIZE, format="png", dpi=PNG_DPI, facecolor="white", metadata={"Software": None})


def _draw(name: str, num_lines: int, plot: Callable[[Axes], None], size: tuple[float, float], **how: Any) -> bytes:
    style: Any = {**STYLE, "svg.hashsalt": f"edgebed-{name}"}
    with mpl.rc_context(style):
        rows = -(-num_lines // LEGEND_COLUMNS) if num_lines > 1 else 0
        figure = Figure(figsize=(size[0], size[1] + 0.22 * rows), layout="constrained")
        axes = figure.add_subplot()
        plot(axes)
        if not axes.has_data():
            return b""
        if rows:
            figure.legend(loc="outside lower center", ncols=min(num_lines, LEGEND_COLUMNS))
        output = io.BytesIO()
        figure.savefig(output, **how)
    return output.getvalue()


def _draw_trials(name: str, trials: Trials, plot: Callable[[Axes, Trials], None], place: Place | None = None) -> str:
    def plot_marked(axes: Axes) -> None:
        plot(axes, trials)
        if place and axes.has_data():
            _mark_faults(axes, trials, place)

    return draw_svg(name, len(trials), plot_marked)


def _tidy(svg: str) -> str:
    """Leave the bare <svg> element, without the ids nobody refers to, in the ink of its surroundings."""
    svg = svg[max(0, svg.find("<svg")) :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[A-Za-z.]+[0-9]*_[0-9]+"', "", svg)
    return svg.replace(INK, "currentColor")


def line_style(index: int, points: int) -> dict[str, Any]:
    """How the index-th line looks; markers only where they would not run into each other."""
    return {
        "color": PALETTE[index % len(PALETTE)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.8,
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 4,
        "markevery": max(1, points // MARKED_POINTS_MAX),
    }


def accuracy_axis(axes: Axes) -> None:
    """Accuracies upwards, in per cent."""
    axes.set_ylabel("test accuracy (%)")
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0, symbol="", decimals=None))


def ingress_axis(axes: Axes, low: float, high: float) -> None:
    """Bytes to the right, logarithmic, for data from `low` to `high`; 0 where there is none."""
    if high:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
        if high / low <= 30:
            axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_minor_locator(NullLocator())
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
        counts = np.bincount(np.clip(values, 0, None))
        width = max(1, -(-len(counts) // 60))
        padded = np.pad(counts, (0, -len(counts) % width)).reshape(-1, width).sum(axis=1)
        edges = np.arange(len(padded) + 1) * width - 0.5
        style: dict[str, Any] = {
            "color": PALETTE[index % len(PALETTE)],
            "linestyle": DASHES[index % len(DASHES)],
            "linewidth": 1.8,
        }
        axes.stairs(padded / len(values), edges, label=name, **style)
        axes.stairs(padded / len(values), edges, fill=True, alpha=0.15, color=style["color"])
    axes.set_xlabel("staleness (updates between a worker's pull and its push)")
    axes.set_ylabel("share of the updates (%)")
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0, symbol="", decimals=None))
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
        for x, label in marks if number <= NAMED_MARKS_MAX else ():
            text: dict[str, Any] = {"rotation": 90, "ha": "right", "va": "bottom", "fontsize": 8}
            axes.text(x, 0.015, label, transform=style["transform"], **text)
    if number > LINES_MAX:
        axes.set_title(" ", fontsize=8 * len(found))  # room for the ticks
    axes.set_xlim(*limits)


def _marks(axes: Axes, series: Series, place: Place) -> Marks:
    """Where something was done, and what, e.g. `freeze x20`; only what the axis shows."""
    done = [each for each in series.faults if each.was_done]
    low, high = axes.get_xlim()
    scale = math.log if axes.get_xscale() == "log" else float
    groups: list[tuple[float, float, Counter[str]]] = []
    places = place(series, np.array([each.t for each in done], dtype=np.float64)).tolist()
    for x, each in sorted(zip(places, done, strict=True), key=lambda pair: pair[0]):
        if low <= x <= high:
            share = (scale(x) - scale(low)) / (scale(high) - scale(low))
            if not groups or share - groups[-1][1] > MARKS_APART:
                groups.append((x, share, Counter()))
            groups[-1][2][each.record.action] += 1
    return [(x, _label(actions)) for x, _, actions in groups]


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
