"""The headline of a run's trials against their bytes, as a chart of characters."""

import math
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from edgebed.core.measures.task import TaskMeasure
from edgebed.core.quantities import bytes_text, number_text
from edgebed.journal.series import Floats, Series
from edgebed.reports.run.trial_measures import (
    ValueRange,
    headline_of,
    most_frequent_label,
    selects_by,
    told_alike,
    value_range,
)
from edgebed.reports.writing.text_chart import Axis, Line, chart_lines

MARKERS = "xo+*#@"
LEVEL = "-"
"""Mark of a level line."""
COLOURS = (94, 93, 92, 95, 96, 91)
"""What escape sequences call bright blue, yellow, green, magenta, cyan and red."""
CHART_ROWS = 14
"""Rows inside the frame."""
TRAFFIC_LABEL = "bytes up and down: pushes and the models sent back (logarithmic)"
INGRESS_LABEL = "bytes up: payload of the pushes alone (logarithmic)"
AXIS_MIN = 0.01
"""Least length of an axis of the chart: in points, in decades, and of other values as a share of the largest."""
NARROW_DECADES = 1.0
"""Decades below which a logarithmic axis has ticks at equal distances of the values."""


def headline_chart(
    trials: Mapping[str, Series], most_frequent: Collection[float] = (), *, columns: int = 80, colours: bool = False
) -> str:
    """The headline against the bytes that went up and down (logarithmic) in characters; "" without any point.

    The axes go from the lowest value to the highest. `most_frequent`: shares of test sets' most frequent classes, each
    a level line where it is not below all else. Where a trial's journal does not say what went down, all are
    drawn against the pushes alone. Without `colours` the text has no escape sequence at all, so that it can go to a
    file.
    """
    trials = told_alike(trials)
    measured = {name: series.evaluations for name, series in trials.items() if series.evaluations.ingress_bytes.any()}
    is_known = all(np.isfinite(each.egress_bytes).all() for each in measured.values())
    headline, part = headline_of(trials.values()), selects_by(trials.values())
    found: dict[str, tuple[Floats, Floats]] = {}
    for name, each in measured.items():
        x, y = each.traffic_bytes if is_known else each.ingress_bytes, each.values
        seen = (x > 0) & np.isfinite(y)  # The initial model has cost nothing and has no place on a logarithmic axis.
        if seen.any():
            found[name] = np.log10(x[seen]), y[seen]
    shown = value_range(headline, (value for _, y in found.values() for value in y.tolist()))
    if shown is None:
        return ""
    scale = 100 if headline.is_share else 1

    def heights(values: Floats) -> list[float]:
        drawn = np.log10(values) if shown.is_log else scale * np.maximum(values, shown.low)
        return [float(height) for height in drawn]

    curves = {name: list(zip(x.tolist(), heights(y), strict=True)) for name, (x, y) in found.items()}
    lines, key = [], []
    for index, (name, points) in enumerate(curves.items()):
        symbol = MARKERS[index % len(MARKERS)]
        colour = COLOURS[index % len(COLOURS)]
        lines.append(Line(f"\x1b[{colour}m{symbol}\x1b[0m" if colours else symbol, points))
        key.append(f"{symbol} {name}")
    x_low, x_high = _ends(x for points in curves.values() for x, _ in points)
    y_low, y_high = _ends(y for points in curves.values() for _, y in points)
    levels = heights(np.array([share for share in most_frequent if share >= shown.low]))
    if levels:
        y_high = max(y_high, *levels)
        lines = [*(Line(LEVEL, [(x_low, y), (x_high, y)]) for y in levels), *lines]
        key.append(f"{LEVEL} {most_frequent_label(part)}")
    chart = chart_lines(
        lines,
        Axis(*_limits(x_low, x_high, AXIS_MIN), [(tick, bytes_text(10**tick)) for tick in _decades(x_low, x_high)]),
        _value_axis(y_low, y_high, shown, headline),
        columns=columns,
        rows=CHART_ROWS,
    )
    label = TRAFFIC_LABEL if is_known else INGRESS_LABEL
    below = (line.center(columns).rstrip() for line in textwrap.wrap(label, columns))
    subject = f"{part} {headline.titled_unit}"
    return "\n".join([*_key_lines(subject, key, columns), *chart, *below])


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """The lowest and the highest value."""
    every = list(values)
    return min(every), max(every)


def _value_axis(low: float, high: float, shown: ValueRange, headline: TaskMeasure) -> Axis:
    """The axis of heights from `low` to `high`."""
    if shown.is_log:
        is_narrow = high - low < NARROW_DECADES
        ticks = [math.log10(tick) for tick in _nice_ticks(10**low, 10**high, 0.0)] if is_narrow else _decades(low, high)
        return Axis(*_limits(low, high, AXIS_MIN), [(tick, number_text(10**tick)) for tick in ticks])
    least, apart = (AXIS_MIN, 0.1) if headline.is_share else (AXIS_MIN * (abs(high) or 1.0), 0.0)
    return Axis(*_limits(low, high, least), [(tick, f"{tick:g}") for tick in _nice_ticks(low, high, apart)])


def _limits(low: float, high: float, least: float) -> tuple[float, float]:
    """The ends of an axis of the length `least` at least, for data from `low` to `high`."""
    margin = max(0.0, least - (high - low)) / 2
    return low - margin, high + margin


def _key_lines(subject: str, key: Sequence[str], columns: int) -> list[str]:
    """The chart's subject and the mark of each trial, on as many lines as it takes."""
    lines = [subject]
    for entry in key:
        if len(lines[-1]) + 4 + len(entry) <= columns:
            lines[-1] += f"    {entry}"
        else:
            lines.append(f"    {entry}")
    return lines


def _nice_ticks(low: float, high: float, least: float) -> list[float]:
    """At most six round numbers between two values, `least` apart at least."""
    steps = (float(f"{digit}e{power}") for power in range(-9, 309) for digit in (1, 2, 5))
    step = next(step for step in steps if step >= least and (high - low) / step <= 6)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 9) for place in range(first, last + 1)] or [low]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten between two logarithms; thirds (1, 2, 5) where that would leave fewer than three."""
    steps = (0.0,) if high - low > 2.5 else (0.0, math.log10(2), math.log10(5))
    places = range(math.floor(low), math.ceil(high) + 1)
    return [place + step for place in places for step in steps if low <= place + step <= high] or [low, high]
