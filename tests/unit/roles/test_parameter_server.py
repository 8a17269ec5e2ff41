"""The server applies what may be applied, answers whom it must, and refuses the rest without harm."""

import itertools

import numpy as np
import pytest
from node_plans import know_all

from edgebed.algorithms.update import ModelUpdate
from edgebed.core import records
from edgebed.roles.events import Connected, Journal, Send, Wake, Woken
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.wire.frames import encode, size_bytes
from edgebed.wire.messages import Checkpoint, Finish, Hello, Join, Model, Pull, Push, Refuse, Start, Tensor
from edgebed.wire.tensors import decode_dense, encode_update, split_frames

N = 6


STEPS = itertools.count()


def join(worker="edge-0", incarnation=1):
    """A worker takes part."""
    return Join(sender=worker, incarnation=incarnation)


def push(worker="edge-0", *, base=0, step=None, incarnation=1, update=None):
    """A push of all ones, and its frames; of a step that no push had before, unless one is named."""
    step = next(STEPS) if step is None else step
    tensor, frames = encode_update("update", update or ModelUpdate(N, None, np.ones(N, "f4")))
    return Push(sender=worker, incarnation=incarnation, step=step, base=base, loss=2.0, tensors=(tensor,)), frames


@pytest.fixture
def make_server(make_node):
    """`make_server(stop_updates=…)`: a server of edge-0 and edge-1 whose model is all zeros."""

    def make(**fields):
        plan = make_node("server", "server", **fields)
        return know_all(ParameterServer(plan, np.zeros(N, "f4"), ("edge-0", "edge-1")))

    return make


@pytest.fixture
def server(make_server):
    """A server without a last update."""
    return make_server()


@pytest.fixture
def tell(received):
    """`tell(server, message, frames, peer)`: what the server does about it."""

    def handle(server, message, frames=(), peer=""):
        return server.handle(received(message, frames, peer), 0.0)

    return handle


def models(effects):
    """(to, version, final, first parameter) of each model sent."""
    return [
        (effect.to, effect.message.version, effect.message.final,
         round(float(decode_dense(effect.message.tensors[0], effect.frames)[0]), 6))
        for effect in effects if isinstance(effect, Send) and isinstance(effect.message, Model)
    ]  # fmt: skip


def refusal(effects, peer):
    """The code of a refusal that was both told to the peer and journalled, and nothing else happened."""
    noted, answer = effects[-2:]
    assert [type(effect) for effect in effects[:-2]] in ([], [Journal])  # a dropped message is counted as such as well
    assert isinstance(noted.record, records.Refused)
    assert isinstance(answer.message, Refuse)
    assert (noted.record.peer, answer.to) == (peer, peer)
    assert noted.record.code == answer.message.code
    return answer.message.code


def test_a_worker_that_joins_is_recorded_and_gets_the_model(server, tell):
    """Version 0, on the connection it joined by."""
    effects = tell(server, join(), peer="edge-0~1")

    assert effects[0] == Journal(records.Joined(worker="edge-0", incarnation=1))
    assert models(effects) == [("edge-0~1", 0, False, 0.0)]
    assert len(effects) == 2


def test_a_push_is_applied_recorded_and_answered_with_the_new_model(server, tell):
    """Nobody else hears of it. It tells what had been handed out until then, without its own answer."""
    (answer,) = [effect for effect in tell(server, join()) if isinstance(effect, Send)]

    effects = tell(server, *push(base=0, step=3))

    assert effects[0] == Journal(
        records.Update(
            worker="edge-0", incarnation=1, step=3, version=1, base=0, staleness=0,
            entries=N, bits=N * 32, bytes=100, loss=2.0, sent=size_bytes(encode(answer.message, answer.frames)),
        )
    )  # fmt: skip
    assert models(effects[1:]) == [("edge-0", 1, False, -0.1)]
    assert len(effects) == 2


def test_a_model_that_was_sent_does_not_change_afterwards(server, tell):
    """It is a snapshot; those who get the same version share it."""
    first, second = tell(server, join())[-1], tell(server, join("edge-1"))[-1]
    assert first.frames is second.frames

    tell(server, *push())

    assert models([first]) == [("edge-0", 0, False, 0.0)]


def test_staleness_is_the_number_of_updates_since_the_pull(server, tell, journalled):
    """Of others: version - 1 - base."""
    tell(server, join())
    tell(server, join("edge-1"))
    for base in range(3):
        tell(server, *push("edge-1", base=base))

    (record,) = journalled(tell(server, *push("edge-0", base=0)))

    assert (record.staleness, record.version) == (3, 4)


def test_a_worker_that_is_not_in_the_plan_is_refused(server, tell):
    """`unknown-node`; it has no effect."""
    assert refusal(tell(server, join("edge-9")), "edge-9") == "unknown-node"
    assert refusal(tell(server, *push("edge-9")), "edge-9") == "not-joined"


def test_a_push_before_the_join_is_refused(server, tell):
    """`not-joined`: the server has restarted, or the worker is not what it says."""
    assert refusal(tell(server, *push()), "edge-0") == "not-joined"


def test_an_older_incarnation_is_refused_and_a_newer_one_takes_over(server, tell):
    """Join and push; what the new one does is applied."""
    tell(server, join(incarnation=2), peer="second")

    assert refusal(tell(server, join(incarnation=1), peer="first"), "first") == "stale-incarnation"
    assert refusal(tell(server, *push(incarnation=1), peer="first"), "first") == "stale-incarnation"
    assert models(tell(server, join(incarnation=3), peer="third")) == [("third", 0, False, 0.0)]
    assert refusal(tell(server, *push(incarnation=2), peer="second"), "second") == "stale-incarnation"
    assert models(tell(server, *push(incarnation=3), peer="third")) == [("third", 1, False, -0.1)]


