"""The chart in a terminal begins and ends with the data, whatever ticks its axes have."""

import dataclasses
import math
import re

import numpy as np
import pytest

from edgebed.journal.series import Series
from edgebed.reports.run.text_chart_of_run import headline_chart

COLUMNS = 80


def evaluated(up, accuracy, down=None):
    """A series evaluated after so many bytes up and down, (E,) each."""
    empty, up = Series.empty(), np.array(up, dtype=np.int64)
    evaluations = dataclasses.replace(
        empty.evaluations, t=np.arange(len(up)) * 1.0, version=np.arange(len(up)), ingress_bytes=up, bits=8 * up,
        measured={"accuracy": np.array(accuracy, dtype=np.float64), "loss": np.ones(len(up))},
        final=np.arange(len(up)) == len(up) - 1,
        egress_bytes=3.0 * up if down is None else np.array(down, dtype=np.float64),
    )  # fmt: skip
    return dataclasses.replace(empty, evaluations=evaluations)


def saturating(seed):
    """A curve as training has it: from 2 to 60 evaluations, fast at first, with some noise at the end."""
    draw = np.random.default_rng(seed)
    count = int(draw.integers(2, 60))
    share = np.arange(1, count + 1) / count
    top, bottom = draw.uniform(0.6, 0.999), draw.uniform(0.05, 0.5)
    accuracy = top - (top - bottom) * np.exp(-share * draw.uniform(2, 40)) + draw.normal(0, 0.002, count)
    return evaluated((share * 10 ** draw.uniform(5, 9)).round(), np.clip(accuracy, 0, 1))


def marks(chart, symbol="x"):
    """Where marks are in the frame, as {(row, column)} from its top left corner, and the frame's height and width."""
    lines = chart.splitlines()
    top, bottom = (next(row for row, line in enumerate(lines) if edge in line) for edge in "┌└")
    left, right = lines[top].index("┌") + 1, lines[top].index("┐")
    inside = [line[left:right] for line in lines[top + 1 : bottom]]
    found = {(row, column) for row, line in enumerate(inside) for column, each in enumerate(line) if each == symbol}
    return found, len(inside), right - left


def ticks(chart):
    """The columns at which the axis of bytes has ticks, counted as marks are, with the bytes that stand there."""
    lines = chart.splitlines()
    bottom = next(row for row, line in enumerate(lines) if "└" in line)
    columns = [column - lines[bottom].index("└") - 1 for column, each in enumerate(lines[bottom]) if each == "┬"]
    texts = re.findall(r"([\d.]+) (k|M|G|)B", lines[bottom + 1])
    sizes = [float(number) * {"": 1e0, "k": 1e3, "M": 1e6, "G": 1e9}[unit] for number, unit in texts]
    return list(zip(columns, sizes, strict=True))


def ends_missing(series):
    """Which of the first and the last evaluation have no mark at their place, on axes that the data fill."""
    chart = headline_chart({"asgd": series}, columns=COLUMNS)
    found, height, width = marks(chart)
    x, y = np.log10(series.evaluations.traffic_bytes), series.evaluations.values
    row_of = (y.max() - y) / (y.max() - y.min()) * (height - 1)
    scale = (width - 1) / (x.max() - x.min())
    drawn = [math.log10(size) - column / scale for column, size in ticks(chart)]  # where each tick lets the axis begin
    is_true = all(abs(begin - x.min()) * scale <= 1.0 for begin in drawn)
    ends = {"first": (row_of[0], 0), "last": (row_of[-1], width - 1)}
    return [
        name
        for name, (row, column) in ends.items()
        if not is_true or not any(abs(at - row) <= 0.51 and there == column for at, there in found)
    ]


def test_every_chart_begins_and_ends_with_its_data():
    """Of 120 saturating curves, the first and the last point are drawn in the first and the last column."""
    assert {seed: missing for seed in range(120) if (missing := ends_missing(saturating(seed)))} == {}


def test_several_curves_share_axes_that_hold_them_all():
    """The cheap one begins the axis, the dear one ends it."""
    cheap, dear = evaluated([1e5, 4e5], [0.5, 0.99]), evaluated([2e6, 5e7], [0.3, 0.9])
    chart = headline_chart({"cheap": cheap, "dear": dear}, columns=COLUMNS)
    (first, height, width), (last, _, _) = marks(chart, "x"), marks(chart, "o")

    assert min(column for _, column in first) == 0
    assert max(column for _, column in last) == width - 1
    assert 0 in {row for row, _ in first}
    assert height - 1 in {row for row, _ in last}


@pytest.mark.parametrize(
    ("up", "accuracy"),
    [
        ([5e6], [0.5]),
        ([5e6], [1.0]),
        ([5e6, 5e6], [0.5, 0.5]),
        ([5e6, 5e6], [0.2, 0.9]),
        ([1e6, 5e6, 9e6], [0.5, 0.5, 0.5]),
        ([1e6, 9e6], [1.0, 1.0]),
        ([1e6, 9e6], [0.0, 0.0]),
        ([1e6, 9e6], [0.5, 0.5 + 1e-12]),
        ([10**9, 10**9 + 1], [0.9, 0.91]),
    ],
)
def test_a_range_without_length_neither_warns_nor_crashes(up, accuracy, capfd):
    """One point, equal values, 100 %: drawn, with nothing beside the chart on the terminal."""
    found, height, width = marks(headline_chart({"asgd": evaluated(up, accuracy)}, columns=COLUMNS))
    told = capfd.readouterr()

    assert found
    assert (told.out, told.err) == ("", "")
    if len(set(up)) > 1 and up[0] < 1e9:
        assert {column for _, column in found} == set(range(width))
    if len(set(accuracy)) == 1:
        assert {row for row, _ in found} <= {height // 2, (height - 1) // 2}


def test_the_axis_begins_where_the_data_do():
    """Not at a byte: four fifths of the width were empty once."""
    b = evaluated([155_000, 700_000, 5_300_000], [0.2, 0.6, 0.9], down=[0, 0, 0])
    chart = headline_chart({"b": b}, columns=COLUMNS)
    found, _, width = marks(chart)

    assert {column for _, column in found} == set(range(width))
    assert [text in chart for text in ("200 kB", "500 kB", "1 MB", "2 MB", "5 MB")] == [True] * 5


def test_the_bytes_are_those_of_both_ways():
    """What is cheap upwards alone is not shown as cheap; pushes alone are shown as what they are."""
    up, accuracy = [1e6, 2e6], [0.5, 0.9]
    both = headline_chart({"a": evaluated(up, accuracy, down=[9e6, 18e6])})
    alone = headline_chart({"a": evaluated(up, accuracy, down=[math.nan] * 2), "b": evaluated(up, accuracy)})

    assert "bytes up and down" in both
    assert "20 MB" in both
    assert "1 MB" in alone
    assert "bytes up: payload of the pushes alone" in alone


@pytest.mark.parametrize(("share", "is_drawn"), [(0.7, True), (0.95, True), (0.2, False)])
def test_the_most_frequent_class_is_a_level_line(share, is_drawn):
    """From edge to edge, under the curves; one below all of them would take their room."""
    curve = evaluated([1e6, 3e6, 9e6], [0.5, 0.6, 0.9])
    chart = headline_chart({"asgd": curve}, [share], columns=COLUMNS)
    rows = [line for line in chart.splitlines() if "│" in line and "---" in line]

    assert len(rows) == is_drawn
    assert ("- most frequent class" in chart) == is_drawn
    if not is_drawn:
        assert chart == headline_chart({"asgd": curve}, columns=COLUMNS)
