"""A link over time: what holds when, and when it changes next."""

import math

from hypothesis import given
from hypothesis import strategies as st

from edgebed.emulation.conditions import Conditions, Timeline
from edgebed.scenario.plan import Link, LinkChange

EITHER = st.booleans()
RATES = st.none() | st.integers(8_000, 10**10)
DELAYS = st.none() | st.floats(0.0, 60.0)
TIMES = st.integers(0, 1_000_000).map(lambda number: number / 64)
"""Of which sums and differences are exact."""


@st.composite
def links(draw, *, repeating=EITHER):
    """Any link that a plan can have."""
    times = sorted(draw(st.sets(TIMES, max_size=6)))
    changes = tuple(
        LinkChange(
            at_s=at_s,
            uplink_bit_s=draw(RATES),
            downlink_bit_s=draw(RATES),
            latency_s=draw(DELAYS),
            jitter_s=draw(DELAYS),
        )
        for at_s in times
    )
    period_s = max(times, default=0.0) + 1 / 64 + draw(TIMES) if draw(repeating) else None
    return Link(
        uplink_bit_s=draw(RATES),
        downlink_bit_s=draw(RATES),
        latency_s=draw(st.floats(0.0, 60.0)),
        changes=changes,
        period_s=period_s,
        offset_s=draw(TIMES) % period_s if period_s else 0.0,
    )


def after(link: Link, num_changes: int) -> Conditions:
    """The first conditions with so many changes made one after the other."""
    now = {
        "uplink_bit_s": link.uplink_bit_s,
        "downlink_bit_s": link.downlink_bit_s,
        "latency_s": link.latency_s,
        "jitter_s": link.jitter_s,
        "loss": link.loss,
    }
    for change in link.changes[:num_changes]:
        now |= {name: getattr(change, name) for name in now if getattr(change, name) is not None}
    return Conditions(**now)


@given(link=links(repeating=st.just(False)), time_s=TIMES)
def test_steps_hold_from_their_time_on(link, time_s):
    """All those that have come, and what none of them mentions is as it was at first."""
    passed = sum(change.at_s <= time_s for change in link.changes)

    assert Timeline(link).at(time_s) == after(link, passed)


@given(link=links(), time_s=TIMES)
def test_nothing_changes_before_the_next_change(link, time_s):
    """Whoever sleeps until then misses nothing."""
    timeline = Timeline(link)
    next_s = timeline.next_change_s(time_s)

    assert next_s > time_s
    if math.isfinite(next_s):
        for share in (0.25, 0.5, 0.75):
            assert timeline.at(time_s + share * (next_s - time_s)) == timeline.at(time_s)


@given(link=links(repeating=st.just(False)))
def test_following_the_changes_visits_each_of_them_once(link):
    """And ends."""
    timeline, time_s, visited = Timeline(link), 0.0, []
    while math.isfinite(time_s := timeline.next_change_s(time_s)):
        visited.append(time_s)

    assert visited == [change.at_s for change in link.changes if change.at_s > 0.0]


@given(link=links(repeating=st.just(True)), time_s=TIMES, rounds=st.integers(1, 5))
def test_a_period_repeats(link, time_s, rounds):
    """At the same place of every round the conditions are the same."""
    timeline = Timeline(link)

    assert timeline.at(time_s + rounds * link.period_s) == timeline.at(time_s)


@given(link=links(repeating=st.just(True)), time_s=TIMES)
def test_following_a_period_for_a_round_meets_each_change_once(link, time_s):
    """And comes to where it began: exactly one round later."""
    timeline, places, now_s = Timeline(link), [], time_s
    if not link.changes:
        assert timeline.next_change_s(time_s) == math.inf
        return
    for _ in link.changes:
        now_s = timeline.next_change_s(now_s)
        places.append((now_s + link.offset_s) % link.period_s)

    assert sorted(places) == [change.at_s for change in link.changes]
    assert time_s < now_s <= time_s + link.period_s


@given(link=links(), time_s=st.floats(-1e6, 0.0))
def test_before_training_the_link_is_as_it_is_when_training_begins(link, time_s):
    """Joining and starting up happen under the first conditions."""
    assert Timeline(link).at(time_s) == Timeline(link).at(0.0)
