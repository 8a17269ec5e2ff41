"""Parts of the controller by themselves: who is admitted, when training stops, and whose goodbye is awaited."""

import msgspec
import pytest
from evaluated import evaluation

from edgebed.core import records
from edgebed.core.measures.task import Level
from edgebed.roles.control.admission import Admission, NodeInputs
from edgebed.roles.control.director import Director
from edgebed.roles.control.ending import GRACE_S, Ending
from edgebed.roles.control.evaluations import Evaluations
from edgebed.roles.control.injector import Injector
from edgebed.roles.control.members import Members, State
from edgebed.roles.control.starting import Starting
from edgebed.roles.control.stopping import Stopping
from edgebed.roles.events import EndNode, Journal, MessageReceived, Send, Wake
from edgebed.wire import messages


@pytest.fixture
def members(make_plan):
    """Nodes that have all joined."""
    made = Members(make_plan())
    for name, member in made.items():
        member.peer = name
        made.become(name, State.JOINED)
    return made


def accuracy(value, version=7):
    """A measurement of the model."""
    return evaluation(version=version, accuracy=value, loss=0.1)


def test_a_change_of_state_is_journaled_once_and_only_who_is_there_is_sent_to(members):
    """Who has died hears nothing."""
    assert members.become("edge-0", State.JOINED) == []
    (died,) = members.become("edge-0", State.DIED, "killed")
    assert (died.record.name, died.record.state, died.record.reason) == ("edge-0", "died", "killed")
    assert members.send("edge-0", messages.Proceed(sender="controller")) == []
    assert len(members.send("edge-1", messages.Proceed(sender="controller"))) == 1


@pytest.mark.parametrize(
    ("sender", "code", "is_over", "refused"),
    [
        ("edge-7", "a", False, "unknown-node"),
        ("edge-1", "a", False, "duplicate"),
        ("edge-0", "a", True, "finished"),
        ("edge-0", "b", False, "other-code"),
        ("edge-0", "a", False, None),
    ],
)
def test_who_is_unknown_there_already_too_late_or_other_is_refused(
    make_plan, members, sender, code, is_over, refused
):  # fmt: skip
    """All others join."""
    members.become("edge-0", State.DIED)
    admission = Admission(make_plan(), lambda _: NodeInputs(), code="a")
    refusal = admission.refusal(messages.Hello(sender=sender, pid=1, code=code), members, is_over=is_over)
    assert (refusal and refusal[0]) == refused


def test_training_stops_when_the_mean_of_the_last_accuracies_is_reached(make_plan, members):
    """One alone is not enough."""
    stopping = Stopping(make_plan(stop_level=Level("accuracy", 0.8, 2)), members)
    assert stopping.measured(accuracy(0.99, 5)) == []
    assert stopping.measured(accuracy(0.5, 6)) == []
    assert stopping.reason == ""
    (send,) = stopping.measured(accuracy(1.1))
    assert send.to == "server"
    assert stopping.reason == send.message.reason == "accuracy 0.8 (mean of 2 evaluations) reached 0.8 at update 7"


def test_the_first_reason_to_stop_is_told_to_a_server_that_comes_back(make_plan, members):
    """Until the server says itself why it has finished."""
    stopping = Stopping(make_plan(stop_time_s=9.0, stop_level=Level("accuracy", 0.5)), members)
    stopping.measured(accuracy(0.6))
    stopping.timed_out()
    assert stopping.reason.startswith("accuracy")
    assert [effect.to for effect in stopping.finished(records.Finished(version=400, reason="400 updates"))] == [
        "evaluator"
    ]
    assert stopping.reason == "400 updates"


