"""The charts of a trial's nodes: what they are made from, and that they are deterministic and about something."""

import dataclasses
import itertools
import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import make_plan

from edgebed.core import records
from edgebed.journal.series import Series
from edgebed.journal.series_faults import TimedFault
from edgebed.journal.verdict.measured import DirectionConditions, NodeConditions
from edgebed.reports.run.charts import AXES
from edgebed.reports.run.trial_charts import (
    COLOURS,
    COLUMNS,
    DOWN,
    ROWS_MAX,
    SILENT,
    SINCE_LAUNCH,
    STATES,
    TICKS_APART,
    UP,
    _apart,
    _rows,
    _spans,
    joined,
    links,
    timeline,
)

END_S = 100.0
CHANGES = st.lists(
    st.tuples(st.floats(-10.0, END_S), st.sampled_from(["edge-0", "phone-1"]), st.sampled_from(list(STATES))),
    max_size=12,
)


def series_of(changes=(), faults=()):
    """What a journal with these changes of states, and these faults, tells."""
    nodes = tuple(
        (t, records.Node(name=name, state=state)) for t, name, state in sorted(changes, key=lambda each: each[0])
    )
    done = tuple(
        TimedFault(t, records.Fault(name="f", action=action, target=node, asked_s=t), t) for t, action, node in faults
    )
    return dataclasses.replace(Series.empty(), nodes=nodes, faults=done, last_t=END_S)


@given(CHANGES)
def test_a_node_is_in_one_state_at_a_time_until_its_end(changes):
    """Spans of a node touch and never overlap; the last of one that did not stop in order goes on to the end."""
    for name, spans in _spans(series_of(changes)).items():
        assert all(begin <= end for begin, end, _ in spans)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
        assert all(look in COLOURS for _, _, look in spans)
        *_, (_, state) = ((t, node.state) for t, node in series_of(changes).nodes if node.name == name)
        assert (spans[-1][1] == END_S) or not STATES[state]


@given(CHANGES, st.integers(1, 3 * ROWS_MAX))
def test_every_node_is_in_one_row_and_rows_are_few(changes, count):
    """However many nodes there are; those to which something happened come first."""
    workers = tuple(f"edge-{index}" for index in range(count))
    plan = make_plan(workers=workers)
    changes = [*((0.0, name, "running") for name in ("server", *workers)), *changes]
    series = series_of(changes)
    spans = _spans(series)
    rows = _rows(plan, series, spans)

    shown = [name for members in rows.values() for name in members]
    assert sorted(shown) == sorted(node.node for node in plan.nodes if node.node in spans)
    assert len(rows) <= ROWS_MAX


def test_what_happened_is_drawn():
    """A death, a silence and two faults have their colours and marks, and names as text."""
    changes = [(0.0, "edge-0", "running"), (0.0, "phone-1", "running"), (30.0, "edge-0", "died"),
               (40.0, "phone-1", "unresponsive"), (50.0, "phone-1", "running")]  # fmt: skip
    series = series_of(changes, [(30.0, "kill", "edge-0"), (38.0, "freeze", "phone-1")])
    svg = timeline("x", make_plan(), series).svg

    texts = set(re.findall(r">([^<>]+)</text>", svg))
    assert {"edge-0", "phone-1", "kill", "freeze", UP, SILENT, DOWN} <= texts
    assert all(colour in svg for colour in COLOURS.values())
    assert svg == timeline("x", make_plan(), series).svg
    assert ET.fromstring(svg).tag.endswith("svg")


@pytest.mark.parametrize(("training_s", "axis"), [(2.0, AXES["time"]), (None, SINCE_LAUNCH)])
def test_the_axis_says_what_its_times_count_from(training_s, axis):
    """The start of training; the launch where that never came."""
    changes = [(1.0, "edge-0", "started"), (30.0, "edge-0", "died")]
    svg = timeline("x", make_plan(), dataclasses.replace(series_of(changes), training_s=training_s)).svg

    assert [text for text in re.findall(r">([^<>]+)</text>", svg) if "since" in text] == [axis]


@given(st.sets(st.floats(1e3, 1e10), min_size=1, max_size=20))
def test_rates_with_a_tick_are_apart(rates):
    """The lowest has one; the others as far as there is room."""
    width = math.log(max(rates) / min(rates)) + 1.0
    ticks = _apart(rates, width)

    assert ticks[0] == min(rates)
    assert set(ticks) <= rates
    least = TICKS_APART * width
    assert all(math.log(after / before) >= least for before, after in itertools.pairwise(ticks))
    assert all(any(0 <= math.log(rate / tick) < least for tick in ticks) for rate in rates)


def test_nothing_is_drawn_of_nothing():
    """No node, no time, or no limited link."""
    assert timeline("x", make_plan(), series_of()).svg == ""
    assert timeline("x", make_plan(), Series.empty()).svg == ""
    assert links("x", []).svg == ""


def conditions(node, asked, measured, *, low=None, role="worker"):
    """A node whose uplink was so fast."""
    way = DirectionConditions(
        direction="up", asked_low_bit_s=low or asked, asked_high_bit_s=asked, measured_bit_s=measured
    )
    return NodeConditions(
        node=node, role=role, device_class="edge", uplink=way, downlink=DirectionConditions(direction="down")
    )


@pytest.mark.parametrize(
    ("row", "points"),
    [
        (conditions("edge-0", 16_000_000, 15_500_000.0), 1),
        (conditions("edge-0", 16_000_000, None), 0),
        (conditions("edge-0", 16_000_000, 1.0, low=1_000_000), 0),
        (conditions("server", 16_000_000, 1.0, role="server"), 0),
    ],
    ids=["measured", "not measured", "of many rates", "shared by all"],
)
def test_links_with_one_rate_that_was_measured_are_drawn(row, points):
    """Others would be a point that says nothing."""
    svg = links("x", [row]).svg
    assert bool(svg) == bool(points)
    if points:
        assert "16 Mbit/s" in svg or "16" in svg
        assert {"uplink", "downlink"} & set(re.findall(r">([^<>]+)</text>", svg)) == {"uplink"}


@given(st.lists(st.tuples(st.floats(-10.0, 100.0), st.floats(0.0, 20.0))), st.floats(0.0, 5.0))
def test_spans_that_cannot_be_told_apart_are_drawn_as_one(given_spans, apart_s):
    """What is left is apart, begins with the start of training, and covers what was given and no wider gap."""
    spans = [(begin, max(0.0, begin) + length) for begin, length in given_spans]
    found = joined(spans, apart_s)

    assert all(after[0] - before[1] >= apart_s for before, after in itertools.pairwise(found))
    assert all(any(first <= max(0.0, begin) and end <= last for first, last in found) for begin, end in spans)
    ends = {0.0, *(end for _, end in spans)}
    assert all(last in ends and first in {0.0, *(begin for begin, _ in spans)} for first, last in found)


def pieces_of(count: int) -> int:
    """What is drawn of a node that leaves so often, in all the time."""
    times = [END_S * k / (2 * count) for k in range(2 * count)]
    lives = [(t, "edge-0", "died" if k % 2 else "running") for k, t in enumerate(times)]
    kills = [(t, "kill", name) for t, name, state in lives if state == "died"]
    svg = timeline("x", make_plan(), series_of(lives, kills)).svg
    return svg.count("<use") + svg.count("<path")


def test_a_day_of_churn_is_drawn_with_as_many_pieces_as_can_be_seen():
    """However often a node leaves, it has no more pieces and marks than there are columns."""
    assert pieces_of(6 * COLUMNS) <= pieces_of(2 * COLUMNS) <= 2 * COLUMNS
