"""Drawing of charts: deterministic, colour-blind safe, readable on light and on dark.

A chart is drawn into a page (`Chart.svg`), where axes and text take the colour of the surrounding text; as a file of
its own that follows its viewer's preference for light or dark (`Chart.svg_file`); and for papers, dark on white, as SVG
whose letters are outlines and as PNG (`write_figures`).

A line has a colour of Okabe and Ito's palette (the blue made lighter, for dark backgrounds), a dash and a marker of its
own, so that it can be recognised in grey too. On a page text stays text. Figures are objects; the state of pyplot is
never touched.
"""

import dataclasses
import functools
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import (
    AutoLocator,
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    ScalarFormatter,
    StrMethodFormatter,
)

from edgebed.core.errors import InfrastructureError
from edgebed.core.quantities import bytes_text
from edgebed.core.units import format_duration
from edgebed.journal.run_folder import write_atomically
from edgebed.reports.writing.chart_data import ChartData, PercentFormatter, read_axes

PALETTE = ("#2680c2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
DASHES = ("solid", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P")
INK = "#010203"
"""Placeholder for the colour of the surrounding text until the SVG is written."""
PRINTED_INK = "#222"
MARKED_POINTS_MAX = 40
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
SIZE = (5.2, 3.4)
"""Width and height of a chart in inches: so narrow that its text can be read on a phone."""
LEGEND_ROW_HEIGHT = 0.22
LEGEND_COLUMNS_MAX = 3
LETTER_WIDTH = 0.085
"""Width of a letter at the text's size, in inches, with room for other fonts."""
HANDLE_WIDTH = 0.6
"""Width of a legend's line with its surroundings, in inches."""
GROUPED_MIN = 10_000
"""Number from which on an axis that reaches it has commas in its numbers."""
GROUPED_TICKS_MAX = 6
"""Number of spaces between such numbers along an axis, so that they do not touch."""
MARGINS = (42.0, 32.0, 4.0, 4.0)
"""What ticks and titles usually take at the left, the bottom, the right and the top of axes, in points."""
MARGINS_MAX = (0.8, 0.8, 0.15, 0.15)
"""What they take at most, as shares of the figure, however long titles are."""
PAD = 3.0
"""Room around what is drawn, in points."""
PRINTED_DPI = 300
PIXELS_AN_INCH = 96
POINTS_AN_INCH = 72
"""Dots of an SVG in an inch, in which the layout is found."""
SHRUNK_MIN = 0.66
"""Least scale of a chart on a page, which scrolls instead."""
GROWN_MAX = 1.3
"""Greatest scale of a chart on a page."""
NARROW_DECADES, WIDE_DECADES = 0.7, 1.8
"""Decades of a logarithmic axis: below the first its ticks are as on a linear one, from the second on decades alone."""
TIMES_S = (
    *(factor * 10.0**power for power in range(-3, 1) for factor in (1, 2, 5)),
    *(10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0),
    *(3600.0 * hours for hours in (1, 2, 5, 10, 24, 48, 96, 240)),
)
"""Times in seconds at which an axis may have a tick."""
TICKS_MAX = 9
AXIS_TITLE = "axis-title"
"""The class of an axis' title in an SVG."""
ALONE = "<style>:root{color:#222}@media screen and (prefers-color-scheme:dark){:root{color:#ddd}}</style>"


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart. One without data is drawn as nothing."""

    title: str
    """Title above the chart; in lower case, also the name of its file."""
    plot: Callable[[Axes], None]
    num_lines: int = 0
    """Number of lines in the legend; there is none up to 1."""
    size: tuple[float, float] = SIZE
    """Width and height in inches, without the legend."""

    @property
    def name(self) -> str:
        """The title as a file name without its suffix."""
        return re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @functools.cached_property
    def _on_screen(self) -> tuple[bytes, ChartData]:
        return self._draw("none", format="svg", metadata={"Date": None, "Creator": None})

    @property
    def data(self) -> ChartData:
        """The points of what has a label."""
        return self._on_screen[1]

    @functools.cached_property
    def svg(self) -> str:
        """An SVG element in the ink of its surroundings; "" where nothing was plotted."""
        drawn = _tidy(self._on_screen[0].decode())
        least, most = (round(share * PIXELS_AN_INCH * self.size[0]) for share in (SHRUNK_MIN, GROWN_MAX))
        style = f"min-width:{least}px;max-width:{most}px"
        return drawn.replace(INK, "currentColor").replace("<svg ", f'<svg style="{style}" ', 1)

    @property
    def svg_file(self) -> bytes:
        """The SVG with a text colour of its own, for a file; b"" where nothing was plotted."""
        head, mark, rest = self.svg.partition(">")
        return f"{head}{mark}{ALONE}{rest}".encode() if self.svg else b""

    def printed_svg(self) -> bytes:
        """An SVG for paper: dark, without a background, letters as outlines; b"" where nothing was plotted."""
        drawn = _tidy(self._draw("path", format="svg", metadata={"Date": None, "Creator": None})[0].decode())
        return drawn.replace(INK, PRINTED_INK).encode()

    def printed_png(self) -> bytes:
        """A PNG for paper, on white."""
        return self._draw("none", format="png", dpi=PRINTED_DPI, facecolor="white", metadata={"Software": None})[0]

    def _draw(self, letters: str, **how: Any) -> tuple[bytes, ChartData]:
        """The chart as a file, and its points; nothing of both where nothing was plotted."""
        style: Any = {**STYLE, "svg.fonttype": letters, "svg.hashsalt": f"edgebed-{self.title}"}
        with mpl.rc_context(style):
            figure = Figure(figsize=self.size, dpi=POINTS_AN_INCH)
            axes = figure.add_subplot()
            self.plot(axes)
            if not axes.has_data():
                return b"", ChartData()
            for axis in (axes.xaxis, axes.yaxis):
                axis.label.set_gid(AXIS_TITLE)
                _group_digits(axis)
            _lay_out(figure, axes, _add_legend(figure, axes) if self.num_lines > 1 else 0.0)
            data = read_axes(axes)
            output = io.BytesIO()
            figure.savefig(output, **how)
        return output.getvalue(), data


def write_figures(folder: Path, charts: Sequence[Chart]) -> list[Path]:
    """Write each chart as SVG and PNG for papers into `folder`, which is made; return the files.

    Raises InfrastructureError where that is impossible.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"{folder}: cannot be made: {error.strerror}; choose another --figures") from error
    drawn = [chart for chart in charts if chart.svg]
    files = []
    for chart, name in zip(drawn, numbered([chart.name for chart in drawn]), strict=True):
        svg, png = folder / f"{name}.svg", folder / f"{name}.png"
        write_atomically(svg, chart.printed_svg(), "--figures")
        write_atomically(png, chart.printed_png(), "--figures")
        files += [svg, png]
    return files


def numbered(names: Iterable[str]) -> list[str]:
    """The names, the second of a kind with `-2`, and so on, so that no two are the same."""
    given: dict[str, None] = {}
    for name in names:
        tried = chain([name], (f"{name}-{number}" for number in count(2)))
        given[next(each for each in tried if each not in given)] = None
    return list(given)


def line_style(index: int, points: int) -> dict[str, Any]:
    """Style of the index-th line; markers only where they would not run into each other."""
    return {
        "color": PALETTE[index % len(PALETTE)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.8,
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 4,
        "markevery": max(1, points // MARKED_POINTS_MAX),
    }


def log_axis(axis: XAxis | YAxis, low: float, high: float, write: Callable[[float], str]) -> None:
    """Set up the ticks of a logarithmic axis from `low` to `high`: as many as can be read, two at least."""
    decades = math.log10(high / low)
    if decades < NARROW_DECADES:
        axis.set_major_locator(MaxNLocator(4))
    elif decades < WIDE_DECADES:
        subs = (1.0, 2.0, 5.0) if decades >= 1.0 else (1.0, 2.0, 3.0, 5.0, 7.0)
        axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    else:
        axis.set_major_locator(LogLocator(numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axis.set_minor_locator(NullLocator())


def bytes_axis(axis: XAxis | YAxis, low: float, high: float) -> None:
    """Set up a logarithmic axis of bytes from `low` to `high`."""
    log_axis(axis, low, high, bytes_text)


def time_axis(axis: XAxis | YAxis, low: float, high: float) -> None:
    """Set up a logarithmic axis of seconds from `low` to `high`: ticks are round in seconds, minutes or hours."""
    log_axis(axis, low, high, lambda value: format_duration(float(f"{value:.6g}")))
    inside = [tick for tick in TIMES_S if low <= tick <= high]
    if len(inside) > 1:
        axis.set_major_locator(FixedLocator(inside[:: 1 + len(inside) // TICKS_MAX]))


def percent_axis(axis: XAxis | YAxis) -> None:
    """Format an axis of fractions in per cent."""
    axis.set_major_formatter(PercentFormatter())


def _group_digits(axis: XAxis | YAxis) -> None:
    """Write numbers as in tables, 250,000, where nothing else formats them, and not too many side by side."""
    is_large = max(map(abs, axis.get_view_interval())) >= GROUPED_MIN
    if is_large and isinstance(axis.get_major_formatter(), ScalarFormatter):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        if isinstance(axis, XAxis) and isinstance(axis.get_major_locator(), AutoLocator):
            axis.set_major_locator(MaxNLocator(GROUPED_TICKS_MAX, steps=(1, 2, 2.5, 5, 10)))


def _add_legend(figure: Figure, axes: Axes) -> float:
    """Add a legend at the bottom, in as many columns as fit, by which the figure grows; return its top in points."""
    names = axes.get_legend_handles_labels()[1]
    width, height = figure.get_size_inches()
    needed = HANDLE_WIDTH + LETTER_WIDTH * max(map(len, names), default=0)
    columns = max(1, min(len(names), LEGEND_COLUMNS_MAX, int(width / needed)))
    rows = -(-len(names) // columns)
    figure.set_size_inches(max(width, needed), height + LEGEND_ROW_HEIGHT * rows)
    legend = figure.legend(loc="lower center", ncols=columns, borderaxespad=PAD / STYLE["font.size"])
    box = legend.get_tightbbox()
    assert box
    return float(box.y1)


def _lay_out(figure: Figure, axes: Axes, below: float) -> None:
    """Give the axes the room that is left by their ticks and titles, above `below`, in points.

    Ticks and titles are measured once, around axes of nearly the final size: matplotlib's own layouts take longer.
    """

    def place(left: float, bottom: float, right: float, top: float) -> None:
        taken = (left, below + bottom, right, top) / np.tile(figure.bbox.size, 2)
        left, bottom, right, top = np.minimum(taken, MARGINS_MAX)
        figure.subplots_adjust(left, bottom, 1 - right, 1 - top)

    place(*MARGINS)
    inner, outer = axes.get_window_extent(), axes.get_tightbbox(for_layout_only=True)
    assert outer
    place(*(np.subtract(inner.min, outer.min) + PAD), *(np.subtract(outer.max, inner.max) + PAD))


def _tidy(svg: str) -> str:
    """Leave the bare <svg> element, without ids that nothing refers to."""
    svg = svg[max(0, svg.find("<svg")) :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[A-Za-z.]+[0-9]*_[0-9]+"', "", svg)
    return svg.replace(f' id="{AXIS_TITLE}"', f' class="{AXIS_TITLE}"')
