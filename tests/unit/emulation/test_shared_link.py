"""What messages on one link may add to each other's time: laws, and the order that is worst."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.emulation.shared_link import REMEMBERED, LinkLoad, SharedDownlink, SharedUplink

SENT = st.lists(
    st.tuples(st.floats(0.0, 3.0), st.sampled_from(("a", "b", "c")), st.floats(0.0, 2.0)), min_size=1, max_size=20
)
"""Gap before it, to whom, how long alone."""


def test_a_message_alone_is_allowed_nothing() -> None:
    """Nor are messages one after the other."""
    link = SharedUplink()

    assert link.send(0.0, "a", 1.0) == {"a": 0.0}
    assert link.send(1.0, "b", 1.0) == {"b": 0.0}


def test_two_at_once_may_each_come_second() -> None:
    """Whichever the kernel sends first."""
    link = SharedUplink()
    link.send(0.0, "a", 1.0)

    assert link.send(0.25, "b", 0.5) == {"a": 0.5, "b": 0.75}


@given(SENT)
def test_what_is_allowed_covers_every_order(sent: list[tuple[float, str, float]]) -> None:
    """A link that is never idle with something to send is through with all by then: each may be last of its stretch."""
    link, now, done_s = SharedUplink(), 0.0, 0.0
    allowed: dict[str, float] = {}
    latest: dict[str, float] = {}
    for gap_s, to, alone_s in sent:
        now += gap_s
        done_s = max(now, done_s)
        done_s += alone_s
        for key, extra_s in link.send(now, to, alone_s).items():
            allowed[key] = allowed.get(key, 0.0) + extra_s
        latest[to] = latest.get(to, 0.0) + alone_s
        assert all(extra_s >= 0.0 for extra_s in allowed.values())
        assert max(flight.until_s for flight in link.flights) >= done_s - 1e-9
    assert sum(allowed.values()) <= sum(latest.values()) * len(sent) * len(sent)


@given(st.permutations([("a", 0.0, 2.0), ("b", 1.0, 3.0), ("c", 5.0, 6.0)]))
def test_only_who_was_on_the_way_together_is_allowed_for(messages: list[tuple[str, float, float]]) -> None:
    """In whatever order they are told."""
    link = SharedDownlink()
    allowed = dict.fromkeys("abc", 0.0)
    for source, since_s, until_s in messages:
        for key, extra_s in link.receive(until_s, since_s, source, 0.5).items():
            allowed[key] += extra_s

    assert allowed["c"] == 0.0 or messages[0][0] == "c" or messages[1][0] == "c"
    if messages[2][0] == "c":
        assert allowed == {"a": 0.5, "b": 0.5, "c": 0.0}


def test_messages_that_met_for_a_moment_delayed_each_other_by_no_more() -> None:
    """One of three seconds came while the last tenth of the other was on its way."""
    link = SharedDownlink()
    link.receive(1.0, 0.0, "a", 0.5)

    assert link.receive(4.0, 0.9, "b", 3.0) == {"a": pytest.approx(0.1), "b": pytest.approx(0.1)}


@given(SENT, st.floats(0.0, 10.0))
def test_a_links_load_is_what_passed_since_then(sent: list[tuple[float, str, float]], since_s: float) -> None:
    """However long ago; what is no longer remembered is left out."""
    load, now = LinkLoad(), 0.0
    passed = []
    for gap_s, _, alone_s in sent:
        now += gap_s
        load.add(now, alone_s)
        passed.append((now, alone_s))

    assert load.since(since_s) == pytest.approx(sum(alone_s for t, alone_s in passed if t > since_s))
    assert load.since(now) == 0.0


def test_a_message_that_is_long_on_its_way_has_met_all_that_came_meanwhile() -> None:
    """Minutes, on a slow link."""
    link = SharedDownlink()
    link.receive(10.0, 0.0, "a", 5.0)

    assert link.receive(120.0, 1.0, "b", 5.0) == {"a": 5.0, "b": 5.0}


def test_a_links_load_forgets_what_was_long_ago() -> None:
    """A server that runs for days remembers so many messages."""
    load, link = LinkLoad(), SharedDownlink()
    for k in range(3 * REMEMBERED):
        load.add(float(k), 0.5)
        link.receive(float(k), k - 0.5, "a", 0.1)

    assert max(len(load.times_s), len(link.flights)) <= 2 * REMEMBERED
    assert load.since(3 * REMEMBERED - 11.0) == 5.0
