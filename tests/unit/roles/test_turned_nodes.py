"""A node that has the secret of a run and has turned against it: the server believes it as its role alone."""

import numpy as np
import pytest

from edgebed.algorithms.registry import AGGREGATIONS
from edgebed.algorithms.update import ModelUpdate
from edgebed.core import records
from edgebed.core.plan import Part
from edgebed.roles.events import NodeExited
from edgebed.roles.server.membership import WORD_S
from edgebed.wire.messages import Incarnations, Join, Push, Start
from edgebed.wire.tensors import encode_update


@pytest.fixture
def bench(make_bench):
    """A server of three workers that was told of nobody."""
    bench = make_bench()
    bench.server.membership.told.clear()
    return bench


def tell(bench, **incarnations):
    """The controller's word; edge_0 stands for edge-0."""
    workers = tuple((name.replace("_", "-"), incarnation) for name, incarnation in incarnations.items())
    return bench.tell(Incarnations(sender="controller", workers=workers))


# --- incarnations ---------------------------------------------------------------------------------------------------


def test_a_join_waits_for_the_word_of_the_controller(bench):
    """Whichever comes first."""
    assert bench.join("edge-0") == ([], [])
    tell(bench, edge_1=1)
    assert bench.answers(bench.join("edge-1")[1]) == [("edge-1", 0)]
    assert bench.answers(tell(bench, edge_0=1)[1]) == [("edge-0", 0)]
    assert bench.answers(bench.push("edge-0")[1]) == [("edge-0", 1)]


def test_an_incarnation_that_nobody_has_begun_joins_never_and_keeps_nobody_out(bench):
    """It is refused when the controller has had the time to tell of it; who is there goes on, and its next life too."""
    tell(bench, edge_0=1)
    bench.join("edge-0", peer="a")
    assert bench.join("edge-0", incarnation=2**53, peer="b") == ([], [])
    assert bench.answers(bench.push("edge-0", peer="a")[1]) == [("a", 1)]
    bench.wait_until(WORD_S - 0.1)
    assert not bench.kept(records.Refused)
    bench.wait_until(WORD_S)

    (refused,) = bench.kept(records.Refused)
    assert (refused.peer, refused.code) == ("b", "not-joined")
    assert bench.answers(bench.push("edge-0", peer="a")[1]) == [("a", 2)]
    tell(bench, edge_0=2)
    assert bench.answers(bench.join("edge-0", incarnation=2, peer="c")[1]) == [("c", 2)]


def test_joins_that_wait_are_few(bench):
    """One of a connection, a few for each worker; those of connections that have broken do not wait."""
    for peer in range(100):
        bench.join("edge-0", incarnation=7, peer=f"p{peer}")
    waiting = set(bench.server.membership.early)
    assert len(waiting) == 12
    assert len(bench.kept(records.Refused)) == 88
    for peer in waiting:
        bench.disconnect(peer)
    assert bench.server.membership.early == {}
    assert bench.answers(tell(bench, edge_0=7)[1]) == []


def test_the_controller_tells_the_server_of_each_incarnation_before_it_begins(make_world):
    """At the beginning of all, of one that was started anew, and of a server that was."""
    world = make_world(on_failure="restart").until(1.0)
    world.do(NodeExited("edge-1", "killed"))
    world.until(20.0)
    world.do(NodeExited("server", "killed"))
    world.until(40.0)

    told = [dict(message.workers) for message in world.told(Incarnations, "server")]
    assert told == [{"edge-0": 1, "edge-1": 1}, {"edge-0": 1, "edge-1": 2}, {"edge-0": 1, "edge-1": 2}]
    order = [(to.partition("~")[0], type(message).__name__) for _, to, message in world.sent]
    starts = [place for place, said in enumerate(order) if said == ("edge-1", "Start")]
    words = [place for place, said in enumerate(order) if said == ("server", "Incarnations")]
    assert words[0] < starts[0] < words[1] < starts[1] < words[2] < starts[2]


# --- replays --------------------------------------------------------------------------------------------------------


def test_a_push_that_comes_again_is_answered_and_reported_once(bench):
    """Each step once, however often it comes; nothing of it takes effect."""
    tell(bench, edge_0=1)
    bench.join("edge-0")
    bench.push("edge-0", step=0)
    bench.push("edge-0", step=1)
    model = bench.server.aggregation.theta.copy()
    for step in (1, 1, 0, 1, 0):
        assert bench.answers(bench.push("edge-0", step=step)[1]) == [("edge-0", 2)]

    said = bench.kept(records.Refused)
    assert [(record.code, record.worker) for record in said] == [("replayed", ""), ("replayed", "")]
    assert ["step 1 of edge-0" in said[0].reason, "step 0 of edge-0" in said[1].reason] == [True, True]
    np.testing.assert_array_equal(bench.server.aggregation.theta, model)
    assert len(bench.kept(records.Update)) == 2


def test_a_push_that_is_repeated_to_a_server_that_came_back_is_no_replay(bench):
    """The first time."""
    tell(bench, edge_0=1)
    bench.join("edge-0")
    bench.push("edge-0", step=0)
    bench.server.revive(bench.now)
    tell(bench, edge_0=1)
    bench.tell(Start(sender="controller", workers=("edge-0",)))

    assert bench.answers(bench.push("edge-0", step=0, peer="anew")[1]) == [("anew", 1)]
    assert not bench.kept(records.Refused)
    bench.push("edge-0", step=0, peer="anew")
    assert [record.code for record in bench.kept(records.Refused)] == ["replayed"]


# --- what is not finite ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, each in AGGREGATIONS.items() if len(each.Aggregation.vectors) == 1])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_where_that_is_asked_for(make_bench, name, value):
    """Whatever applies it: the model stays as it is, the worker is told and answered, and all others go on."""
    bench = make_bench(aggregation=Part(name=name), non_finite="refuse")
    for worker in ("edge-0", "edge-1", "edge-2"):
        bench.join(worker)
    model = bench.server.aggregation.theta.copy()
    wrong = ModelUpdate(6, np.array([1, 4]), np.array([1.0, value], "f4"))

    _, sent = bench.push("edge-0", update=wrong)

    assert bench.answers(sent) == [("edge-0", "not-finite"), ("edge-0", 0)]
    (refused,) = bench.kept(records.Refused)
    assert (refused.code, refused.worker, refused.step) == ("not-finite", "edge-0", 0)
    assert refused.reason == "1 of its 2 entries are not finite"
    np.testing.assert_array_equal(bench.server.aggregation.theta, model)
    for worker in ("edge-0", "edge-1", "edge-2"):
        bench.push(worker)
    assert np.isfinite(bench.server.aggregation.theta).all()
    assert [record.step for record in bench.kept(records.Update) if record.worker == "edge-0"] in ([1], [])


def test_a_loss_that_is_not_finite_is_refused_as_well(make_bench):
    """A schedule may go by it. By default all of it is taken."""
    tensor, frames = encode_update("update", ModelUpdate(6, None, np.ones(6, "f4")))
    push = Push(sender="edge-0", incarnation=1, step=0, base=0, loss=float("nan"), tensors=(tensor,))
    for choice, expected in (("refuse", "not-finite"), ("take", None)):
        bench = make_bench(non_finite=choice)
        bench.tell(Join(sender="edge-0", incarnation=1))
        bench.tell(push, frames)
        assert [record.code for record in bench.kept(records.Refused)] == [expected] * (expected is not None)