@pytest.mark.parametrize(
    ("last", "version", "missing"),
    [
        ((3.0, 20), 30, ""),
        ((3.0, 23), 30, ""),
        ((3.0, 40), 20, ""),
        ((3.0, 20), 38, "the evaluation of update 30 was"),
        ((3.0, 20), 50, "2 evaluations, of updates 30 to 40, were"),
        (None, 11, "2 evaluations, of updates 0 to 10, were"),
    ],
)
def test_what_an_evaluator_that_was_away_did_not_measure_is_noted_once(make_plan, make_node, last, version, missing):
    """When its next life has measured for the first time; a version that is measured late is missing as well."""
    nodes = (make_node("server", "server"), make_node("evaluator", "evaluator", evaluate_every_updates=10))
    evaluations = Evaluations(msgspec.structs.replace(make_plan(), nodes=nodes), last)
    found = evaluations.measured(9.0, evaluation(version=version, accuracy=0.5, loss=1.0), 2)
    again = evaluations.measured(9.9, evaluation(version=version + 30, accuracy=0.5, loss=1.0), 2)

    assert [note.record.text for note in found] == [f"{missing} not made: the evaluator was away"] * bool(missing)
    assert again == []


@pytest.mark.parametrize(("time_s", "missing"), [(4.9, 0), (6.9, 0), (7.1, 1), (9.1, 2)])
def test_of_evaluations_by_time_it_is_noted_how_many_were_not_made(make_plan, make_node, time_s, missing):
    """The one that comes late is one of those that were due."""
    nodes = (make_node("server", "server"), make_node("evaluator", "evaluator", evaluate_every_s=2.0))
    evaluations = Evaluations(msgspec.structs.replace(make_plan(), nodes=nodes), (3.0, 20))
    found = evaluations.measured(time_s, evaluation(version=50, accuracy=0.5, loss=1.0), 2)

    assert [note.record.text.partition(" ")[0] for note in found] == [str(missing)] * bool(missing)


def test_training_cannot_begin_without_a_vital_node_or_any_worker(make_plan, members):
    """It can without some of the workers."""
    starting = Starting(make_plan(), members, "process")
    for name in ("server", "evaluator", "edge-0"):
        members.become(name, State.READY)
    assert starting.missing([], 60.0, "")[1] == ""
    effects, why = starting.missing(["edge-1"], 60.0, "")
    assert ([effect.record.state for effect in effects], why) == (["missing"], "")
    members.become("edge-0", State.DIED)
    assert "no worker is ready" in starting.missing([], 60.0, "")[1]


def test_whoever_has_not_said_goodbye_after_the_grace_has_died(make_plan, members):
    """The trial ends with the reason that it was given."""
    director = Director(make_plan(), Injector(make_plan(), members))
    ending = Ending(members, director, lambda: 3.0)
    effects = ending.begin("completed", "enough", 10.0)
    assert effects[-1] == Wake(10.0 + 3.0 + GRACE_S, "grace")
    assert {effect.to for effect in effects if isinstance(effect, Send)} == set(members)
    for name in ("server", "evaluator", "edge-0"):
        members.become(name, State.STOPPED)
    assert ending.is_awaited

    late, ended, end = ending.close()
    assert (late.record.name, late.record.state) == ("edge-1", "died")
    assert (ended, end) == (Journal(records.Ended(outcome="completed", reason="enough")), EndNode("enough"))
    assert not ending.is_awaited


def test_who_gets_messages_of_a_node_hears_how_far_its_times_may_be_wrong(make_plan, members):
    """At once where it is there already, else with its plan; of a new life, which may be on another host, anew."""
    plan = make_plan()
    admission = Admission(plan, lambda _: NodeInputs())
    members.become("edge-1", State.DIED)
    record = records.Clock(offset_s=1000.0, own_s=5.0, drift=0.0, error_s=0.25, round_trip_s=0.5)
    told = admission.clock_told("server", record, members)
    heard = messages.Errors(sender="controller", nodes=(("server", 0.25),))
    hello = MessageReceived("edge-1~2", messages.Hello(sender="edge-1", pid=1), (), 0)
    again = MessageReceived("server~2", messages.Hello(sender="server", pid=1), (), 0)
    (configure,) = [effect.message for effect in admission.admit(hello, 1, members) if isinstance(effect, Send)]

    assert Send("edge-0", heard) in told
    assert "edge-1" not in {effect.to for effect in told}
    assert configure.errors == (("server", 0.25),)
    members.become("server", State.DIED)
    admission.admit(again, 1, members)
    assert admission.errors == {}
