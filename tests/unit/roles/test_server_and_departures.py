"""Workers leave and come back; the server waits for nobody who is gone, and every push is applied or refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.update import ModelUpdate
from edgebed.core import records
from edgebed.core.plan import Part
from edgebed.wire.messages import Checkpoint, Pull, Start, Working

SILENCE_S = 10.0
WORKERS = ("edge-0", "edge-1", "edge-2")


@pytest.fixture
def bench(make_bench):
    """A server that gives up who is silent for ten seconds."""
    return make_bench(silence_s=SILENCE_S)


def test_who_is_silent_has_left_and_joins_anew_when_it_pushes(bench):
    """Its push is refused by its number; the next join goes on with the present model."""
    bench.join("edge-0")
    assert bench.wait_until(9.9) == []
    assert bench.wait_until(10.0) == [records.Left(worker="edge-0", incarnation=1, reason="silence")]

    (refused,), sent = bench.push("edge-0", step=3)
    assert (refused.code, refused.worker, refused.incarnation, refused.joins, refused.step) == (
        "not-joined", "edge-0", 1, 0, 3,
    )  # fmt: skip
    assert bench.answers(sent) == [("edge-0", "not-joined")]
    assert bench.join("edge-0", joins=1)[0] == [records.Joined(worker="edge-0", incarnation=1, joins=1)]
    (update,), sent = bench.push("edge-0", step=4, joins=1)
    assert (update.version, update.joins, update.step) == (1, 1, 4)
    assert bench.answers(sent) == [("edge-0", 1)]


def test_a_worker_that_says_something_in_time_stays(bench):
    """For ever; each silence is counted from the last answer."""
    bench.join("edge-0")
    for k in range(1, 6):
        bench.wait_until(9.0 * k)
        bench.push("edge-0", step=k)

    assert bench.left() == []
    bench.wait_until(54.9)
    assert bench.left() == []
    bench.wait_until(55.0)
    assert bench.left() == [("edge-0", "silence")]


def test_a_worker_that_says_it_works_stays_and_nothing_else_comes_of_it(bench):
    """No answer, no other version: its silence is counted from there, and the controller is told."""
    bench.join("edge-0")
    for k in range(1, 6):
        bench.wait_until(9.0 * k)
        assert bench.tell(Working(sender="edge-0")) == ([records.AtWork(worker="edge-0")], [])

    bench.wait_until(54.9)
    assert (bench.left(), bench.server.aggregation.version) == ([], 0)
    bench.wait_until(55.0)
    assert bench.left() == [("edge-0", "silence")]


def test_a_worker_that_says_it_works_all_the_time_is_reported_now_and_then(bench):
    """A line for each word would fill journal and disk; what it says counts all the same."""
    bench.join("edge-0")
    told = []
    for k in range(1000):
        bench.wait_until(1.0 + k * 0.001)
        told += bench.tell(Working(sender="edge-0"))[0]

    assert told == [records.AtWork(worker="edge-0")] * 10
    bench.wait_until(11.9)
    assert bench.left() == []


def test_who_only_says_that_it_works_takes_no_part(bench):
    """Neither one that has not joined, nor one that has left, nor somebody else in its name."""
    bench.join("edge-0")
    bench.wait_until(9.0)
    for worker, peer in (("edge-1", ""), ("edge-0", "another")):
        assert bench.tell(Working(sender=worker), peer=peer) == ([], [])
    bench.wait_until(10.0)
    assert bench.left() == [("edge-0", "silence")]

    assert bench.tell(Working(sender="edge-0")) == ([], [])
    assert bench.push("edge-0", step=0)[0][0].code == "not-joined"


def test_few_wakes_are_asked_for(bench):
    """About one in each span of silence, however many messages come."""
    for name in WORKERS:
        bench.join(name)
    for k in range(1, 1001):
        bench.wait_until(0.1 * k)
        bench.push(WORKERS[k % 3], step=k)

    assert len(bench.kept(records.Update)) == 1000
    assert int(bench.server.alarm.count) <= 12


def test_a_broken_connection_that_stays_silent_for_two_seconds_is_a_departure(bench):
    """One that comes back in time is none; connections of strangers and of earlier joins are nothing."""
    bench.join("edge-0", peer="first")
    bench.join("edge-1")
    bench.disconnect("first")
    bench.disconnect("edge-1")
    bench.disconnect("stranger")
    bench.wait_until(1.9)
    bench.push("edge-1")

    bench.wait_until(5.0)
    assert bench.left() == [("edge-0", "reset")]
    bench.join("edge-0", joins=1, peer="second")
    bench.disconnect("first")
    bench.wait_until(9.0)
    assert bench.left() == [("edge-0", "reset")]


def test_the_oracle_is_believed_at_once_and_about_the_present_life_alone(bench):
    """What it says of one who has left, of an earlier life or of a stranger changes nothing."""
    bench.join("edge-0", incarnation=2)
    assert bench.fail("edge-0", 1) == ([], [])
    assert bench.fail("edge-1") == ([], [])
    assert bench.fail("nobody") == ([], [])

    assert bench.fail("edge-0", 2)[0] == [records.Left(worker="edge-0", incarnation=2, reason="oracle")]
    assert bench.fail("edge-0", 2) == ([], [])


def test_pushes_of_earlier_joins_and_lives_are_refused_by_their_number(bench):
    """The worker that has joined anew waits for another answer, so it is told nothing; an earlier life is."""
    bench.join("edge-0", incarnation=2, joins=1, peer="new")

    (refused,), sent = bench.push("edge-0", incarnation=2, joins=0, step=5, peer="new")
    assert (refused.code, refused.joins, refused.step, sent) == ("not-joined", 0, 5, [])
    (refused,), sent = bench.push("edge-0", incarnation=1, joins=4, step=7, peer="old")
    assert (refused.code, refused.incarnation, refused.joins, refused.step) == ("stale-incarnation", 1, 4, 7)
    assert bench.answers(sent) == [("old", "stale-incarnation")]
    (refused,), sent = bench.join("edge-0", incarnation=2, joins=0, peer="new")
    assert (refused.code, refused.worker, sent) == ("stale-incarnation", "", [])


def test_a_push_of_an_earlier_life_is_refused_once_whatever_the_later_one_has_brought(bench):
    """Its number is its life's own; what the earlier life brought was applied, and is not refused as well."""
    bench.join("edge-0", peer="old")
    bench.push("edge-0", step=0, peer="old")
    bench.join("edge-0", incarnation=2, peer="new")
    bench.push("edge-0", incarnation=2, step=5, peer="new")

    assert bench.push("edge-0", incarnation=1, step=0, peer="old")[0] == []
    (refused,), _ = bench.push("edge-0", incarnation=1, step=1, peer="old")
    assert (refused.code, refused.incarnation, refused.step) == ("stale-incarnation", 1, 1)
    assert bench.push("edge-0", incarnation=1, step=1, peer="old")[0] == []