def test_a_second_join_from_elsewhere_is_refused_and_from_the_same_connection_answered(server, tell):
    """Two nodes of one name cannot both take part; a join that is repeated is answered again, and recorded once."""
    tell(server, join(), peer="first")

    assert refusal(tell(server, join(), peer="other"), "other") == "duplicate"
    (again,) = tell(server, join(), peer="first")
    assert models([again]) == [("first", 0, False, 0.0)]


@pytest.mark.parametrize(
    "broken",
    [
        push(base=1), push(base=-1), push(update=ModelUpdate(N + 1, None, np.ones(N + 1, "f4"))),
        push(update=ModelUpdate(2**28, np.array([N]), np.ones(1, "f4"))),
        (Push(sender="edge-0", incarnation=1, step=0, base=0, loss=0.0,
              tensors=(Tensor("update", "float32", (N,), "sparse", 1, 4),)), [b"\0" * 8]),
        (Push(sender="edge-0", incarnation=1, step=0, base=0, loss=0.0,
              tensors=(Tensor("update", "int32", (N,), "dense", N),)), [bytes(4 * N)]),
    ],
    ids=["future base", "negative base", "too long", "other model", "no positions", "integers"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["asgd", "adacomp"])
def test_a_push_that_makes_no_sense_is_refused_and_changes_nothing(broken, method, make_server, tell, journalled):
    """`malformed`, counted as dropped; the next good one is applied as if nothing had been."""
    server = make_server()
    tell(server, join())

    effects = tell(server, *broken)

    assert refusal(effects, "edge-0") == "malformed"
    assert isinstance(journalled(effects)[0], records.Dropped)
    assert not server.aggregation.theta.any()
    assert models(tell(server, *push())) == [("edge-0", 1, False, -0.1)]


def test_a_message_that_no_server_gets_is_journalled_and_dropped(server, tell):
    """`start` is one that it gets and need not act upon."""
    (noted,) = tell(server, Hello(sender="edge-0", pid=1))

    assert noted.record.code == "malformed"
    assert tell(server, Start(sender="controller")) == []


def test_an_event_that_no_server_gets_is_a_bug_of_the_shell(server):
    """It asks for no work, so none can be done."""
    with pytest.raises(AssertionError, match="ParameterServer got"):
        server.handle(Connected(), 1.0)


def test_a_server_without_deadlines_asks_for_no_wake(server, tell):
    """And one that comes all the same means nothing."""
    effects = [*tell(server, join()), *tell(server, *push()), *server.handle(Woken("anything"), 1e9)]

    assert not [effect for effect in effects if isinstance(effect, Wake)]


def test_a_pull_is_held_until_its_version_is_reached(server, tell):
    """And answered with exactly this version, after the worker that reached it."""
    tell(server, join())
    assert tell(server, Pull(sender="evaluator", at_version=2)) == []
    assert models(tell(server, *push())) == [("edge-0", 1, False, -0.1)]

    reached = models(tell(server, *push(base=1)))

    assert reached == [("edge-0", 2, False, -0.2), ("evaluator", 2, False, -0.2)]
    assert models(tell(server, *push(base=2))) == [("edge-0", 3, False, -0.3)]


def test_a_pull_of_a_version_that_is_past_is_answered_at_once(server, tell):
    """With the model as it is now."""
    tell(server, join())
    tell(server, *push())

    assert models(tell(server, Pull(sender="evaluator", at_version=0))) == [("evaluator", 1, False, -0.1)]


def test_the_last_update_finishes_the_training_exactly(make_server, tell, sent):
    """Recorded, checkpointed, told to the evaluator and the worker; the next push is refused."""
    server = make_server(stop_updates=2)
    tell(server, join())
    tell(server, join("edge-1"))
    tell(server, Pull(sender="evaluator", at_version=100))
    tell(server, *push())

    effects = tell(server, *push(base=1))

    assert effects[1] == Journal(records.Finished(version=2, reason="2 updates were applied"))
    assert [(to, type(message)) for to, message in sent(effects)] == [
        ("controller", Checkpoint), ("evaluator", Model), ("edge-0", Model)
    ]  # fmt: skip
    assert models(effects) == [("evaluator", 2, True, -0.2), ("edge-0", 2, True, -0.2)]
    assert refusal(tell(server, *push("edge-1")), "edge-1") == "finished"
    assert server.aggregation.version == 2
    assert models(tell(server, join("edge-1"), peer="edge-1")) == [("edge-1", 2, True, -0.2)]


def test_finish_hands_over_the_model_and_answers_waiting_pulls_once(server, tell, sent):
    """A second `finish` changes nothing; later pulls are answered as final."""
    tell(server, join())
    tell(server, *push())
    tell(server, Pull(sender="evaluator", at_version=100))
    finish = Finish(sender="controller", reason="60 s have passed")

    effects = tell(server, finish)

    assert effects[0] == Journal(records.Finished(version=1, reason="60 s have passed"))
    to, checkpoint = sent(effects)[0]
    assert (to, checkpoint.version, checkpoint.final) == ("controller", 1, True)
    assert decode_dense(*split_frames(checkpoint.tensors, effects[1].frames)["theta"])[0] == np.float32(-0.1)
    assert models(effects) == [("evaluator", 1, True, -0.1)]
    assert tell(server, finish) == []
    assert models(tell(server, Pull(sender="evaluator", at_version=0))) == [("evaluator", 1, True, -0.1)]
