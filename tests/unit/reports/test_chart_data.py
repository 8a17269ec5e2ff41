"""A chart's numbers: what is drawn, in the units of its axes, and where in the SVG it is."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from edgebed.reports.run import charts
from edgebed.reports.writing.chart_data import POINTS_MAX, ChartData, read_axes
from edgebed.reports.writing.figures import Chart, percent_axis
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.page import Figures, Page


def data_of(plot):
    """The data of a chart made by this function."""
    return Chart("x", plot).data


def rows(axes):
    """Spans in the rows of three nodes, as the chart of nodes draws them."""
    for place in range(3):
        axes.broken_barh([(0, 1)], (place - 0.7 / 2, 0.7), label="up")
    axes.set_yticks(range(3), ["server", "evaluator", "edge-0"])


def curve(axes):
    """Two lines of which one has no name, with a point that cannot be drawn."""
    axes.plot([1, 2, 3], [0.5, np.nan, 0.25], label="a")
    axes.plot([0, 9], [0, 1])
    axes.set_xlabel("up: pushes (bytes; logarithmic)")
    axes.set_ylabel("test accuracy (%)\nlogarithmic in the error")
    percent_axis(axes.yaxis)


def test_the_data_are_what_is_drawn_in_the_units_of_the_axes():
    """Per cent for fractions; without what has no name and without what is not finite."""
    data = data_of(curve)

    assert (data.x_title, data.y_title) == ("up: pushes (bytes)", "test accuracy (%)")
    assert [point[:3] for point in data.points] == [("a", "1", "50"), ("a", "3", "25")]
    assert not data.is_thinned


def test_a_point_is_where_its_marker_is(sample_run):
    """Each has a marker in the SVG within half a dot."""
    chart = charts.over_updates({"asgd": sample_run.trials["asgd"].series})
    markers = [
        (float(x), float(y)) for x, y in re.findall(r'<use xlink:href="#[^"]*" x="([0-9.]+)" y="([0-9.]+)"', chart.svg)
    ]

    assert len(chart.data.points) == len(sample_run.trials["asgd"].series.evaluations) > 10
    for point in chart.data.points:
        assert min(abs(x - point.at[0]) + abs(y - point.at[1]) for x, y in markers) <= 0.5


@pytest.mark.parametrize(
    ("plot", "points"),
    [
        (lambda axes: axes.stairs([3, 5], [0, 2, 4], label="s"), [("s", "1", "3"), ("s", "3", "5")]),
        (lambda axes: axes.barh(["row"], [7.5], label="b"), [("b", "7.5", "row")]),
        (lambda axes: axes.scatter([1], [2], label="m"), [("m", "1", "2")]),
        (lambda axes: axes.broken_barh([(1, 3)], (0, 2), label="t"), [("t", "1", "1"), ("t", "4", "1")]),
        (lambda axes: axes.axhline(1.0), []),
        (lambda axes: axes.stairs([3, 5], [0, 2, 4], fill=True), []),
        (rows, [("up", x, name) for name in ("server", "evaluator", "edge-0") for x in "01"]),
    ],
    ids=["steps", "bars", "markers", "spans", "a line to compare with", "a filled area", "rows"],
)
def test_whatever_has_a_name_is_data(plot, points):
    """Of a span both ends; a row without a title upwards has its name."""

    def titled(axes):
        plot(axes)
        axes.set_xlabel("x")
        axes.set_ylabel("" if points and points[0][2] in ("row", "server") else "y")

    assert [point[:3] for point in data_of(titled).points] == points


def test_a_long_line_is_thinned():
    """Both its ends are kept, and the page says so."""
    chart = Chart("x", lambda axes: axes.plot(range(5 * POINTS_MAX), range(5 * POINTS_MAX), label="long"))
    axes = Figure().add_subplot()
    chart.plot(axes)
    axes.set_xlabel("x")

    found = read_axes(axes)
    assert found.is_thinned
    assert len(found.points) == POINTS_MAX
    assert (found.points[0].x, found.points[-1].x) == ("0", f"{5 * POINTS_MAX - 1}")
    assert f"Data, {POINTS_MAX} points a line" in to_html(Page(name="x", parts=[Figures([chart])]))


def test_a_chart_without_names_has_no_data():
    """Nor has one of nothing; neither has a table."""
    nameless = Chart("x", lambda axes: axes.plot([0, 1], [0, 1]))

    assert nameless.data.points == ()
    assert Chart("x", lambda axes: None).data == ChartData()
    assert "<details" not in to_html(Page(name="x", parts=[Figures([nameless])]))


def test_the_data_of_a_chart_are_below_it():
    """Folded, a row a point, each with its place; names from outside stay text."""
    text = to_html(Page(name="x", parts=[Figures([Chart("c", lambda axes: axes.plot([0], [1], label="<i>"))])]))

    assert re.search(r'<tr data-at="[0-9.]+ [0-9.]+"><td>&lt;i&gt;</td><td>', text)
    assert "<details class=data><summary>Data</summary>" in text
    assert "<script>" not in to_html(Page(name="x", parts=[]))
