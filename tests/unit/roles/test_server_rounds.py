"""The server of a synchronous method: rounds end for those who are there, and every push has its record."""

import numpy as np
import pytest

from edgebed.algorithms.update import ModelUpdate
from edgebed.core import records
from edgebed.core.plan import Part
from edgebed.wire.messages import Pull, Start


@pytest.fixture
def make_rounds(make_bench):
    """`make_rounds(quorum=…, deadline_s=…, plan={…})`: a synchronous server that all three workers have joined."""

    def make(plan=None, **settings):
        bench = make_bench(aggregation=Part(name="synchronous", settings=settings), **(plan or {}))
        for k in range(3):
            bench.join(f"edge-{k}")
        return bench

    return make


def test_a_round_is_recorded_push_by_push_and_everybody_gets_the_same_model(make_rounds):
    """With versions in a row in order of arrival, none of them stale; the evaluator comes last."""
    bench = make_rounds()
    bench.tell(Pull(sender="evaluator", at_version=2))
    assert bench.push("edge-2", step=7) == ([], [])
    assert bench.push("edge-0") == ([], [])

    updates, sent = bench.push("edge-1")

    assert [(each.worker, each.step, each.version, each.base, each.staleness) for each in updates] == [
        ("edge-2", 7, 1, 0, 0), ("edge-0", 0, 2, 0, 0), ("edge-1", 0, 3, 0, 0),
    ]  # fmt: skip
    assert bench.answers(sent) == [("edge-2", 3), ("edge-0", 3), ("edge-1", 3), ("evaluator", 3)]
    assert sent[0][1] is sent[1][1]
    np.testing.assert_allclose(bench.server.aggregation.theta, -0.1, rtol=1e-6)


def test_who_is_late_is_refused_and_gets_the_model(make_rounds):
    """It takes part in the round that is open now."""
    bench = make_rounds(quorum=0.5)
    bench.push("edge-0")
    bench.push("edge-1")

    (refused,), sent = bench.push("edge-2", base=0, step=4)

    assert (refused.code, refused.worker, refused.step) == ("late", "edge-2", 4)
    assert bench.answers(sent) == [("edge-2", "late"), ("edge-2", 2)]
    assert bench.push("edge-2", step=5) == ([], [])
    assert [update.version for update in bench.push("edge-0")[0]] == [3, 4]


def test_a_round_waits_as_long_as_somebody_computes(make_rounds):
    """Who waits at the barrier is not silent; who computes for longer than may be is, and the round ends."""
    bench = make_rounds(plan={"silence_s": 10.0})
    bench.push("edge-0")
    bench.push("edge-1")
    bench.wait_until(8.0)
    bench.join("edge-2", joins=1)
    assert bench.wait_until(17.9) == []

    left, *updates = bench.wait_until(18.0)

    assert (left.worker, left.reason) == ("edge-2", "silence")
    assert [update.version for update in updates] == [1, 2]
    assert bench.answers([each[:2] for each in bench.sent[-2:]]) == [("edge-0", 2), ("edge-1", 2)]
    bench.wait_until(27.9)
    assert bench.left() == [("edge-2", "silence")]


@pytest.mark.parametrize("how", ["oracle", "reset"])
def test_a_round_ends_when_the_one_it_waits_for_is_gone(how, make_rounds):
    """At once, or two seconds after the connection broke."""
    bench = make_rounds()
    bench.push("edge-0")
    bench.push("edge-1")
    if how == "oracle":
        bench.fail("edge-2")
    else:
        bench.disconnect("edge-2")
        bench.wait_until(2.0)

    assert bench.left() == [("edge-2", how)]
    assert bench.server.aggregation.version == 2


def test_a_push_counts_though_its_worker_is_gone_and_it_is_not_answered(make_rounds):
    """It was computed at the model of the round."""
    bench = make_rounds()
    bench.push("edge-0", step=3)
    bench.fail("edge-0")
    bench.push("edge-1")

    updates, sent = bench.push("edge-2")

    assert [(each.worker, each.step) for each in updates] == [("edge-0", 3), ("edge-1", 0), ("edge-2", 0)]
    assert bench.answers(sent) == [("edge-1", 3), ("edge-2", 3)]


