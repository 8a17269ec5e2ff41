"""The numbers that a chart shows, read off its axes after it is drawn: for a table beside it, and for values on hover.

Only what has a label is data: lines, markers, steps, bars, and both ends of spans. A line of many points is thinned.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.patches import StepPatch
from matplotlib.ticker import FuncFormatter

POINTS_MAX = 400
"""Points of a line; of more, as many are kept, the first and the last among them."""
DIGITS = 8
"""Significant digits of a number; accuracies are of single precision, and have fewer."""
Labelled = tuple[str, float, float]
"""Name of a line, and a point of it in the units of the axes."""


class PercentFormatter(FuncFormatter):
    """Writes the fractions of an axis as per cent."""

    def __init__(self) -> None:
        super().__init__(lambda value, _: f"{100 * value:.4g}")


class Point(NamedTuple):
    """A point of a chart."""

    name: str
    """Name of the line."""
    x: str
    y: str
    at: tuple[float, float]
    """Place in the SVG: from the left and from the top, in its own units."""


class ChartData(NamedTuple):
    """All points of a chart; none where nothing in it has a label."""

    x_title: str = ""
    y_title: str = ""
    points: tuple[Point, ...] = ()
    is_thinned: bool = False
    """Whether a line has more points than are here."""


def read_axes(axes: Axes) -> ChartData:
    """The points of axes that are laid out."""
    figure = axes.get_figure()
    assert figure
    lines = [list(line) for line in _lines(axes)]
    found = [point for line in lines for point in _thinned(line)]
    places = axes.transData.transform([(x, y) for _, x, y in found]) if found else ()
    points = (
        Point(name, _text(axes.xaxis, x), _text(axes.yaxis, y), (round(left, 1), round(figure.bbox.height - up, 1)))
        for (name, x, y), (left, up) in zip(found, places, strict=True)
    )
    is_thinned = any(len(line) > POINTS_MAX for line in lines)
    return ChartData(_title(axes.xaxis), _title(axes.yaxis), tuple(points), is_thinned)


def _lines(axes: Axes) -> Iterator[Iterable[Labelled]]:
    """All that has a label, with its points that can be drawn."""
    for line in axes.get_lines():
        yield _finite(line.get_label(), *np.asarray(line.get_xydata(), dtype=np.float64).T)
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            yield _finite(patch.get_label(), (edges[1:] + edges[:-1]) / 2, values)
    for bars in axes.containers:
        widths = [(bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in bars]
        yield _finite(bars.get_label(), *zip(*widths, strict=True))
    for collection in axes.collections:
        if isinstance(collection, PathCollection):
            yield _finite(collection.get_label(), *np.asarray(collection.get_offsets(), dtype=np.float64).T)
        elif isinstance(collection, PolyCollection):
            boxes = [path.get_extents() for path in collection.get_paths()]
            ends = [(x, (box.y0 + box.y1) / 2) for box in boxes for x in (box.x0, box.x1)]
            yield _finite(collection.get_label(), *zip(*ends, strict=True)) if ends else ()


def _finite(label: Any, x: Iterable[Any], y: Iterable[Any]) -> Iterator[Labelled]:
    name = str(label)
    if name and not name.startswith("_"):  # matplotlib's own name of a line that has none
        pairs = ((float(one), float(other)) for one, other in zip(x, y, strict=True))
        yield from ((name, *pair) for pair in pairs if all(map(math.isfinite, pair)))


def _thinned(line: list[Labelled]) -> list[Labelled]:
    if len(line) <= POINTS_MAX:
        return line
    return [line[place] for place in np.linspace(0, len(line) - 1, POINTS_MAX).round().astype(int)]


def _text(axis: XAxis | YAxis, value: float) -> str:
    """A value as it would be in a spreadsheet; on an axis of rows with names, the name."""
    write = axis.get_major_formatter()
    if isinstance(write, PercentFormatter):
        return f"{100 * value:.6g}"
    return f"{value:.{DIGITS}g}" if axis.label.get_text() else str(write(round(value, DIGITS)))  # rows lie at 0, 1, ...


def _title(axis: XAxis | YAxis) -> str:
    return axis.label.get_text().partition("\n")[0].replace("; logarithmic", "")
