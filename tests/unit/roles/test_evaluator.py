"""The evaluator measures exact versions, or at fixed times, and the final model in any case."""

import numpy as np
import pytest
from evaluated import evaluation

from edgebed.core.records import Diverged
from edgebed.roles.evaluator import Evaluator
from edgebed.roles.events import (
    Compute,
    Computed,
    Connected,
    EndNode,
    Journal,
    MessageReceived,
    NodeExited,
    Send,
    Wake,
    Woken,
)
from edgebed.roles.work import EvaluationResult
from edgebed.wire.messages import Finish, Model, Pull, Refuse, Start
from edgebed.wire.tensors import encode_dense

START = Start(sender="controller", addresses=(("server", "x"),))
FINISH = Finish(sender="controller", reason="done")


def pull(at_version):
    """The model is asked for."""
    return Send("server", Pull(sender="evaluator", at_version=at_version))


def evaluated(version, *, final=False):
    """The event that a model was measured, and the record of it."""
    record = evaluation(version=version, accuracy=0.5, loss=1.0, final=final)
    return Computed(EvaluationResult(version, final, {"test": sums_of(0.5, 1.0)})), Journal(record)


def sums_of(accuracy, loss):
    """What is summed over one example."""
    return {"accuracy": (accuracy, 1.0), "loss": (loss, 1.0)}


@pytest.fixture
def by_updates(make_node):
    """An evaluator of every tenth version."""
    return Evaluator(make_node("evaluator", "evaluator", evaluate_every_updates=10))


@pytest.fixture
def by_time(make_node):
    """An evaluator of every fifth second."""
    return Evaluator(make_node("evaluator", "evaluator", evaluate_every_s=5.0))


def test_a_model_is_measured_as_it_came(by_updates, received):
    """With its version, and whether it is the final one."""
    tensor, frames = encode_dense("theta", np.arange(6, dtype="f4"))
    message = Model(sender="server", version=7, final=True, tensors=(tensor,))

    (compute,) = by_updates.handle(received(message, frames), 0.0)

    assert isinstance(compute, Compute)
    np.testing.assert_array_equal(np.arange(6, dtype="f4"), compute.job.theta)
    assert (compute.job.version, compute.job.final, compute.pause_s) == (7, True, 0.0)


def test_each_part_has_its_own_values(by_updates):
    """Those of the validation part beside those of the test part."""
    sums = {"test": sums_of(0.5, 1.0), "validation": sums_of(0.25, 2.0)}

    journal, _ = by_updates.handle(Computed(EvaluationResult(7, False, sums)), 0.0)

    assert journal.record.measured == {"accuracy": 0.5, "loss": 1.0}
    assert journal.record.validation == journal.record.selecting == {"accuracy": 0.25, "loss": 2.0}


def test_a_loss_that_is_not_finite_has_its_tensor(by_updates, received):
    """Of the model that was measured, the first time alone."""
    layout = by_updates.plan.task.layout
    said = []
    for version, loss in ((0, 1.0), (10, np.nan), (20, np.nan)):
        tensor, frames = encode_dense("theta", np.full(sum(each.size for each in layout), loss, "f4"))
        by_updates.handle(
            received(Model(sender="server", version=version, final=False, tensors=(tensor,)), frames), 0.0
        )
        effects = by_updates.handle(Computed(EvaluationResult(version, False, {"test": sums_of(0.5, loss)})), 0.0)
        said += [effect.record for effect in effects if isinstance(effect, Journal)]

    assert [record for record in said if isinstance(record, Diverged)] == [
        Diverged(step=10, what="parameter", tensor=layout[0].name)
    ]


def test_every_tenth_version_is_asked_for_ahead_of_time(by_updates, received):
    """The first at once; one that came late does not shift the others."""
    assert by_updates.handle(received(START), 0.0) == [pull(0)]
    for version, following in ((0, 10), (10, 20), (23, 30), (30, 40)):
        event, record = evaluated(version)
        assert by_updates.handle(event, 1.0) == [record, pull(following)]


def test_the_end_of_training_is_not_forgotten_while_a_model_is_measured(by_time):
    """The final model is asked for at once afterwards, not when the next evaluation would have been due."""
    by_time.handle(MessageReceived("controller", START, (), 0), 0.0)
    assert by_time.handle(MessageReceived("controller", FINISH, (), 0), 1.0) == []
    event, record = evaluated(7)

    assert by_time.handle(event, 2.0) == [record, pull(0)]


def test_the_final_evaluation_is_the_last(by_updates, by_time):
    """Nothing is asked for any more."""
    for evaluator in (by_updates, by_time):
        event, record = evaluated(40, final=True)
        assert evaluator.handle(event, 1.0) == [record]


def test_every_fifth_second_the_model_of_the_moment_is_asked_for(by_time, received):
    """Counted from when it was asked for last; an evaluation that takes longer is followed by the next at once."""
    event, record = evaluated(3)
    assert by_time.handle(received(START), 1.0) == [pull(0)]
    assert by_time.handle(event, 2.0) == [record, Wake(6.0, "evaluate")]
    assert by_time.handle(Woken("evaluate"), 6.0) == [pull(0)]
    assert by_time.handle(event, 12.0) == [record, pull(0)]
    assert by_time.handle(event, 13.0) == [record, Wake(17.0, "evaluate")]


def test_finish_while_idle_asks_for_the_final_model_and_the_old_timer_is_ignored(by_time, received):
    """Otherwise the final evaluation would be up to five seconds late."""
    event, record = evaluated(3)
    by_time.handle(received(START), 0.0)
    assert by_time.handle(event, 1.0) == [record, Wake(5.0, "evaluate")]

    assert by_time.handle(received(FINISH), 2.0) == [pull(0)]
    assert by_time.handle(Woken("evaluate"), 5.0) == []


def test_finish_while_a_model_is_awaited_changes_nothing(by_updates, by_time, received):
    """The server answers the pull that it holds."""
    for evaluator in (by_updates, by_time):
        evaluator.handle(received(START), 0.0)
        assert evaluator.handle(received(FINISH), 1.0) == []


def test_a_refusal_ends_the_evaluator(by_updates, received):
    """With the reason."""
    refusal = Refuse(sender="server", code="malformed", reason="because")

    assert by_updates.handle(received(refusal), 0.0) == [EndNode("refused by server (malformed): because")]


def test_what_no_evaluator_can_be_sent_is_a_bug(by_updates):
    """It hears of no node's end."""
    with pytest.raises(AssertionError, match="Evaluator got"):
        by_updates.handle(NodeExited("edge-0", "killed"), 0.0)


@pytest.mark.parametrize(
    "again", [Connected(), MessageReceived("controller", START, (), 0)], ids=["connected", "restarted"]
)
def test_who_waits_for_a_model_asks_again_when_the_server_can_be_reached_anew(again, by_updates, received):
    """For the same version; answered twice it measures once, and one that measures has nothing to ask for."""
    tensor, frames = encode_dense("theta", np.arange(6, dtype="f4"))
    model = received(Model(sender="server", version=10, final=False, tensors=(tensor,)), frames)
    by_updates.handle(received(START), 0.0)
    by_updates.handle(model, 0.0)
    assert by_updates.handle(again, 0.0) == []
    event, _ = evaluated(0)
    by_updates.handle(event, 1.0)

    assert by_updates.handle(again, 2.0) == [pull(10)]
    assert len(by_updates.handle(model, 3.0)) == 1
    assert by_updates.handle(model, 3.0) == []