def test_a_deadline_is_counted_from_the_first_push_of_a_round(make_rounds):
    """Of each round anew; one that has ended in time has none."""
    bench = make_rounds(deadline_s=5.0)
    bench.wait_until(3.0)
    bench.push("edge-0")
    bench.wait_until(6.0)
    bench.push("edge-1")
    assert bench.wait_until(7.9) == []
    assert [update.worker for update in bench.wait_until(8.0)] == ["edge-0", "edge-1"]

    for k in range(3):
        bench.push(f"edge-{k}", step=1)
    assert bench.server.aggregation.version == 5
    bench.wait_until(12.0)
    bench.push("edge-1", step=2)
    assert bench.wait_until(16.9) == []
    assert [update.worker for update in bench.wait_until(17.0)] == ["edge-1"]


def test_a_round_that_a_server_began_alone_ends_by_the_clock_of_the_resumed_trial(make_rounds):
    """Its controller was gone: the clock of the one that resumes the trial may be behind the round's beginning."""
    bench = make_rounds(deadline_s=5.0)
    bench.wait_until(70.0)
    bench.push("edge-0")
    snapshot, arrays = bench.server.snapshot()
    again = make_rounds(deadline_s=5.0)
    again.server.restore(snapshot, b"".join(arrays))
    again.now = 30.0
    again.server.revive(again.now)
    again.tell(Start(sender="controller", workers=("edge-0", "edge-1", "edge-2")))

    assert not [record for record in again.wait_until(34.9) if isinstance(record, records.Update)]
    assert [record for record in again.wait_until(35.1) if isinstance(record, records.Update)]


def test_a_worker_that_joins_in_the_middle_gets_the_model_at_once(make_rounds):
    """And is waited for; both pushes of one that has joined anew are applied, each with its join."""
    bench = make_rounds()
    bench.push("edge-0")
    bench.push("edge-1")
    assert bench.answers(bench.join("edge-0", joins=1)[1]) == [("edge-0", 0)]
    assert bench.push("edge-2") == ([], [])

    updates, sent = bench.push("edge-0", joins=1, step=1)

    assert [(each.worker, each.joins, each.step) for each in updates] == [
        ("edge-0", 0, 0), ("edge-1", 0, 0), ("edge-2", 0, 0), ("edge-0", 1, 1),
    ]  # fmt: skip
    assert bench.answers(sent) == [("edge-1", 4), ("edge-2", 4), ("edge-0", 4)]


def test_the_training_ends_with_the_round_that_reaches_the_last_update(make_rounds):
    """All of it is applied; one final checkpoint."""
    bench = make_rounds(plan={"stop_updates": 5, "checkpoint_every_updates": 2})
    for step in range(2):
        for k in range(3):
            bench.push(f"edge-{k}", step=step)

    assert bench.kept(records.Finished) == [records.Finished(version=6, reason="6 updates were applied")]
    assert [each[:2] for each in bench.checkpoints()] == [(3, False), (6, True)]


def test_what_a_round_holds_when_the_training_ends_is_refused(make_rounds):
    """Each by its number, each told."""
    bench = make_rounds()
    bench.push("edge-0", step=1)
    bench.push("edge-1", step=2)

    noted, sent = bench.finish()

    assert [(each.code, each.worker, each.step) for each in noted[1:]] == [
        ("finished", "edge-0", 1), ("finished", "edge-1", 2),
    ]  # fmt: skip
    assert bench.answers(sent) == [("edge-0", "finished"), ("edge-1", "finished")]
    assert bench.checkpoints() == [(0, True, 0.0)]


def test_changes_are_those_of_the_whole_round(make_rounds):
    """Also for one that was late, since the version that it has."""
    bench = make_rounds(plan={"pull": "changed-since"}, quorum=0.5)
    bench.push("edge-0", update=ModelUpdate(6, np.array([1]), np.ones(1, "f4")))
    _, sent = bench.push("edge-1", update=ModelUpdate(6, np.array([4]), np.ones(1, "f4")))
    assert [(message.since, message.tensors[0].entries) for _, message in sent] == [(0, 2), (0, 2)]

    _, sent = bench.push("edge-2", base=0)

    assert [(message.since, message.tensors[0].entries) for _, message in sent[1:]] == [(0, 2)]
