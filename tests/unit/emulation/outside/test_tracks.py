"""What is seen of a node against what it tells: a law for honest nodes, and what becomes of others."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from edgebed.emulation.outside.looks import Look, Quota
from edgebed.emulation.outside.tracks import SLACK_S, TOLD_S_MAX, Told, Track

BEGAN_S = 100.0
RATES = st.lists(st.floats(0.0, 4.0), min_size=30, max_size=30)
"""CPU seconds a second, a second at a time."""


def look(t: float, cpu_s: float | None = None, life: str = "a", **more: object) -> Look:
    """A look of no time at everything."""
    return Look(life=life, since_s=t, until_s=t, cpu_s=cpu_s, is_whole=True, **more)  # type: ignore[arg-type]


def tracked(*looks: Look) -> Track:
    """A node in training, looked at so often."""
    track = Track("edge-0", began_s=BEGAN_S)
    for each in looks:
        track.add(each)
    return track


def counted(rates: list[float], t: float) -> float:
    """CPU seconds so far, `t` seconds after the first look."""
    whole = int(t)
    return sum(rates[:whole]) + (rates[whole] * (t - whole) if whole < len(rates) else 0.0)


@given(
    rates=RATES,
    pauses_s=st.lists(st.floats(0.1, 3.0), min_size=30, max_size=30),
    begins_s=st.floats(1.0, 8.0),
    lasts_s=st.floats(1.0, 15.0),
    lags_s=st.tuples(st.floats(0.0, SLACK_S), st.floats(0.0, SLACK_S)),
)
def test_what_an_honest_node_tells_is_never_beyond_what_is_seen(
    rates: list[float], pauses_s: list[float], begins_s: float, lasts_s: float, lags_s: tuple[float, float]
) -> None:
    """Whatever it does from second to second, whenever it is looked at, and however long it takes to write it down."""
    ends_s, t = begins_s + lasts_s, 0.0
    track = tracked(look(BEGAN_S, counted(rates, 0.0)))
    for pause_s in pauses_s:
        t = min(t + pause_s, float(len(rates)))
        track.add(look(BEGAN_S + t, counted(rates, t)))
    own_s = counted(rates, ends_s) - counted(rates, begins_s)
    track.told(Told(1, BEGAN_S + ends_s + lags_s[1], lasts_s + lags_s[1] - lags_s[0]))
    found = [seen for seen in track.seen(BEGAN_S + 31.0) if seen.cpu_s is not None]

    for seen in found:
        assert abs(own_s - seen.cpu_s) <= seen.cpu_error_s + 1e-5
    assert found or t < ends_s + lags_s[1] or t < begins_s + 2 * SLACK_S


def test_a_counter_that_is_set_back_is_found_and_one_of_another_life_is_none() -> None:
    """What was counted before is not set against what the node tells: no figure is negative."""
    seconds = range(20)
    track = tracked(*(look(BEGAN_S + t, float(t if t < 10 else t - 10)) for t in seconds))
    track.told(Told(1, BEGAN_S + 18.5, 18.0))
    seen = next(each for each in track.seen(BEGAN_S + 20.0) if each.cpu_s is not None)
    reborn = tracked(*(look(BEGAN_S + t, float(t % 10), life="ab"[t // 10]) for t in seconds))

    assert seen.differences == ("counters: its CPU time was set back",)
    assert (seen.differed, seen.cpu_error_s >= 0.0) == (9, True)
    assert not reborn.lasting.differences


def test_an_account_waits_for_the_look_after_it_and_looks_close_by_leave_little_room() -> None:
    """Twice a second, and at once when the node has told: a second's work or so, at both ends together."""
    track = tracked(*(look(BEGAN_S + t / 2, 0.5 * t / 2) for t in range(41)))
    track.told(Told(1, BEGAN_S + 20.1, 20.0))
    before = list(track.seen(BEGAN_S + 20.1))
    track.add(Look(life="a", since_s=BEGAN_S + 20.11, until_s=BEGAN_S + 20.12, cpu_s=10.055))
    (seen,) = track.seen(BEGAN_S + 20.2)

    assert before == [] or before[0].cpu_s is None
    assert (seen.name, seen.incarnation, seen.time_s) == ("edge-0", 1, 20.0)
    assert seen.cpu_s == pytest.approx(10.0, abs=0.3)
    assert seen.cpu_error_s < 0.5
    assert list(track.seen(BEGAN_S + 20.3)) == []


def test_a_restarted_node_is_judged_by_its_own_life() -> None:
    """In the same cgroup its counter goes on; in a new container it begins anew, as low as before or not."""
    same = tracked(*(look(BEGAN_S + t, 1.0 * t) for t in range(30)))
    same.told(Told(1, BEGAN_S + 10.5, 10.0))
    (first,) = same.seen(BEGAN_S + 11.0)
    same.told(Told(2, BEGAN_S + 28.0, 10.0))
    (second,) = same.seen(BEGAN_S + 29.0)
    new = tracked(
        *(look(BEGAN_S + t, 50.0 + t) for t in range(10)),
        *(look(BEGAN_S + t, t - 11.0, life="b") for t in range(11, 30)),
    )
    new.told(Told(2, BEGAN_S + 28.0, 10.0))
    (anew,) = new.seen(BEGAN_S + 29.0)

    assert [each.incarnation for each in (first, second, anew)] == [1, 2, 2]
    for seen in (first, second, anew):
        assert abs(seen.cpu_s - 10.0) <= seen.cpu_error_s <= 3.0


