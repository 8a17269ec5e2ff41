"""A worker whose connection broke, or whose server was started anew, joins anew and goes on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.planned.fault import PointTrigger, Trigger
from edgebed.core.records import Pushes, Unanswered
from edgebed.roles.events import AtPoint, Compute, Computed, Connected, Journal, Send
from edgebed.roles.work import GradientResult
from edgebed.roles.worker import Worker
from edgebed.wire.messages import Join, Model, Proceed, Push, Reached, Refuse, Start, Tensor
from edgebed.wire.tensors import encode_dense

START = Start(sender="controller", addresses=(("server", "x"),))
PROCEED = Proceed(sender="controller")
RESULT = Computed(GradientResult((Tensor("update", "float32", (6,), "dense", 6),), [bytes(24)], 1.5, None, 0.0, 0.0))
POINTS = ("before-push", "during-push", "after-push", "during-pull", "after-pull")


def model(version, joins=0, *, final=False):
    """The answer to a join, or to a push of it."""
    tensor, frames = encode_dense("theta", np.full(6, version, "f4"))
    return Model(sender="server", version=version, final=final, joins=joins, tensors=(tensor,)), frames


def refusal(code):
    """A message that the server refused."""
    return Refuse(sender="server", code=code, reason="because")


def join(joins):
    """To the server."""
    return Send("server", Join(sender="edge-0", incarnation=1, joins=joins))


def unanswered(joins, step, reason="its connection had broken"):
    """It gives up."""
    return Journal(Unanswered(incarnation=1, joins=joins, step=step, reason=reason))


@pytest.fixture
def worker(make_node):
    """A worker that has not been told to start."""
    return Worker(make_node("edge-0", "worker"))


@pytest.fixture
def pushed(worker, received):
    """One that waits for the answer to its first push."""
    for event in (received(START), received(*model(0)), RESULT):
        worker.handle(event, 0.0)
    return worker


def test_who_waits_for_an_answer_when_its_connection_is_back_gives_it_up_and_joins_anew(pushed, received):
    """It says which push was not answered; its next one is of the new join and has the next number."""
    assert pushed.handle(Connected(), 0.0) == [unanswered(0, 0), join(1)]
    assert pushed.handle(Connected(), 0.0) == [unanswered(1, -1), join(2)]

    (compute,) = pushed.handle(received(*model(3, joins=2)), 0.0)
    assert isinstance(compute, Compute)
    ((push),) = pushed.handle(RESULT, 0.0)
    assert (push.message.joins, push.message.step, push.message.base) == (2, 1, 3)


def test_the_answer_to_an_earlier_join_is_not_used(pushed, received):
    """It came over the new connection, since the server had got the push after all: else there were two jobs."""
    pushed.handle(Connected(), 0.0)

    assert pushed.handle(received(*model(1, joins=0)), 0.0) == []
    assert len(pushed.handle(received(*model(2, joins=1)), 0.0)) == 1


def test_who_computes_when_its_connection_is_back_pushes_as_ever(worker, received):
    """Nothing of it was on its way; a server that has given it up refuses the push, and then it joins anew."""
    worker.handle(received(START), 0.0)
    worker.handle(received(*model(0)), 0.0)

    assert worker.handle(Connected(), 0.0) == []
    assert worker.handle(received(refusal("not-joined")), 0.0) == []
    assert worker.handle(received(START), 0.0) == []
    (push,) = worker.handle(RESULT, 0.0)
    assert isinstance(push.message, Push)
    assert worker.handle(received(refusal("not-joined")), 0.0) == [join(1)]


def test_a_second_start_means_that_the_server_is_elsewhere(worker, pushed, received):
    """What it was asked is given up; one that is done joins again, since the new server may know of fewer updates."""
    assert pushed.handle(received(START), 0.0) == [unanswered(0, 0, "the server was started anew"), join(1)]

    pushed.handle(received(*model(9, joins=1, final=True)), 0.0)
    assert pushed.handle(Connected(), 0.0) == []
    assert pushed.handle(received(START), 0.0) == [join(2)]


def test_a_push_that_came_too_late_for_its_round_is_followed_by_the_model(pushed, received):
    """It goes on waiting."""
    assert pushed.handle(received(refusal("late")), 0.0) == []
    assert len(pushed.handle(received(*model(2)), 0.0)) == 1


def test_who_is_done_stays_quiet(pushed, received):
    """Whatever still comes."""
    pushed.handle(received(refusal("finished")), 0.0)

    for event in (Connected(), received(refusal("finished")), received(refusal("not-joined")), received(*model(2))):
        assert pushed.handle(event, 0.0) == []


def test_the_account_tells_what_was_begun_and_what_was_pushed(worker, received):
    """Of this life."""
    accounts = [worker.pushes()]
    for event in (received(START), received(*model(0)), RESULT, received(*model(1))):
        worker.handle(event, 0.0)
        accounts.append(worker.pushes())

    assert accounts == [Pushes(incarnation=1, begun=b, pushed=p) for b, p in ((0, 0), (0, 0), (1, 0), (1, 1), (2, 1))]


class Shell:
    """Hands a worker whatever can come, in any order, and checks what it asks for."""

    def __init__(self, plan, received):
        self.worker = Worker(plan)
        self.received = received
        self.jobs = 0
        """Under way."""
        self.joins = []
        self.pushes = []
        self.begun = 0
        self.reached = []

    def happen(self, what):
        """`what` happens; a job is done, and a fault too, only where there is one."""
        if what == "computed":
            if not self.jobs:
                return
            self.jobs -= 1
        if what == "proceed" and not self.worker.paused:
            return
        before = self.worker.paused and what != "proceed"
        effects = self.worker.handle(self._event(what), 0.0)
        assert not (before and effects), "held, and does something"
        for effect in effects:
            self._note(effect)
        assert self.jobs <= 1

    def _event(self, what):
        match what:
            case "connected":
                return Connected()
            case "start":
                return self.received(START)
            case "computed":
                return RESULT
            case "proceed":
                return self.received(PROCEED)
            case ("model", joins, final):
                return self.received(*model(3, joins, final=final))
            case ("refuse", code):
                return self.received(refusal(code))
            case ("at", point):
                return AtPoint(point)
        raise AssertionError(what)

    def _note(self, effect):
        if isinstance(effect, Compute):
            self.jobs += 1
            self.begun += 1
            assert effect.job.step == len(self.pushes)
        elif isinstance(effect, Send) and isinstance(effect.message, Join):
            self.joins.append(effect.message.joins)
        elif isinstance(effect, Send) and isinstance(effect.message, Push):
            self.pushes.append(effect.message)
        elif isinstance(effect, Send) and isinstance(effect.message, Reached):
            self.reached.append((effect.message.fault, effect.message.step))


happenings = st.lists(
    st.sampled_from(["connected", "start", "computed", "proceed"])
    | st.tuples(st.just("model"), st.integers(0, 4), st.booleans())
    | st.tuples(st.just("refuse"), st.sampled_from(["not-joined", "late", "finished"]))
    | st.tuples(st.just("at"), st.sampled_from(POINTS)),
    max_size=60,
)


@given(
    happenings=happenings,
    points=st.lists(st.sampled_from(POINTS), max_size=3),
    probability=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_in_whatever_order_things_happen_a_worker_keeps_its_count(make_node, received, happenings, points, probability):
    """One job at a time; pushes without a gap, of the join before them; joins counted; each fault once for a push."""
    triggers = tuple(
        PointTrigger(fault=k, trigger=Trigger(point=p, probability=probability)) for k, p in enumerate(points)
    )
    shell = Shell(make_node("edge-0", "worker", points=triggers), received)
    for what in ["start", ("model", 0, False), *happenings]:
        shell.happen(what)

    assert [push.step for push in shell.pushes] == list(range(len(shell.pushes)))
    assert [push.joins for push in shell.pushes] == sorted(push.joins for push in shell.pushes)
    assert shell.joins == list(range(len(shell.joins)))
    assert shell.worker.pushes() == Pushes(incarnation=1, begun=shell.begun, pushed=len(shell.pushes))
    assert shell.begun - len(shell.pushes) in (0, 1)
    assert len(set(shell.reached)) == len(shell.reached)
