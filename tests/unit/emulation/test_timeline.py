"""A link over time: what holds when, and when it changes next."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import EffectiveLink, LinkSchedule, LinkState, Override, changed

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
    return LinkPlan(
        uplink_bit_s=draw(RATES),
        downlink_bit_s=draw(RATES),
        latency_s=draw(st.floats(0.0, 60.0)),
        changes=changes,
        period_s=period_s,
        offset_s=draw(TIMES) % period_s if period_s else 0.0,
    )


def after(link: LinkPlan, num_changes: int) -> LinkState:
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
    return LinkState(**now)


@given(link=links(repeating=st.just(False)), time_s=TIMES)
def test_steps_hold_from_their_time_on(link, time_s):
    """All those that have come, and what none of them mentions is as it was at first."""
    passed = sum(change.at_s <= time_s for change in link.changes)

    assert LinkSchedule(link).at(time_s) == after(link, passed)


@given(link=links(), time_s=TIMES)
def test_nothing_changes_before_the_next_change(link, time_s):
    """Whoever sleeps until then misses nothing."""
    schedule = LinkSchedule(link)
    next_s = schedule.next_change_s(time_s)

    assert next_s > time_s
    if math.isfinite(next_s):
        for share in (0.25, 0.5, 0.75):
            assert schedule.at(time_s + share * (next_s - time_s)) == schedule.at(time_s)


@given(link=links(repeating=st.just(False)))
def test_following_the_changes_visits_each_of_them_once(link):
    """And ends."""
    schedule, time_s, visited = LinkSchedule(link), 0.0, []
    while math.isfinite(time_s := schedule.next_change_s(time_s)):
        visited.append(time_s)

    assert visited == [change.at_s for change in link.changes if change.at_s > 0.0]


@given(link=links(repeating=st.just(True)), time_s=TIMES, rounds=st.integers(1, 5))
def test_a_period_repeats(link, time_s, rounds):
    """At the same place of every round the conditions are the same."""
    schedule = LinkSchedule(link)

    assert schedule.at(time_s + rounds * link.period_s) == schedule.at(time_s)


@given(link=links(repeating=st.just(True)), time_s=TIMES)
def test_following_a_period_for_a_round_meets_each_change_once(link, time_s):
    """And comes to where it began: exactly one round later."""
    schedule, places, now_s = LinkSchedule(link), [], time_s
    if not link.changes:
        assert schedule.next_change_s(time_s) == math.inf
        return
    for _ in link.changes:
        now_s = schedule.next_change_s(now_s)
        places.append((now_s + link.offset_s) % link.period_s)

    assert sorted(places) == [change.at_s for change in link.changes]
    assert time_s < now_s <= time_s + link.period_s


@given(link=links(), time_s=st.floats(-1e6, 0.0))
def test_before_training_the_link_is_as_it_is_when_training_begins(link, time_s):
    """Joining and starting up happen under the first conditions."""
    assert LinkSchedule(link).at(time_s) == LinkSchedule(link).at(0.0)


CHANGES = st.none() | st.builds(
    LinkChange, uplink_bit_s=RATES, downlink_bit_s=RATES, latency_s=DELAYS, jitter_s=DELAYS, loss=st.none()
)
INJECTIONS = st.builds(
    Injection, node=st.just("edge-0"), action=st.sampled_from(["cut", "heal", "kill"])
) | st.builds(Injection, node=st.just("edge-0"), action=st.just("link"), change=CHANGES)  # fmt: skip
HISTORIES = st.lists(st.tuples(TIMES, INJECTIONS), max_size=6).map(
    lambda history: sorted(history, key=lambda item: item[0])
)
"""What faults do to a link, and when."""


def course_of(link: LinkPlan, history: list[tuple[float, Injection]]) -> EffectiveLink:
    """A link to which all of that was done."""
    effective = EffectiveLink(link)
    for time_s, injection in history:
        effective.inject(time_s, injection)
    return effective


@given(link=links(), history=HISTORIES, time_s=TIMES)
def test_a_link_is_what_its_plan_says_but_for_what_faults_did_until_then(link, history, time_s):
    """Each field that a change mentions since the last return to the plan, the latest first; and cut or healed."""
    planned, expected, is_cut = LinkSchedule(link).at(time_s), {}, False
    for at_s, injection in history:
        if at_s > time_s:
            break
        if injection.action in ("cut", "heal"):
            is_cut = injection.action == "cut"
        elif injection.action == "link":
            given_ = msgspec.structs.asdict(injection.change) if injection.change else None
            expected = expected | {k: v for k, v in given_.items() if v is not None} if given_ else {}
    expected.pop("at_s", None)

    assert course_of(link, history).at(time_s) == msgspec.structs.replace(planned, **expected, cut=is_cut)


@given(link=links(), history=HISTORIES, time_s=TIMES)
def test_with_faults_nothing_changes_before_the_next_change_either(link, history, time_s):
    """Whoever sleeps until then misses nothing that is known."""
    effective = course_of(link, history)
    next_s = effective.next_change_s(time_s)

    assert next_s > time_s
    if math.isfinite(next_s):
        for share in (0.25, 0.5, 0.75):
            assert effective.at(time_s + share * (next_s - time_s)) == effective.at(time_s)


@given(link=links(), history=HISTORIES)
def test_a_link_that_is_healed_and_back_to_its_plan_is_as_if_nothing_had_been(link, history):
    """At all times from then on."""
    since_s = history[-1][0] if history else 0.0
    undone = [(since_s, Injection(node="edge-0", action="heal")), (since_s, Injection(node="edge-0", action="link"))]
    effective = course_of(link, [*history, *undone])

    assert effective.overrides[-1] == Override()
    for later_s in (0.0, 1 / 64, 1000.0):
        assert effective.at(since_s + later_s) == LinkSchedule(link).at(since_s + later_s)
    assert effective.possible() == LinkSchedule(link).possible()


@given(link=links(), history=HISTORIES, time_s=TIMES)
def test_what_a_link_may_be_without_another_fault_holds_what_it_is_at_any_later_time(link, history, time_s):
    """A node that starts anew may find any of that held."""
    effective = course_of(link, history)

    assert effective.at(time_s + (history[-1][0] if history else 0.0)) in effective.possible()


def test_what_was_done_before_training_began_holds_from_the_beginning():
    """Its time is not known in seconds since then; the past is remembered in order."""
    effective = EffectiveLink(LinkPlan(uplink_bit_s=8_000))
    effective.inject(-math.inf, Injection(node="edge-0", action="cut"))
    effective.inject(5.0, Injection(node="edge-0", action="heal"))
    effective.inject(4.0, Injection(node="edge-0", action="cut"))

    assert [effective.at(time_s).cut for time_s in (-1.0, 0.0, 4.5, 5.0)] == [True, True, True, True]
    assert effective.next_change_s(0.0) == 5.0


@pytest.mark.parametrize("cut", [False, True])
def test_a_change_keeps_a_cut_link_cut(cut):
    """It is one thing to change what a link is, and another to cut it."""
    assert changed(LinkState(cut=cut), LinkChange(uplink_bit_s=8_000)) == LinkState(uplink_bit_s=8_000, cut=cut)
