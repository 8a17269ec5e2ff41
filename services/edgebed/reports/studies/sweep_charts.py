"""Charts of a sweep: who wins where, time against the rate, bytes and CPU seconds by method.

The map can be read without its colours: each cell has the winner's letter and name. Methods beyond the palette's
colours get hatching. Everything is drawn from a result alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from statistics import median
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from edgebed.core.quantities import bytes_text, seconds_text
from edgebed.core.units import format_duration
from edgebed.reports.studies.sweep_text import factor_text, probability_text
from edgebed.reports.writing.drawing import INK, PALETTE, SIZE, Chart, bytes_axis, line_style
from edgebed.studies.sweep.points import Axis, axes_of
from edgebed.studies.sweep.swept import PointResult, SweepResult, WinAt
from edgebed.studies.sweep.winners import Spread

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HATCHES = ("", "//", "..", "xx")
CELL = (1.6, 0.86)
"""Width and height of a cell of the map in inches."""
BORDER = (1.2, 0.85)
LETTER_WIDTH = 0.082
CELL_WIDTHS_MIN = 4
ALPHA = 0.38
"""Opacity of a cell's colour, so that its text is readable on light and on dark."""
ROW_HEIGHT = 0.3
NOBODY = "nobody"
NOWHERE = Spread(mean=math.nan, low=math.nan, high=math.nan)
"""The spread of a method that does not reach the accuracy: its line is broken there."""
TIMES_S = (
    *(factor * 10.0**power for power in range(-3, 1) for factor in (1, 2, 5)),
    *(10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0),
    *(3600.0 * hours for hours in (1, 2, 5, 10, 24, 48, 96, 240)),
)
"""Times in seconds at which an axis may have a tick."""
TICKS_MAX = 9


class Layout(NamedTuple):
    """Directions of the axes in the map: one to the right, one downwards, a map for each value of the others."""

    columns: Axis
    rows: Axis | None
    others: tuple[Axis, ...]


def layout_of(axes: Sequence[Axis]) -> Layout:
    """The layout of axes: rates go to the right, as does the last axis without rates; the first other one downwards."""
    columns = next((axis for axis in axes if axis.is_rate), axes[-1])
    others = [axis for axis in axes if axis is not columns]
    return Layout(columns, others[0] if others else None, tuple(others[1:]))


def letters(methods: Sequence[str]) -> dict[str, str]:
    """A letter for each method; two where there are more than letters."""
    names = [*LETTERS, *map("".join, product(LETTERS, repeat=2))]
    return dict(zip(methods, names, strict=False))


def charts_of_sweep(result: SweepResult) -> list[Chart]:
    """All charts that can be drawn of a sweep."""
    layout = layout_of(axes_of(result.axes))
    found = [*_maps(result, layout)]
    if layout.columns.is_rate:
        found += _curves(result, layout)
    for measure, title, text in (
        ("traffic_bytes", "Bytes up and down to the accuracy", bytes_text),
        ("ingress_bytes", "Bytes up to the accuracy", bytes_text),
        ("egress_bytes", "Bytes down to the accuracy", bytes_text),
        ("cpu_s", "CPU seconds to the accuracy", seconds_text),
    ):
        found.append(_ranges(result, measure, title, text))
    return [chart for chart in found if chart.svg]


def style_of(place: int) -> dict[str, Any]:
    """Style of the cells of the method at this place."""
    return {
        "facecolor": PALETTE[place % len(PALETTE)],
        "hatch": HATCHES[place // len(PALETTE) % len(HATCHES)],
        "alpha": ALPHA,
        "edgecolor": INK,
        "linewidth": 0.0,
    }


def cell_lines(win: WinAt | None, letter_of: Mapping[str, str]) -> tuple[str, ...]:
    """The lines in a cell of the map: the winner, its time, and its factor; pure."""
    if win is None or win.time is None:
        return ("not run" if win and win.not_run else NOBODY,)
    found = win.time
    if found.factor is None:
        by = "alone"
    else:
        by = f"{'≈ ' if found.is_coarse else ''}{factor_text(found.factor)} × {letter_of[found.second or '']}"
        by += "" if found.probability is None else f", {probability_text(found)}"
    if win.not_run:
        by = f"{win.not_run} not run"
    return (f"{letter_of[found.method]} {found.method}", seconds_text(found.mean), by)


def _maps(result: SweepResult, layout: Layout) -> list[Chart]:
    found = []
    for fixed in product(*(axis.values for axis in layout.others)):
        where = dict(zip((axis.key for axis in layout.others), fixed, strict=True))
        title = "Who is first" + _where(layout.others, fixed)
        found.append(_map(title, result, layout, where))
    return found


def _map(title: str, result: SweepResult, layout: Layout, where: Mapping[str, str]) -> Chart:
    columns, rows = layout.columns, layout.rows
    row_values = rows.values if rows else ("",)
    letter_of = letters(result.methods)
    wins = {tuple(each.values.items()): each for each in result.wins}
    winners: dict[str, None] = {}

    def plot(axes: Axes) -> None:
        for (y, row), (x, column) in product(enumerate(row_values), enumerate(columns.values)):
            values = {columns.key: column, **({rows.key: row} if rows else {}), **where}
            win = wins.get(tuple((key, values[key]) for key in result.axes))
            if win and win.time:
                winners.setdefault(win.time.method)
                place = result.methods.index(win.time.method)
                axes.add_patch(Rectangle((x - 0.49, y - 0.49), 0.98, 0.98, **style_of(place)))
            lines = cell_lines(win, letter_of)
            for k, line in enumerate(lines):
                weight = "bold" if k == 0 else "normal"
                offset = 0.27 * (k - (len(lines) - 1) / 2)
                axes.text(x, y + offset, line, ha="center", va="center", fontsize=9, fontweight=weight)
        axes.plot([], [])
        axes.set_xlim(-0.5, len(columns.values) - 0.5)
        axes.set_ylim(len(row_values) - 0.5, -0.5)
        axes.set_xticks(range(len(columns.values)), columns.values)
        axes.set_yticks(range(len(row_values)), row_values)
        axes.set_xlabel(f"{columns.key} (as set)")
        axes.set_ylabel(f"{rows.key} (as set)" if rows else "")
        axes.grid(visible=False)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)

    cell = max(CELL[0], LETTER_WIDTH * (4 + max(map(len, result.methods))))
    width = BORDER[0] + cell * max(CELL_WIDTHS_MIN, len(columns.values))
    return Chart(title, plot, size=(width, BORDER[1] + CELL[1] * len(row_values)))


