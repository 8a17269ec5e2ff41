"""Charts of a sweep against its axes: what a method took, a line a method, a chart for each value of the other axes.

Charts of the same quantity have the same vertical axis, so that one can be held against another.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from edgebed.reports.writing.figures import PALETTE, Chart, bytes_axis, line_style, time_axis
from edgebed.studies.sweep.points import Axis, axes_of
from edgebed.studies.sweep.sweep_result import PointResult, SweepResult
from edgebed.studies.sweep.winners import Spread

NOWHERE = Spread(mean=math.nan, low=math.nan, high=math.nan)
"""The spread of a method that does not reach the level: its line is broken there."""
LOGARITHMIC_MIN = 8.0
"""Least factor between the ends of an axis of numbers from which on it is logarithmic."""
MARGIN = 1.15
"""Factor by which a vertical axis goes beyond the lowest and the highest."""
TICKS_APART = 0.13
"""Least distance of two ticks, as a share of the axis."""
LEVEL_LETTERS = 40
"""Letters of all names of an axis that stand beside each other; more are written slantwise."""
BAND_ALPHA = 0.18


class Quantity(NamedTuple):
    """What a method took to the level."""

    title: str
    label: str
    """Title of the vertical axis, with the unit."""
    scale: Callable[[XAxis | YAxis, float, float], None]
    """A function that sets up a logarithmic axis from the lowest value to the highest."""


QUANTITIES: Mapping[str, Quantity] = {
    "time_s": Quantity("Time", "time (s, m, h; logarithmic)", time_axis),
    "traffic_bytes": Quantity("Bytes up and down", "up and down (bytes; logarithmic)", bytes_axis),
    "ingress_bytes": Quantity("Bytes up", "up (bytes; logarithmic)", bytes_axis),
    "egress_bytes": Quantity("Bytes down", "down (bytes; logarithmic)", bytes_axis),
    "cpu_s": Quantity("CPU seconds", "CPU time (s, m, h; logarithmic)", time_axis),
}
"""By measure, in the order of a page."""


def curves_of(result: SweepResult, measure: str, axis: Axis) -> list[Chart]:
    """The charts of a measure against an axis that show anything, one for each value of the other axes."""
    others = [each for each in axes_of(result.axes) if each.key != axis.key]
    charts = []
    for fixed in product(*(each.values for each in others)):
        where = dict(zip((each.key for each in others), fixed, strict=True))
        points = [point for point in result.points if where.items() <= point.values.items()]
        title = (
            f"{QUANTITIES[measure].title} to the {result.measure.words} against {axis.label}{where_text(others, fixed)}"
        )
        charts.append(Chart(title, _plot(result, measure, axis, points), len(result.methods)))
    return [chart for chart in charts if chart.svg]


def where_text(axes: Sequence[Axis], values: Sequence[str]) -> str:
    """Where a chart's points are, for its title, e.g. `, count 4`."""
    return "".join(f", {axis.label} {value}" for axis, value in zip(axes, values, strict=True))


def places_of(axis: Axis) -> tuple[list[float], str]:
    """The place of each value on the axis, and its scale: log or linear; values without a number are equally far apart.

    Numbers are in the order of the axis, whatever theirs is.
    """
    numbers = [float(rate) for rate in axis.rates_bit_s] if axis.is_rate else list(_numbers(axis.values))
    if len(numbers) < len(axis.values):
        return [float(place) for place in range(len(axis.values))], "linear"
    is_wide = min(numbers) > 0.0 and max(numbers) / min(numbers) >= LOGARITHMIC_MIN
    return numbers, "log" if axis.is_rate or is_wide else "linear"


def _numbers(values: Sequence[str]) -> Iterator[float]:
    for value in values:
        try:
            number = float(value)
        except ValueError:
            continue
        if math.isfinite(number):
            yield number


def _plot(result: SweepResult, measure: str, axis: Axis, points: Sequence[PointResult]) -> Callable[[Axes], None]:
    quantity = QUANTITIES[measure]
    known = [spread for point in result.points if (spread := getattr(point, measure))]
    places, scale = places_of(axis)

    def plot(axes: Axes) -> None:
        order = sorted(range(len(places)), key=places.__getitem__)
        for index, method in enumerate(result.methods):
            of = {point.values[axis.key]: getattr(point, measure) for point in points if point.method == method}
            spreads = [of.get(axis.values[place]) or NOWHERE for place in order]
            if all(each is NOWHERE for each in spreads):
                continue
            x = [places[place] for place in order]
            axes.plot(x, [each.mean for each in spreads], label=method, **line_style(index, len(x)))
            if result.seeds > 1:
                low, high = [each.low for each in spreads], [each.high for each in spreads]
                colour = PALETTE[index % len(PALETTE)]
                axes.fill_between(x, low, high, color=colour, alpha=BAND_ALPHA, linewidth=0)
        if not known:
            return
        axes.set_yscale("log")
        low, high = min(each.low for each in known) / MARGIN, max(each.high for each in known) * MARGIN
        axes.set_ylim(low, high)
        quantity.scale(axes.yaxis, low, high)
        axes.set_ylabel(quantity.label)
        axes.set_xscale(scale)
        _name_places(axes, axis, places, scale)

    return plot


def _name_places(axes: Axes, axis: Axis, places: Sequence[float], scale: str) -> None:
    """Ticks at the values, as they were set, as far as they do not run into each other."""
    measure = math.log if scale == "log" else float
    length = (measure(max(places)) - measure(min(places))) or 1.0
    kept: list[tuple[float, str]] = []
    for place, value in sorted(zip(places, axis.values, strict=True)):
        if not kept or measure(place) - measure(kept[-1][0]) >= TICKS_APART * length:
            kept.append((place, value))
    axes.xaxis.set_major_locator(FixedLocator([place for place, _ in kept]))
    axes.xaxis.set_major_formatter(FixedFormatter([value for _, value in kept]))
    axes.xaxis.set_minor_locator(NullLocator())
    if sum(len(value) for _, value in kept) > LEVEL_LETTERS:
        axes.tick_params(axis="x", labelrotation=20)
    unit = "bits a second" if axis.is_rate else "as set"
    axes.set_xlabel(f"{axis.key} ({unit}{'; logarithmic' * (scale == 'log')})")
