"""A chart in all its forms: in a page, as a file, and for papers."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from edgebed.core.errors import InfrastructureError
from edgebed.core.quantities import bytes_text
from edgebed.reports.writing.figures import (
    INK,
    PRINTED_INK,
    SIZE,
    Chart,
    bytes_axis,
    numbered,
    time_axis,
    write_figures,
)
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.page import Figures, Page


def line(title="A line, 50 %", names=("a",), size=SIZE):
    """A chart with a line for each name."""

    def plot(axes):
        for index, name in enumerate(names):
            axes.plot([0, 1], [0, index], label=name)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("height (m)")

    return Chart(title, plot, len(names), size)


NOTHING = Chart("Nothing", lambda axes: None)


def test_figures_for_papers_are_dark_on_white_and_need_no_font(tmp_path):
    """An SVG whose letters are outlines, and a PNG of 300 dots an inch; the same each time."""
    assert len(write_figures(tmp_path / "figures", [line(), NOTHING])) == 2
    svg = (tmp_path / "figures/a-line-50.svg").read_text()
    png = (tmp_path / "figures/a-line-50.png").read_bytes()

    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["a-line-50.png", "a-line-50.svg"]
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "<text" not in svg
    assert "currentColor" not in svg
    assert (INK in svg, PRINTED_INK in svg) == (False, True)
    assert png.startswith(b"\x89PNG")
    assert [int.from_bytes(png[at : at + 4]) for at in (16, 20)] == [round(300 * side) for side in SIZE]
    again = line()
    assert (again.printed_svg(), again.printed_png()) == (svg.encode(), png)


@pytest.mark.parametrize(("most", "labels"), [(20_000, {"0", "10,000"}), (2_000, {"0", "1000"}), (0.5, {"0.2", "0.4"})])
def test_large_numbers_of_an_axis_are_written_as_in_tables(most, labels):
    """With commas; small ones as they are, and axes that say how theirs are written."""

    def plot(axes):
        axes.plot([0, most], [0, most])
        axes.yaxis.set_major_formatter("{x:.0f} m")

    texts = set(re.findall(r">([^<>]+)</text>", Chart("x", plot).svg))

    assert labels <= texts
    assert f"{most:.0f} m" in texts or most < 1


def test_a_folder_for_figures_that_cannot_be_made_is_one_error(tmp_path):
    """With what to do."""
    with pytest.raises(InfrastructureError, match=r"no/such: cannot be made: .*; choose another --figures"):
        write_figures(tmp_path / "no/such", [line()])


def test_an_axis_title_can_be_found_in_a_page():
    """By its class; ids would be there twice."""
    svg = line().svg

    assert len(re.findall('class="axis-title"', svg)) == 2
    assert "axis-title" not in re.findall(r'id="([^"]*)"', svg)


def test_a_legend_has_as_many_columns_as_fit():
    """Long names make more rows, and a wider chart where even one does not fit."""
    height = {}
    for length in (3, 20, 90):
        drawn = ET.fromstring(line(names=[f"{k}".ljust(length, "x") for k in range(6)]).svg)
        _, _, width, height[length] = map(float, drawn.attrib["viewBox"].split())
        assert (width > 72 * SIZE[0] + 1) == (length == 90)
    assert 72 * SIZE[1] < height[3] < height[20] < height[90]


def test_names_longer_than_a_chart_leave_room_for_what_it_shows():
    """They are cut off at the left, and no error."""

    def plot(axes):
        axes.plot([0, 1], [0, 1], label="a")
        axes.set_yticks([0, 1], ["x" * 100, "y"])

    first, last = Chart("Long", plot).data.points
    assert last.at[0] - first.at[0] > 0.1 * 72 * SIZE[0]


def test_a_page_shows_what_there_is_to_show():
    """A wide chart has a row of its own."""
    text = to_html(Page(name="tiny", parts=[Figures([line("Narrow <x>"), NOTHING, line("Wide", size=(9.0, 3.0))])]))

    assert text.count("<svg") == 2
    assert "<figcaption>Narrow &lt;x&gt;</figcaption>" in text
    assert "<figure class=whole><figcaption>Wide" in text
    assert "<figure" not in to_html(Page(name="tiny", parts=[Figures([NOTHING])]))


@pytest.mark.parametrize("most", [12_000, 16_000, 18_750, 250_000, 900_000])
def test_large_numbers_do_not_touch_each_other(most):
    """On an axis along which they stand side by side."""

    def plot(axes):
        axes.plot([0, most], [0, 1])

    texts = re.findall(r">([0-9,]+)</text>", Chart("x", plot).svg)
    along = [text for text in texts if "," in text]
    assert 2 <= len(along) <= 6


@pytest.mark.parametrize("high", [1.2e6, 1.5e6, 4e6, 6e6, 3e7, 9e7, 1e9, 1e12])
def test_ticks_of_bytes_are_few_and_there(high):
    """Over any range."""
    axes = Figure().add_subplot()
    axes.set_xscale("log")
    axes.set_xlim(1e6, high)
    bytes_axis(axes.xaxis, 1e6, high)
    shown = [tick for tick in axes.xaxis.get_majorticklocs() if 1e6 <= tick <= high]

    assert 2 <= len(shown) <= 7
    assert axes.xaxis.get_major_formatter()(shown[0]) == bytes_text(shown[0])


@given(st.floats(1e-3, 1e6), st.floats(1.02, 1e4))
def test_a_logarithmic_axis_of_times_has_two_ticks_at_least(low, factor):
    """Also within a decade, where round times may be none; each has another text."""
    axes = Figure().add_subplot()
    high = low * factor
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    time_axis(axes.yaxis, low, high)
    shown = [tick for tick in axes.yaxis.get_majorticklocs() if low <= tick <= high]

    assert 2 <= len(shown) <= 12
    assert len({axes.yaxis.get_major_formatter()(tick) for tick in shown}) == len(shown)


def test_charts_whose_names_are_the_same_are_all_written(tmp_path):
    """Later ones are numbered; a number that is taken is passed over, and a chart of nothing takes none."""
    titles = ("lr-01: nodes", "lr_01: nodes", "LR 01: Nodes", "lr-01: nodes 2")

    assert len(write_figures(tmp_path, [NOTHING, *map(line, titles), NOTHING])) == 8
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == [
        "lr-01-nodes-2-2.svg",
        "lr-01-nodes-2.svg",
        "lr-01-nodes-3.svg",
        "lr-01-nodes.svg",
    ]
    assert len(list(tmp_path.glob("*.png"))) == 4


@given(st.lists(st.sampled_from(["a", "a-2", "a-2-2", "a-3", "b"]), max_size=12))
def test_numbered_names_are_all_different(names):
    """Each begins as it did, and the first stays as it is."""
    made = numbered(names)

    assert len(set(made)) == len(names) == len(made)
    assert all(new == old or new.startswith(f"{old}-") for old, new in zip(names, made, strict=True))
    assert made[:1] == names[:1]
