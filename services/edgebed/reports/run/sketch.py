"""The accuracy of a run's trials against their bytes, as a chart of characters."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotext

from edgebed.core.quantities import bytes_text
from edgebed.journal.series import Series

MARKERS = "xo+*#@"
COLOURS = ("blue+", "orange+", "green+", "magenta+", "cyan+", "red+")
CHART_ROWS = 18
TRAFFIC_LABEL = "bytes up and down: pushes and the models sent back (logarithmic)"
INGRESS_LABEL = "bytes up: payload of the pushes alone (logarithmic)"
AXIS_MIN = 0.01
"""Least length of an axis of the chart, in points of accuracy and in decades of bytes."""


def accuracy_chart(trials: Mapping[str, Series], *, columns: int = 80, colours: bool = False) -> str:
    """Test accuracy against the bytes that went up and down (logarithmic) in characters; "" without any point.

    The axes go from the lowest value to the highest. Where a trial's journal does not say what went down, all are
    drawn against the pushes alone. Without `colours` the text has no escape sequence at all, so that it can go to a
    file.
    """
    measured = {name: series.evaluations for name, series in trials.items() if series.evaluations.ingress_bytes.any()}
    is_known = all(np.isfinite(each.egress_bytes).all() for each in measured.values())
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for name, each in measured.items():
        x, y = each.traffic_bytes if is_known else each.ingress_bytes, each.accuracy
        seen = (x > 0) & np.isfinite(y)  # The initial model has cost nothing and has no place on a logarithmic axis.
        if seen.any():
            curves[name] = (np.log10(x[seen]).tolist(), (100 * y[seen]).tolist())
    if not curves:
        return ""
    figure = plotext.figure.clear()
    figure.plot_size(columns, CHART_ROWS).theme("colorless")
    key = []
    for index, (name, (logarithms, percents)) in enumerate(curves.items()):
        symbol = MARKERS[index % len(MARKERS)]
        pixel = plotext.pixel(COLOURS[index % len(COLOURS)]) if colours else plotext.pixel()
        signal = figure.signal(logarithms, percents, marker=plotext.marker(symbol, pixel))
        figure.draw(signal.lines())
        key.append(f"{symbol} {name}")
    low, high = _ends(value for x, _ in curves.values() for value in x)
    ticks = _decades(low, high)
    figure.ruler("x").ticks(ticks, [bytes_text(10**tick) for tick in ticks]).lim(*_axis(low, high))
    low, high = _ends(value for _, y in curves.values() for value in y)
    ticks = _nice_ticks(low, high)
    figure.ruler("y").ticks(ticks, [f"{tick:g}" for tick in ticks]).lim(*_axis(low, high))
    figure.label(TRAFFIC_LABEL if is_known else INGRESS_LABEL, "x")
    text = str(figure.build().string())
    lines = (text if colours else plotext.uncolorize(text)).rstrip().splitlines()
    return "\n".join([*_key_lines(key, columns), *(line.rstrip() for line in lines)])


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """The lowest and the highest value."""
    every = list(values)
    return min(every), max(every)


def _axis(low: float, high: float) -> tuple[float, float]:
    """The limits of an axis for data from `low` to `high`, which else take their ticks' place; never equal."""
    margin = max(0.0, AXIS_MIN - (high - low)) / 2
    return low - margin, high + margin


def _key_lines(key: Sequence[str], columns: int) -> list[str]:
    """The chart's subject and the mark of each trial, on as many lines as it takes."""
    lines = ["test accuracy (%)"]
    for entry in key:
        if len(lines[-1]) + 4 + len(entry) <= columns:
            lines[-1] += f"    {entry}"
        else:
            lines.append(f"    {entry}")
    return lines


def _nice_ticks(low: float, high: float) -> list[float]:
    """At most six round numbers between two percentages."""
    step = next(step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if (high - low) / step <= 6 or step == 20)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 1) for place in range(first, last + 1)] or [low]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten between two logarithms; thirds (1, 2, 5) where that would leave fewer than three."""
    steps = (0.0,) if high - low > 2.5 else (0.0, math.log10(2), math.log10(5))
    places = range(math.floor(low), math.ceil(high) + 1)
    return [place + step for place in places for step in steps if low <= place + step <= high] or [low, high]