def test_the_peak_of_memory_is_that_of_the_incarnation_before_it_told() -> None:
    """The one before, in the same cgroup, may have had more: it was killed for it. What came after is nobody's lie."""
    sizes = (*[400] * 10, *[10] * 5, *[20] * 5, *[30] * 5)
    track = tracked(*(look(BEGAN_S + t, 1.0 * t, memory_bytes=size) for t, size in enumerate(sizes)))
    track.told(Told(2, BEGAN_S + 19.5, 8.0))
    (seen,) = track.seen(BEGAN_S + 24.0)

    assert seen.memory_bytes == 20


def test_a_life_that_was_first_seen_late_leaves_room_and_no_difference() -> None:
    """Nobody knows what it had done before, so all of its count may have been in the time that it tells of."""
    track = tracked(look(BEGAN_S + 5.0, 8.0, life="b"), look(BEGAN_S + 20.0, 9.0, life="b"))
    track.told(Told(1, BEGAN_S + 19.0, 18.0))
    (seen,) = track.seen(BEGAN_S + 20.0)

    assert seen.cpu_s - seen.cpu_error_s == pytest.approx(0.0)
    assert seen.cpu_s + seen.cpu_error_s == pytest.approx(9.0)


def test_a_difference_counts_from_a_second_on_and_is_told_once_of_each_kind() -> None:
    """A fault changes a cap a moment before or after that is known, and nothing counts before training."""
    early = look(BEGAN_S - 5.0, differences=("CPU cap: 1",)), look(BEGAN_S - 1.0, differences=("CPU cap: 1",))
    moments = look(BEGAN_S + 1.0, differences=("CPU cap: 1",)), look(BEGAN_S + 1.5, differences=())
    lasting = [look(BEGAN_S + 3.0 + t / 2, differences=("link: 2", "link: 3", "memory: 4")) for t in range(4)]
    quiet, loud = tracked(*early, *moments), tracked(*early, *moments, *lasting)
    (silent,), (seen,) = quiet.at_the_end(BEGAN_S + 9.0), loud.at_the_end(BEGAN_S + 9.0)

    assert (silent.differed, silent.differences) == (0, ())
    assert (seen.differed, seen.differences) == (2, ("link: 2", "memory: 4"))


def test_an_mtu_that_is_put_back_has_differed() -> None:
    """The last look would not show it."""
    mtus = [1500, 1500, 1500, 600, 600, 600, 600, 1500, 1500]
    (seen,) = tracked(*(look(BEGAN_S + t / 2, mtu=mtu) for t, mtu in enumerate(mtus))).at_the_end(BEGAN_S + 9.0)

    assert (seen.differed, seen.mtu) == (2, None)
    assert seen.differences == ("link: its far end had an MTU of 600 bytes, at first of 1,500",)


def test_a_difference_that_varies_is_one() -> None:
    """A cap that somebody changes between any two looks is never twice the same, and never the one that was set."""
    looks = [look(BEGAN_S + t / 2, differences=(f"CPU cap: {0.3 + t % 2 / 100:g} cores",)) for t in range(20)]
    (seen,) = tracked(*looks).at_the_end(BEGAN_S + 11.0)

    assert (seen.differed, seen.differences) == (18, ("CPU cap: 0.3 cores",))


def test_what_is_found_after_training_counts_no_more() -> None:
    """In a final evaluation nothing is asked of the conditions."""
    track = tracked(look(BEGAN_S + 1.0))
    track.ended_s = BEGAN_S + 2.0
    for t in range(20):
        track.add(look(BEGAN_S + 3.0 + t / 2, differences=("CPU cap: 0.3 cores",), is_stopped=True))
    (seen,) = track.at_the_end(BEGAN_S + 20.0)

    assert (seen.differed, seen.differences, seen.stopped) == (0, (), 0)


def test_a_quota_above_counts_by_the_periods_in_which_it_ran_out_and_stays_known() -> None:
    """Of several, the lowest that ever was there, also when somebody has taken it away again."""
    periods = [(1.0, None), (2.0, Quota("/s", 0.5, 100)), (4.0, Quota("/s", 0.2, 110)), (6.0, Quota("/s", 0.2, 125))]
    track = tracked(*(look(BEGAN_S + t, above=quota) for t, quota in periods), look(BEGAN_S + 8.0))
    (seen,) = track.at_the_end(BEGAN_S + 9.0)

    assert (seen.above, seen.cpus_above) == ("/s", 0.2)
    assert seen.above_s == pytest.approx(2.5)


def test_a_node_that_tells_nothing_is_journaled_by_itself() -> None:
    """After a while, and again after as long."""
    track = tracked(look(BEGAN_S + 1.0, 1.0, unread=("far end: hidden",)))
    times = [t for t in range(60) if list(track.seen(BEGAN_S + t))]

    assert times == [TOLD_S_MAX, 2 * TOLD_S_MAX, 3 * TOLD_S_MAX]
    assert not math.isfinite(Track("edge-1").began_s)
    assert list(Track("edge-1").seen(BEGAN_S)) == []


def test_looks_that_find_a_node_stopped_are_counted_and_told_at_the_end() -> None:
    """With how many there were in all; of a node that was never found so nothing is told."""
    bursts = tracked(*(look(BEGAN_S + t / 2, 1.0, is_stopped=t % 2 == 1) for t in range(20)))
    (seen,) = bursts.at_the_end(BEGAN_S + 10.0)

    assert (seen.stopped, seen.looks) == (10, 20)
    (quiet,) = tracked(look(BEGAN_S, 1.0)).at_the_end(BEGAN_S + 1.0)
    assert (quiet.stopped, quiet.looks) == (0, 0)
