"""Rates are max-min fair: against progressive filling as it is defined, and by the laws that define it."""

import itertools
import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.framing import ACK_SHARE
from edgebed.emulation.model.fair_share import Path, fair_rates, shared_rates

Way = str
MBYTE = 1e6

capacities = st.lists(st.floats(1.0, 1e8), min_size=1, max_size=8).map(
    lambda rates: {f"lane-{k}": rate for k, rate in enumerate(rates)}
)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[tuple[Way, ...]], dict[Way, float]]:
    """Messages that cross up to two lanes each."""
    lanes = draw(capacities)
    crossed = st.lists(st.sampled_from(sorted(lanes)), min_size=1, max_size=2, unique=True).map(tuple)
    return draw(st.lists(crossed, min_size=1, max_size=20)), lanes


@st.composite
def nodes(draw: st.DrawFn) -> tuple[list[Path], dict[Way, float]]:
    """Messages between nodes that have a lane in each direction, with acknowledgements."""
    count = draw(st.integers(2, 6))
    lanes = {(k, way): draw(st.floats(1e3, 1e7)) for k in range(count) for way in ("up", "down")}
    pairs = draw(st.lists(st.sampled_from(list(itertools.permutations(range(count), 2))), min_size=1, max_size=15))
    return [
        Path(((a, "up"), (b, "down")), ((b, "up"), (a, "down")), draw(st.sampled_from([ACK_SHARE, 0.1])))
        for a, b in pairs
    ], lanes


def filled(lanes_of: Sequence[Sequence[Way]], lanes: Mapping[Way, float]) -> list[float]:
    """Progressive filling as it is defined: all rise by the same amount until a lane is full, step after step."""
    rates, rising = [0.0] * len(lanes_of), set(range(len(lanes_of)))
    while rising:
        slack = {}
        for lane, capacity in lanes.items():
            used = sum(rate for rate, crossed in zip(rates, lanes_of, strict=True) if lane in crossed)
            if count := sum(lane in lanes_of[number] for number in rising):
                slack[lane] = (capacity - used) / count
        step = min(slack.values())
        for number in rising:
            rates[number] += step
        full = {lane for lane, left in slack.items() if left <= step * (1 + 1e-9) + 1e-9}
        rising = {number for number in rising if not full.intersection(lanes_of[number])}
    return rates


@given(fleets())
def test_rates_are_those_of_progressive_filling(fleet):
    """Whatever shares what."""
    assert fair_rates(*fleet) == pytest.approx(filled(*fleet), rel=1e-6, abs=1e-6)


@given(fleets())
def test_no_lane_is_above_its_rate_and_every_message_has_a_bottleneck(fleet):
    """The law of max-min fairness: each crosses a full lane, in which nothing is faster."""
    lanes_of, lanes = fleet
    rates = fair_rates(lanes_of, lanes)
    on = {lane: [rate for rate, crossed in zip(rates, lanes_of, strict=True) if lane in crossed] for lane in lanes}

    assert all(sum(on[lane]) <= capacity * (1 + 1e-9) for lane, capacity in lanes.items())
    for rate, crossed in zip(rates, lanes_of, strict=True):
        assert any(sum(on[lane]) >= lanes[lane] * (1 - 1e-9) and rate >= max(on[lane]) * (1 - 1e-9) for lane in crossed)


@given(fleets(), st.randoms())
def test_the_order_of_messages_makes_no_difference(fleet, random):
    """Each keeps its rate."""
    lanes_of, lanes = fleet
    order = list(range(len(lanes_of)))
    random.shuffle(order)
    rates = fair_rates(lanes_of, lanes)

    assert fair_rates([lanes_of[k] for k in order], lanes) == pytest.approx([rates[k] for k in order])


@given(nodes())
def test_messages_and_what_there_is_of_acknowledgements_fit_into_every_lane(fleet):
    """Acknowledgements come first, up to an equal part for each stream; alone, they limit their message."""
    paths, lanes = fleet
    rates = shared_rates(paths, lanes)

    for lane, capacity in lanes.items():
        own = [rate for rate, path in zip(rates, paths, strict=True) if lane in path.lanes]
        acks = [rate * path.ack_share for rate, path in zip(rates, paths, strict=True) if lane in path.back]
        most = capacity * len(acks) / (len(acks) + len(own)) if acks else 0.0
        assert sum(own) + min(sum(acks), most) <= capacity * (1 + 1e-6)
        assert all(each <= capacity * (1 + 1e-9) for each in acks)
    assert all(rate > 0.0 for rate in rates)


def test_five_on_one_lane_of_which_one_is_slow_for_itself():
    """It takes what it can, the others an equal part of the rest."""
    lanes = {"server": 10.0, **{f"edge-{k}": 5.0 for k in range(4)}, "slow": 1.0}
    paths = [(f"edge-{k}", "server") for k in range(4)] + [("slow", "server")]

    assert fair_rates(paths, lanes) == pytest.approx([2.25] * 4 + [1.0])


def test_where_nothing_limits_a_message_its_rate_is_none():
    """Infinity: it is through at once."""
    assert fair_rates([(), ("lane",)], {"lane": 2.0}) == [math.inf, 2.0]
    assert shared_rates([Path((), (), 0.02)], {}) == [math.inf]


def test_acknowledgements_take_their_share_of_a_full_lane():
    """Both ways full: each message leaves room for what acknowledges the other, 2.2 hundredths of it."""
    there = Path(("up",), ("down",), ACK_SHARE)
    back = Path(("down",), ("up",), ACK_SHARE)

    assert shared_rates([there, back], {"up": MBYTE, "down": MBYTE}) == pytest.approx([MBYTE / (1 + ACK_SHARE)] * 2)


def test_acknowledgements_that_are_the_limit_allow_so_much():
    """100 down and 1 up: a message down is as fast as 1 up acknowledges."""
    path = Path(("down",), ("up",), ACK_SHARE)

    assert shared_rates([path], {"down": 100.0, "up": 1.0}) == pytest.approx([1.0 / ACK_SHARE])


def test_a_push_is_not_held_by_models_that_fill_the_other_direction():
    """Its acknowledgements are few, and come between them."""
    models = [Path(("server up", f"edge-{k} down"), (f"edge-{k} up", "server down"), ACK_SHARE) for k in range(20)]
    push = Path(("fast up", "server down"), ("server up", "fast down"), ACK_SHARE)
    lanes = {lane: MBYTE for path in (*models, push) for lane in (*path.lanes, *path.back)}
    *rates, fast = shared_rates([*models, push], lanes)

    assert fast == pytest.approx(MBYTE * (1 - ACK_SHARE), rel=0.001)
    assert rates == pytest.approx([(MBYTE - fast * ACK_SHARE) / 20] * 20)


@given(nodes(), st.floats(0.0, 1e7))
def test_where_the_search_begins_makes_no_difference(fleet, rate):
    """Also with rates of nothing, as of messages that have not begun."""
    paths, lanes = fleet

    assert shared_rates(paths, lanes, [rate] * len(paths)) == pytest.approx(shared_rates(paths, lanes), rel=1e-3)
    fast = {lane: 1e9 * capacity for lane, capacity in lanes.items()}
    assert shared_rates(paths, fast, [0.0] * len(paths)) == pytest.approx(shared_rates(paths, fast), rel=1e-3)
