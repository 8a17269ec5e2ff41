"""A worker stops where a fault waits for it, tells the controller, and does nothing until it may proceed."""

import numpy as np
import pytest

from edgebed.core import chance
from edgebed.core.planned.fault import PointTrigger, Trigger
from edgebed.core.records import Pushes, Unanswered
from edgebed.roles.events import AtPoint, Await, Compute, Computed, Connected, Journal, Release, Send
from edgebed.roles.points import PointFaults
from edgebed.roles.work import GradientResult
from edgebed.roles.worker import Worker
from edgebed.wire.messages import Join, Model, Proceed, Push, Reached, Start, Tensor
from edgebed.wire.tensors import encode_dense

START = Start(sender="controller", addresses=(("server", "x"),))
PROCEED = Proceed(sender="controller")
RESULT = Computed(GradientResult((Tensor("update", "float32", (6,), "dense", 6),), [bytes(24)], 1.5, None, 0.0, 0.0))


def model(version):
    """A model that is not final."""
    tensor, frames = encode_dense("theta", np.full(6, version, "f4"))
    return Model(sender="server", version=version, final=False, tensors=(tensor,)), frames


def reached(fault, step, begun, pushed):
    """It says how far it has come, for it may be killed now, and then tells the controller."""
    account = Pushes(incarnation=1, begun=begun, pushed=pushed)
    return [Journal(account), Send("controller", Reached(sender="edge-0", fault=fault, step=step))]


@pytest.fixture
def make_worker(make_node):
    """`make_worker(point, …)`: a worker with a fault at each of these points, numbered from 0."""

    def make(*points, incarnation=1, **trigger):
        triggers = [Trigger(point=point, **trigger) for point in points]
        waiting = tuple(PointTrigger(fault=k, trigger=trigger) for k, trigger in enumerate(triggers))
        return Worker(make_node("edge-0", "worker", points=waiting), incarnation)

    return make


def test_before_a_push_nothing_leaves_until_the_fault_is_done(make_worker, received):
    """Then the push does, as if nothing had happened."""
    worker = make_worker("before-push")
    worker.handle(received(START), 0.0)
    worker.handle(received(*model(0)), 0.0)

    assert worker.handle(RESULT, 0.0) == reached(0, 0, begun=1, pushed=0)
    assert worker.handle(Connected(), 0.0) == []
    push, *kept, released = worker.handle(received(PROCEED), 0.0)
    assert released == Release()
    assert isinstance(push.message, Push)
    assert [type(effect) for effect in kept] == [Journal, Send], "what came meanwhile comes afterwards"


def test_after_a_pull_nothing_is_computed_until_the_fault_is_done(make_worker, received):
    """The first pull is that of the first push."""
    worker = make_worker("after-pull")
    worker.handle(received(START), 0.0)

    assert worker.handle(received(*model(7)), 0.0) == reached(0, 0, begun=0, pushed=0)
    compute, _ = worker.handle(received(PROCEED), 0.0)
    assert isinstance(compute, Compute)
    np.testing.assert_array_equal(compute.job.theta, np.full(6, 7, "f4"))


@pytest.mark.parametrize("point", ["during-push", "after-push"])
def test_what_only_the_shell_can_know_is_asked_of_it(point, make_worker, received):
    """Where the push is; an answer that comes meanwhile is kept."""
    worker = make_worker(point)
    assert [type(effect) for effect in worker.handle(received(START), 0.0)] == [Send]
    worker.handle(received(*model(0)), 0.0)

    _, awaited = worker.handle(RESULT, 0.0)
    assert awaited == Await(point)
    assert worker.handle(AtPoint(point), 0.0) == reached(0, 0, begun=1, pushed=1)
    assert worker.handle(received(*model(1)), 0.0) == []
    compute, _ = worker.handle(received(PROCEED), 0.0)
    assert compute.job.step == 1


def test_the_pull_of_a_push_comes_before_it(make_worker, received):
    """So that of step 1 begins as soon as push 0 is sent, and that of step 0 with the join."""
    first, second = make_worker("during-pull", step=0), make_worker("during-pull", step=1)
    for worker in (first, second):
        asked = worker.handle(received(START), 0.0)
        assert (Await("during-pull") in asked) == (worker is first)

    second.handle(received(*model(0)), 0.0)
    assert Await("during-pull") in second.handle(RESULT, 0.0)
    assert second.handle(AtPoint("during-pull"), 0.0) == reached(0, 1, begun=1, pushed=1)


def test_an_answer_shows_that_every_point_before_it_is_past(make_worker, received):
    """However late the shell is with what it was asked for; one by one, and then the answer is used."""
    worker = make_worker("during-push", "after-push", "during-pull", "after-pull", probability=1.0)
    worker.handle(received(START), 0.0)
    for event in (*model_of(received), *[received(PROCEED)] * 2, RESULT):
        worker.handle(event, 0.0)

    told = [worker.handle(received(*model(1)), 0.0), *(worker.handle(received(PROCEED), 0.0) for _ in range(3))]
    assert told == [reached(*place, begun=1, pushed=1) for place in ((0, 0), (1, 0), (2, 1), (3, 1))]
    assert worker.handle(AtPoint("after-push"), 0.0) == []
    compute, _ = worker.handle(received(PROCEED), 0.0)
    assert compute.job.step == 1


def model_of(received):
    """The first model, as the only event."""
    return [received(*model(0))]


def test_a_connection_that_broke_ends_what_was_awaited(make_worker, received):
    """The fault waits for the next push instead, where it waits for any."""
    worker = make_worker("after-push")
    worker.handle(received(START), 0.0)
    worker.handle(received(*model(0)), 0.0)
    worker.handle(RESULT, 0.0)

    given_up, join = worker.handle(Connected(), 0.0)
    assert isinstance(given_up.record, Unanswered)
    assert isinstance(join.message, Join)
    assert worker.handle(AtPoint("after-push"), 0.0) == [Release()]


def test_a_fault_happens_once_at_a_pull_that_it_broke(make_worker, received):
    """A cut there makes the worker pull again: the same draw must not cut it again, for ever."""
    worker = make_worker("during-pull", probability=1.0)
    worker.handle(received(START), 0.0)
    assert worker.handle(AtPoint("during-pull"), 0.0) == reached(0, 0, begun=0, pushed=0)
    worker.handle(received(PROCEED), 0.0)

    _, *asked = worker.handle(Connected(), 0.0)
    assert [type(effect) for effect in asked] == [Send]


def happens(make_node, incarnation, num_steps=50, **trigger):
    """At which pushes of a life a fault before the push happens."""
    waiting = (PointTrigger(fault=3, trigger=Trigger(point="before-push", **trigger)),)
    points = PointFaults(make_node("edge-0", "worker", points=waiting), incarnation)
    return [step for step in range(num_steps) if points.reached("before-push", step) is not None]


def test_a_fault_without_chance_happens_in_the_first_life_only(make_node):
    """At its step, or at the first; a worker that was started anew would die of it again and again."""
    assert happens(make_node, 1) == [0]
    assert happens(make_node, 1, step=12) == [12]
    assert happens(make_node, 2) == happens(make_node, 2, step=12) == []


def test_chance_is_drawn_for_each_push_of_each_life(make_node):
    """By the key that every runtime has."""
    for incarnation, life in ((1, "edge-0"), (2, "edge-0#2")):
        expected = [step for step in range(50) if chance.uniform(1, "fault/3", life, step) < 0.2]
        assert happens(make_node, incarnation, probability=0.2) == expected
        assert 0 < len(expected) < 25
    assert happens(make_node, 1, probability=0.2) != happens(make_node, 2, probability=0.2)
