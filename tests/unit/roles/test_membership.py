"""Who takes part: lives and joins are ordered, silence and broken connections are noticed in time, no later."""

import math

import pytest

from edgebed.roles.server.membership import BROKEN_S, JoinId, Membership

SILENCE_S = 10.0


@pytest.fixture
def members():
    """edge-0 is in join 1 of its second life, on connection `here`."""
    members = Membership(SILENCE_S)
    members.join("edge-0", JoinId(2, 1), "here")
    return members


@pytest.mark.parametrize(
    ("join_id", "peer", "code", "told"),
    [
        (JoinId(2, 1), "here", None, True), (JoinId(2, 1), "there", "duplicate", True),
        (JoinId(2, 2), "there", None, True), (JoinId(3, 0), "there", None, True),
        (JoinId(2, 0), "here", "stale-incarnation", False), (JoinId(1, 7), "here", "stale-incarnation", True),
    ],
    ids=str,
)  # fmt: skip
def test_a_later_life_or_join_takes_over_and_an_earlier_is_refused(members, join_id, peer, code, told):
    """From any connection; the same one only again on its own."""
    objection = members.refuse_join("edge-0", join_id, peer)

    assert (objection and objection.code) == code
    assert objection is None or objection.told == told


@pytest.mark.parametrize(
    ("join_id", "peer", "code", "told"),
    [
        (JoinId(2, 1), "here", None, True), (JoinId(2, 1), "there", "duplicate", True),
        (JoinId(2, 0), "here", "not-joined", False), (JoinId(1, 1), "there", "stale-incarnation", True),
        (JoinId(2, 2), "here", "not-joined", True), (JoinId(3, 0), "there", "not-joined", True),
    ],
    ids=str,
)  # fmt: skip
def test_only_pushes_of_the_present_join_are_taken(members, join_id, peer, code, told):
    """One that has joined anew since is not told of an earlier push: it would join once more."""
    objection = members.refuse_push("edge-0", join_id, peer)

    assert (objection and objection.code) == code
    assert objection is None or objection.told == told


def test_who_has_left_may_join_again_but_not_go_back(members):
    """With the same pair too, from any connection; its pushes are refused and it is told."""
    members.leave("edge-0")

    assert members.refuse_push("edge-0", JoinId(2, 1), "here").code == "not-joined"
    assert members.refuse_join("edge-0", JoinId(2, 1), "there") is None
    assert members.refuse_join("edge-0", JoinId(2, 0), "here").code == "stale-incarnation"
    assert members.join("edge-0", JoinId(2, 1), "there") is True
    assert members.join("edge-0", JoinId(2, 1), "there") is False


def test_silent_is_who_was_answered_and_says_nothing(members):
    """Who waits for the server is not, however long; whatever it says counts, from its own connection."""
    members.answered("edge-0", 1.0)
    assert (members.next_s, members.lost(10.9), members.lost(11.0)) == (11.0, [], [("edge-0", "silence")])

    members.heard("edge-0", "elsewhere", 5.0)
    assert members.next_s == 11.0
    members.heard("edge-0", "here", 5.0)
    assert members.next_s == 15.0
    members.waits("edge-0")
    assert (members.next_s, members.lost(1e9)) == (math.inf, [])


def test_the_longest_silence_ends_first(members):
    """However often each has spoken."""
    for k, now in enumerate((1.0, 2.0, 3.0, 4.0)):
        members.answered(f"edge-{k % 2}", now)

    assert members.next_s == 3.0 + SILENCE_S
    assert members.lost(3.0 + SILENCE_S) == [("edge-0", "silence")]


def test_a_broken_connection_that_does_not_come_back_in_time_is_a_reset(members):
    """Counted from the first of several breaks; also of one that waits for the server."""
    members.disconnected("here", 1.0)
    members.disconnected("here", 2.0)

    assert (members.next_s, members.lost(1.0 + BROKEN_S)) == (1.0 + BROKEN_S, [("edge-0", "reset")])


@pytest.mark.parametrize("sign", ["message", "join", "another connection"])
def test_a_sign_of_the_worker_mends_its_connection(members, sign):
    """A connection that it has given up itself may break."""
    if sign == "another connection":
        members.join("edge-0", JoinId(2, 2), "there")
    members.disconnected("here", 1.0)
    if sign == "message":
        members.heard("edge-0", "here", 2.0)
    if sign == "join":
        members.join("edge-0", JoinId(2, 2), "there")

    assert (members.next_s, members.lost(1e9)) == (math.inf, [])


def test_without_a_limit_nobody_is_silent():
    """A broken connection is noticed all the same, and who is lost for two reasons has left for one."""
    members = Membership(None)
    members.join("edge-0", JoinId(1, 0), "here")
    members.answered("edge-0", 0.0)
    assert (members.next_s, members.lost(1e9)) == (math.inf, [])

    members.silence_s = SILENCE_S
    members.disconnected("here", 0.0)
    assert members.lost(1e9) == [("edge-0", "reset")]


def test_of_who_has_left_only_the_latest_join_is_remembered(members):
    """No deadline, no connection."""
    members.answered("edge-0", 0.0)
    members.disconnected("here", 0.0)
    members.leave("edge-0")

    assert (members.peers, members.silent, members.broken, members.next_s) == ({}, {}, {}, math.inf)
    assert members.latest == {"edge-0": JoinId(2, 1)}
