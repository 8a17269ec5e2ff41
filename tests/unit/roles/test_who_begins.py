"""Who begins together is waited for from the beginning, in rounds and with bounded staleness, but not for ever."""

import pytest

from edgebed.core import records
from edgebed.core.plan import Part
from edgebed.roles.server.membership import JOIN_S
from edgebed.wire.messages import Start

ALL = ("edge-0", "edge-1", "edge-2")


@pytest.fixture
def begin(make_bench):
    """`begin(aggregation, version=…, plan…, **settings)`: a server that was told that all three workers begin."""

    def make(aggregation="synchronous", version=0, plan=None, **settings):
        bench = make_bench(version=version, aggregation=Part(name=aggregation, settings=settings), **(plan or {}))
        bench.tell(Start(sender="controller", workers=ALL))
        return bench

    return make


def round_of_one_worker(bench):
    """The first worker joins and pushes before any other has joined."""
    bench.join("edge-0")
    return bench.push("edge-0")


@pytest.mark.parametrize("version", [0, 30])
def test_nobody_ends_a_round_alone_because_it_came_first(begin, version):
    """Neither the first round of a trial nor that of a server which was started anew."""
    bench = begin(version=version)
    assert round_of_one_worker(bench) == ([], [])
    bench.join("edge-1")
    assert bench.push("edge-1") == ([], [])
    bench.join("edge-2")

    updates, _ = bench.push("edge-2")

    assert [(each.worker, each.base) for each in updates] == [(worker, version) for worker in ALL]


def test_a_quorum_is_of_those_who_begin(begin):
    """Two of three, whoever they are."""
    bench = begin(quorum=0.6)
    assert round_of_one_worker(bench) == ([], [])
    bench.join("edge-2")

    assert [each.worker for each in bench.push("edge-2")[0]] == ["edge-0", "edge-2"]


def test_nobody_gets_too_far_ahead_of_one_that_has_yet_to_join(begin):
    """Two steps, with a bound of one; it goes on after the slowest's first."""
    bench = begin("stale-synchronous", bound=1)
    bench.join("edge-0")
    assert bench.answers(bench.push("edge-0", step=0)[1]) == [("edge-0", 1)]
    assert bench.answers(bench.push("edge-0", step=1)[1]) == []
    bench.join("edge-1")
    bench.join("edge-2")
    assert bench.answers(bench.push("edge-1")[1]) == [("edge-1", 3)]

    assert bench.answers(bench.push("edge-2")[1]) == [("edge-0", 4), ("edge-2", 4)]


def test_who_joins_anew_lets_those_go_on_who_waited_for_what_it_was(begin):
    """At once, not after its next step: it begins beside them."""
    bench = begin("stale-synchronous", bound=1)
    for worker in ALL:
        bench.join(worker)
    for worker in ("edge-0", "edge-1"):
        bench.push(worker, step=0)
        assert bench.answers(bench.push(worker, step=1)[1]) == []

    _, sent = bench.join("edge-2", joins=1)

    assert bench.answers(sent) == [("edge-2", 4), ("edge-0", 4), ("edge-1", 4)]


def test_who_does_not_join_in_time_is_not_waited_for(begin):
    """The round ends with those who came, a note says why; whoever comes later takes part."""
    bench = begin()
    round_of_one_worker(bench)
    bench.join("edge-1")
    bench.push("edge-1")
    assert bench.wait_until(JOIN_S - 0.1) == []

    note, *updates = bench.wait_until(JOIN_S)

    assert note == records.Note(text="edge-2 has not joined for 10 s")
    assert [each.worker for each in updates] == ["edge-0", "edge-1"]
    assert bench.left() == []
    assert bench.answers(bench.join("edge-2")[1]) == [("edge-2", 2)]
    bench.push("edge-0", step=1)
    bench.push("edge-1", step=1)
    assert len(bench.push("edge-2")[0]) == 3


def test_who_has_joined_is_not_expected_any_more(begin):
    """It may be silent as long as any other, and is not expected again after it has left."""
    bench = begin(plan={"silence_s": 30.0})
    for worker in ALL:
        bench.join(worker)
        bench.push(worker)
    bench.wait_until(29.9)
    assert bench.left() == []

    bench.wait_until(30.0)

    assert bench.left() == [(worker, "silence") for worker in ALL]
    assert bench.server.membership.expected == {}


def test_a_start_that_comes_again_expects_nobody_who_is_there(begin):
    """And none that the plan has not."""
    bench = begin()
    bench.join("edge-0")
    bench.wait_until(5.0)

    bench.tell(Start(sender="controller", workers=(*ALL, "stranger")))

    assert bench.server.membership.expected == {"edge-1": 0.0, "edge-2": 0.0}


def test_the_controller_may_say_that_one_will_not_come(begin):
    """Nobody waits for it; after the end it is of no interest."""
    bench = begin(plan={"stop_updates": 4})
    round_of_one_worker(bench)
    bench.join("edge-1")
    bench.push("edge-1")

    updates, _ = bench.fail("edge-2")

    assert [each.worker for each in updates] == ["edge-0", "edge-1"]
    bench.finish()
    assert bench.fail("edge-0") == ([], [])


def test_methods_that_wait_for_nobody_go_on_at_once(begin):
    """Whoever has yet to join."""
    for aggregation in ("asynchronous", "buffered"):
        bench = begin(aggregation)
        bench.join("edge-0")
        assert bench.answers(bench.push("edge-0")[1])[0][0] == "edge-0"