def test_a_later_join_of_the_same_life_is_taken_from_another_connection(bench):
    """The old one may not even have broken yet; the answer says which join it is for."""
    bench.join("edge-0", peer="first")

    _, sent = bench.join("edge-0", joins=1, peer="second")

    assert bench.answers(sent) == [("second", 0)]
    assert sent[0][1].joins == 1
    _, sent = bench.push("edge-0", joins=1, peer="second")
    assert (bench.answers(sent), sent[0][1].joins) == ([("second", 1)], 1)


def test_a_malformed_push_is_refused_by_its_number_too(bench):
    """And counted as dropped; of a stranger no worker is named."""
    bench.join("edge-0")

    dropped, refused = bench.push("edge-0", step=2, update=ModelUpdate(7, None, np.ones(7, "f4")))[0]

    assert isinstance(dropped, records.Dropped)
    assert (refused.code, refused.worker, refused.step) == ("malformed", "edge-0", 2)
    (refused,), _ = bench.push("edge-9", step=2)
    assert (refused.code, refused.worker, refused.step) == ("not-joined", "", -1)


@pytest.mark.parametrize("method", ["asgd", "adacomp", "sync-sgd"])
@pytest.mark.parametrize("pull", ["full", "changed-since"])
def test_the_state_of_who_has_left_is_released(method, pull, make_bench):
    """All but the number of its latest join."""
    bench = make_bench(method=method, pull=pull, silence_s=SILENCE_S)
    for name in WORKERS:
        bench.join(name)
        bench.push(name)
    bench.wait_until(100.0)

    server, aggregation = bench.server, bench.server.aggregation
    assert len(bench.left()) == 3
    assert (server.answers.client_versions, server.pending, server.membership.peers, server.membership.silent) == (
        {},
        [],
        {},
        {},
    )
    for table in ("counts_at_pull", "members", "waiting", "sums"):
        assert not getattr(aggregation, table, None)
    assert aggregation.version == 3


