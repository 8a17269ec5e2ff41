"""Curves of arms: the mean over seeds in a band from the lowest to the highest."""

import numpy as np
import pytest
from finished_runs import write_journal
from hypothesis import given
from hypothesis import strategies as st

from edgebed.journal.series import Series
from edgebed.reports.studies.curves import BAND_ALPHA, SEED_ALPHA, MeanBand, curve, curves_chart
from edgebed.studies.measures import moving_average

OVER = ("updates", "traffic", "ingress", "egress", "time")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Makes the series of a trial that measured accuracies after 0, 100, ... updates."""

    def make(*accuracies, push_bytes=10):
        path = tmp_path_factory.mktemp("curve") / "events.jsonl"
        write_journal(path, accuracies, push_bytes)
        return Series.from_journal(path)

    return make


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ("updates", [0, 100, 200]),
        ("ingress", [1000, 2000]),
        ("time", [0, 1, 2]),
        ("traffic", [4000, 8000]),
        ("egress", [3000, 6000]),
    ],
)
def test_one_seed_is_drawn_as_it_was_measured(measured, over, expected):
    """Its own places, without the initial model where the axis is logarithmic; its band is the line."""
    line = curve([measured(0.1, 0.8, 0.9)], over)
    assert line.x.tolist() == expected
    assert line.mean.tolist() == [0.1, 0.8, 0.9][-len(expected) :]
    assert line.low.tolist() == line.mean.tolist() == line.high.tolist()


def test_examples_are_updates_times_what_one_stands_for(measured):
    """Where that is not known there is no curve."""
    assert curve([measured(0.1, 0.8, 0.9)], "examples", examples_per_update=140.0).x.tolist() == [0, 14_000, 28_000]
    assert curve([measured(0.1, 0.8, 0.9)], "examples") is None


def test_the_line_is_the_mean_and_the_band_the_extremes(measured):
    """At each place that all seeds were evaluated at."""
    line = curve([measured(0.1, 0.8), measured(0.2, 0.9), measured(0.3, 0.7)], "updates")
    assert line.x.tolist() == [0, 100]
    assert (line.low.tolist(), line.high.tolist()) == ([0.1, 0.7], [0.3, 0.9])
    assert line.mean == pytest.approx([0.2, 0.8])


def test_the_line_goes_as_far_as_every_seed(measured):
    """A seed that stopped early does not make the mean jump."""
    assert curve([measured(0.1, 0.8, 0.9), measured(0.2, 0.6)], "updates").x.tolist() == [0, 100]


def test_seeds_that_were_measured_elsewhere_are_interpolated(measured):
    """On the axis as it is drawn: halfway between 1 and 4 kB is 2 kB."""
    coarse, fine = measured(0.1, 0.5, 0.9, push_bytes=20), measured(0.1, 0.5, 0.5, 0.5, 0.9)
    line = curve([coarse, fine], "ingress")
    assert line.x.tolist() == [2000, 3000, 4000]
    share = np.log(3000 / 2000) / np.log(4000 / 2000)
    assert line.high == pytest.approx([0.5, 0.5 + 0.4 * share, 0.9])
    assert line.low == pytest.approx([0.5, 0.5, 0.9])


@pytest.mark.parametrize("over", OVER)
def test_what_was_never_evaluated_has_no_curve(measured, over):
    """And a chart of nothing is nothing."""
    assert curve([], over) is None
    assert curve([Series.empty()], over) is None
    assert curves_chart("x", {"asgd": [Series.empty()]}, over).svg == ""
    assert curves_chart("x", {"asgd": []}, over).printed_png() == b""


@given(st.lists(st.integers(0, 1000).map(lambda right: right / 1000), min_size=2, max_size=8), st.integers(1, 5))
def test_the_line_is_the_moving_average(measured, accuracies, window):
    """That of the window asked for."""
    line = curve([measured(*accuracies)], "updates", window)
    assert line.mean == pytest.approx(moving_average(np.array(accuracies), window))


@pytest.mark.parametrize("over", OVER)
def test_a_chart_has_a_line_for_each_arm_and_a_band_for_several_seeds(measured, over):
    """The same each time; accuracies of 0 and 1 have their place on the axis of the error."""
    arms = {"asgd $x$": [measured(0.0, 0.8), measured(0.1, 1.0)], "adacomp": [measured(0.1, 0.9)]}
    svg = curves_chart("x", arms, over).svg
    assert svg.startswith("<svg")
    assert ("asgd $x$" in svg, "adacomp" in svg) == (True, True)
    assert svg.count(f"fill-opacity: {BAND_ALPHA}") == 1
    assert svg.count(f"stroke-opacity: {SEED_ALPHA}") == 2
    assert svg == curves_chart("x", arms, over).svg
    assert "nan" not in svg.lower().split("</style>")[-1]


def test_a_long_line_is_thinned_out(measured):
    """The first and the last place stay."""
    rising = [0.1 + 0.0008 * place for place in range(1000)]
    line = curve([measured(*rising)], "updates")
    assert isinstance(line, MeanBand)
    assert (len(line.x), line.x[0], line.x[-1]) == (400, 0, 99_900)


def test_the_axis_says_half_a_per_cent_where_it_means_that(measured):
    """Not 100 %, which a logarithm of the error has no place for."""
    drawn = curves_chart("x", {"good": [measured(0.1, 0.98, 0.996)]}, "updates").svg
    assert ">99.5<" in drawn


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.915, 0.964, ("92", "94", "96")), (0.59, 0.74, ("60", "65", "70")), (0.9921, 0.9945, ("99.3", "99.4"))],
)
def test_a_narrow_range_has_ticks_enough(measured, low, high, ticks):
    """Where the usual ones are one or two, those of a smaller step."""
    drawn = curves_chart("x", {"asgd": [measured(low, high)]}, "updates").svg
    assert [tick for tick in ticks if f">{tick}<" not in drawn] == []