def _curves(result: SweepResult, layout: Layout) -> list[Chart]:
    """Charts of time against the rate, a line a method, a chart for each value of the other axes."""
    others = [axis for axis in (layout.rows, *layout.others) if axis]
    found = []
    for fixed in product(*(axis.values for axis in others)):
        where = dict(zip((axis.key for axis in others), fixed, strict=True))
        points = [point for point in result.points if where.items() <= point.values.items()]
        title = "Time to the accuracy" + _where(others, fixed)
        found.append(Chart(title, _times(result, layout.columns, points), len(result.methods)))
    return found


def _times(result: SweepResult, axis: Axis, points: Sequence[PointResult]) -> Callable[[Axes], None]:
    def plot(axes: Axes) -> None:
        rate_of = dict(zip(axis.values, axis.rates_bit_s, strict=True))
        for index, method in enumerate(result.methods):
            time_of = {point.values[axis.key]: point.time_s for point in points if point.method == method}
            times = [time_of.get(value) or NOWHERE for value in axis.values]
            if any(time is not NOWHERE for time in times):
                x = axis.rates_bit_s
                axes.plot(x, [time.mean for time in times], label=method, **line_style(index, len(times)))
                if result.seeds > 1:
                    low, high = [time.low for time in times], [time.high for time in times]
                    axes.fill_between(x, low, high, color=PALETTE[index % len(PALETTE)], alpha=0.18, linewidth=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(axis.rates_bit_s))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: _named(rate, rate_of)))
        axes.xaxis.set_minor_locator(NullLocator())
        _time_ticks(axes.yaxis)
        axes.set_xlabel(f"{axis.key} (bits a second; logarithmic)")
        axes.set_ylabel("time (s, m, h; logarithmic)")

    return plot


def _ranges(result: SweepResult, measure: str, title: str, text: Callable[[float], str]) -> Chart:
    """A chart of the median over all points at which a method reached the accuracy, and its range."""
    spans = {}
    for method in result.methods:
        values = [
            spread.mean
            for point in result.points
            if point.method == method and (spread := getattr(point, measure)) is not None
        ]
        if values:
            spans[method] = (min(values), median(values), max(values))

    def plot(axes: Axes) -> None:
        for y, (method, (low, middle, high)) in enumerate(spans.items()):
            colour = PALETTE[result.methods.index(method) % len(PALETTE)]
            axes.plot([low, high], [y, y], color=colour, linewidth=2.4)
            axes.plot([middle], [y], color=colour, marker="o", markersize=7)
            axes.annotate(text(middle), (high, y), xytext=(8, 0), textcoords="offset points", va="center", fontsize=9)
        axes.set_yticks(range(len(spans)), list(spans))
        axes.set_ylim(len(spans) - 0.4, -0.6)
        axes.margins(x=0.18)
        axes.set_xscale("log")
        if text is bytes_text:
            bytes_axis(axes.xaxis, *axes.get_xlim())
        else:
            _time_ticks(axes.xaxis)
        axes.set_xlabel(f"{title} ({'bytes' if text is bytes_text else 's, m, h'}; logarithmic)")
        axes.set_title("median and range over the points", fontsize=9)

    return Chart(title, plot, size=(SIZE[0], 1.0 + ROW_HEIGHT * len(result.methods)))


def _time_ticks(axis: XAxis | YAxis) -> None:
    """Set the ticks of a logarithmic axis of times: round ones, as few as can be read."""
    low, high = axis.get_view_interval()
    inside = [tick for tick in TIMES_S if low <= tick <= high]
    axis.set_major_locator(FixedLocator(inside[:: 1 + len(inside) // TICKS_MAX]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_duration(round(value, 6))))
    axis.set_minor_locator(NullLocator())


def _where(axes: Sequence[Axis], values: Sequence[str]) -> str:
    return "".join(f", {axis.label} {value}" for axis, value in zip(axes, values, strict=True))


def _named(rate: float, rate_of: Mapping[str, int]) -> str:
    return next((name for name, value in rate_of.items() if abs(value - rate) < 0.5), "")