def test_after_the_end_nobody_leaves(bench):
    """Nodes end one after the other then."""
    bench.join("edge-0")
    bench.disconnect("edge-0")
    bench.finish()
    bench.fail("edge-0")
    bench.wait_until(100.0)

    assert bench.left() == []
    (refused,), _ = bench.push("edge-0", step=1)
    assert (refused.code, refused.worker, refused.step) == ("finished", "edge-0", 1)


def test_it_goes_on_from_a_checkpoint(make_bench):
    """Versions, pulls, staleness and what each worker holds; who knows an earlier server has not joined this one."""
    bench = make_bench(version=40, stop_updates=42, pull="changed-since")

    (refused,), _ = bench.push("edge-0", base=50)
    assert refused.code == "not-joined"
    assert bench.answers(bench.tell(Pull(sender="evaluator", at_version=30))[1]) == [("evaluator", 40)]
    assert bench.answers(bench.join("edge-0", joins=1)[1]) == [("edge-0", 40)]
    assert bench.tell(Pull(sender="evaluator", at_version=41)) == ([], [])
    (update,), sent = bench.push("edge-0", joins=1, update=ModelUpdate(6, np.array([2]), np.ones(1, "f4")))
    assert (update.version, update.base, update.staleness) == (41, 40, 0)
    assert bench.answers(sent) == [("edge-0", 41), ("evaluator", 41)]
    assert sent[0][1].since == 40
    assert bench.push("edge-0", joins=1)[0][1] == records.Finished(version=42, reason="42 updates were applied")


def test_a_checkpoint_that_needs_no_update_more_ends_the_training_at_the_start(make_bench):
    """It was the last before the final one was handed over."""
    bench = make_bench(version=42, stop_updates=42)

    noted, _ = bench.tell(Start(sender="controller"))

    assert noted == [records.Finished(version=42, reason="42 updates were applied")]
    assert bench.checkpoints() == [(42, True, 0.0)]


def test_checkpoints_by_updates(make_bench):
    """At each multiple since the beginning, after the answers; the last one is final."""
    bench = make_bench(checkpoint_every_updates=2, stop_updates=5)
    bench.join("edge-0")
    for k in range(5):
        _, sent = bench.push("edge-0", step=k)
        assert isinstance(sent[-1][1], Checkpoint) == (k in (1, 3))

    assert bench.checkpoints() == [(2, False, -0.2), (4, False, -0.4), (5, True, -0.5)]


def test_checkpoints_by_time(make_bench):
    """Only if there is something new; the final one in any case."""
    bench = make_bench(checkpoint_every_s=5.0)
    bench.join("edge-0")
    bench.push("edge-0")
    bench.wait_until(14.0)
    assert bench.checkpoints() == [(1, False, -0.1)]
    bench.push("edge-0")
    bench.wait_until(30.0)
    bench.finish()

    assert bench.checkpoints() == [(1, False, -0.1), (2, False, -0.2), (2, True, -0.2)]


def test_a_checkpoint_by_updates_puts_off_the_one_by_time(make_bench):
    """What is at risk is the time since the last."""
    bench = make_bench(checkpoint_every_s=5.0, checkpoint_every_updates=2)
    bench.join("edge-0")
    bench.push("edge-0")
    bench.wait_until(3.0)
    bench.push("edge-0", step=1)
    bench.push("edge-0", step=2)
    bench.wait_until(7.9)
    assert [version for version, *_ in bench.checkpoints()] == [2]
    bench.wait_until(8.0)
    assert [version for version, *_ in bench.checkpoints()] == [2, 3]


methods = st.sampled_from(
    [
        ("asgd", None), ("adacomp", None), ("sync-sgd", None),
        ("sync-sgd", Part(name="synchronous", settings={"quorum": 0.5})),
        ("sync-sgd", Part(name="synchronous", settings={"deadline_s": 3.0})),
    ]
)  # fmt: skip
peers = st.sampled_from(["", "", "elsewhere"])
lag = st.sampled_from([0, 0, 0, 1, 5, -1])
"""How far behind the version of a push is; one that does not exist yet is malformed."""
off = st.sampled_from([0, 0, 0, 1, -1])
"""From the latest life and join of the worker."""
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from(WORKERS), off, off, peers),
        st.tuples(st.just("push"), st.sampled_from(WORKERS), off, off, peers, lag),
        st.tuples(st.just("push"), st.sampled_from(WORKERS), st.just(0), st.just(0), st.just(""), st.just(0)),
        st.tuples(st.just("break"), st.sampled_from(["edge-0", "edge-1", "elsewhere"])),
        st.tuples(st.just("fail"), st.sampled_from([*WORKERS, "nobody"]), st.integers(1, 2)),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 1.0, 2.0, 4.0, 11.0])),
    ),
    max_size=60,
)


def carry_out(bench, happenings):
    """Tell the server all of it; the steps pushed, of which there are no two alike."""
    steps = []
    for kind, *given_ in happenings:
        if kind == "join":
            worker, lives, joins, peer = given_
            latest = bench.server.membership.latest.get(worker, (1, 0))
            bench.join(worker, max(1, latest[0] + lives), max(0, latest[1] + joins), peer)
        elif kind == "push":
            worker, lives, joins, peer, behind = given_
            latest = bench.server.membership.latest.get(worker, (1, 0))
            base = max(0, bench.server.aggregation.version - behind)
            steps.append(len(steps))
            bench.push(
                worker, base=base, step=steps[-1], incarnation=max(1, latest[0] + lives),
                joins=max(0, latest[1] + joins), peer=peer,
            )  # fmt: skip
        elif kind == "break":
            bench.disconnect(*given_)
        elif kind == "fail":
            bench.fail(*given_)
        else:
            bench.wait_until(bench.now + given_[0])
        assert_sound(bench)
    return steps


def assert_sound(bench):
    """What holds at every moment: versions count updates, and whatever is held waits for somebody who is there."""
    server, aggregation = bench.server, bench.server.aggregation
    assert [update.version for update in bench.kept(records.Update)] == list(range(1, aggregation.version + 1))
    assert set(server.answers.client_versions) | set(server.membership.silent) <= set(server.membership.peers)
    assert set(getattr(aggregation, "counts_at_pull", ())) <= set(server.membership.peers)
    if server.pending:
        assert aggregation.members == set(server.membership.peers)
        assert set(aggregation.waiting) < aggregation.members
        assert len(aggregation.waiting) < aggregation.config.quorum * len(aggregation.members)


@given(happenings=happenings, method=methods, pull=st.sampled_from(["full", "changed-since"]))
def test_whatever_happens_every_push_is_applied_or_refused_and_nobody_waits_for_the_dead(
    happenings, method, pull, make_bench
):
    """Held ones too, once all have left; nothing of anybody is kept then. The same again gives the same journal."""
    benches = [make_bench(method=method[0], aggregation=method[1], pull=pull, silence_s=SILENCE_S) for _ in range(2)]
    bench, again = benches
    steps = carry_out(bench, happenings)
    assert carry_out(again, happenings) == steps
    assert again.journal == bench.journal

    bench.wait_until(bench.now + 3 * SILENCE_S)

    assert_sound(bench)
    pushes = [*bench.kept(records.Update), *(each for each in bench.kept(records.Refused) if each.worker)]
    assert sorted(push.step for push in pushes) == steps
    assert bench.server.membership.peers == {}
    assert bench.server.pending == []
    assert bench.server.alarm.at_s == float("inf")


@given(happenings=happenings, method=methods)
def test_whenever_the_training_ends_every_push_is_applied_or_refused(happenings, method, make_bench):
    """Those that a round has held are refused then."""
    bench = make_bench(method=method[0], aggregation=method[1], silence_s=SILENCE_S)
    steps = carry_out(bench, happenings)

    bench.finish()

    pushes = [*bench.kept(records.Update), *(each for each in bench.kept(records.Refused) if each.worker)]
    assert sorted(push.step for push in pushes) == steps
    assert [(version, final) for version, final, _ in bench.checkpoints()] == [
        (bench.server.aggregation.version, True)
    ]  # fmt: skip
