"""The controller brings the nodes up together, ends the trial for one reason, and says so exactly once."""

import pytest
from evaluated import evaluation
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.core.measures.task import Level
from edgebed.roles.control.controller import Phase
from edgebed.roles.control.ending import GRACE_S
from edgebed.roles.control.name import NAME
from edgebed.roles.events import (
    HealthChecked,
    Interrupted,
    Journal,
    NodeExited,
    NodeStarted,
    Send,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.wire import messages

ALL = ("server", "evaluator", "edge-0", "edge-1")


def told(effects):
    """(to, kind) of each message but the word on incarnations, which test_turned_nodes.py is about."""
    sent = [(effect.to, type(effect.message).__name__) for effect in effects if isinstance(effect, Send)]
    return [each for each in sent if each[1] != "Incarnations"]


UPDATE = records.Update(
    worker="edge-0", incarnation=1, step=0, version=1, base=0, staleness=0, entries=6, bits=192, bytes=90, loss=1.0
)
FINISHED = records.Finished(version=10, reason="10 updates were applied")


def evaluated(accuracy, version=5, *, final=False):
    """An evaluation."""
    return evaluation(version=version, accuracy=accuracy, loss=1.0, final=final)


def end_all(fleet):
    """Every node that is there says goodbye."""
    for name, state in fleet.states().items():
        if state in ("joined", "ready", "running"):
            fleet.bye(name)


# --- the beginning ---------------------------------------------------------------------------------------------------


def test_a_launch_expects_every_node_and_sets_the_deadline(fleet):
    """Nothing is sent yet."""
    expected = [Journal(records.Node(name=name, state="expected")) for name in ALL]

    assert fleet.effects == [*expected, Wake(60.0, "join")]


def test_a_node_is_told_what_it_is(fleet):
    """Its own plan, its data, an incarnation; the server also learns who may join."""
    (journal, send) = fleet.hello("server", "server~1")

    assert journal == Journal(records.Node(name="server", state="joined", incarnation=1, pid=1))
    assert (send.to, send.frames) == ("server~1", [b"server"])
    assert send.message.plan == fleet.controller.plan.node("server")
    assert (send.message.incarnation, send.message.peers) == (1, ("edge-0", "edge-1"))
    assert fleet.hello("edge-0")[1].message.peers == ()


def test_training_starts_when_all_are_ready_and_not_before(fleet):
    """Together, workers towards the data address, the evaluator towards the management address."""
    fleet.start(*ALL[:-1])
    fleet.hello("edge-1")
    assert "Start" not in [kind for _, kind in told(fleet.effects)]

    effects = fleet.ready("edge-1", now=3.0)

    assert told(effects) == [(name, "Start") for name in ALL]
    addresses = {
        e.to: dict(e.message.addresses).get("server")
        for e in effects
        if isinstance(e, Send) and isinstance(e.message, messages.Start)
    }
    assert addresses == {"server": None, "evaluator": "management", "edge-0": "data", "edge-1": "data"}
    assert fleet.records(records.Trial) == [
        records.Trial(scenario="test", trial="asgd", seed=1, runtime="process", nodes=4, parameters=6)
    ]
    assert Wake(63.0, "stall") in effects
    assert set(fleet.states().values()) == {"running"}


WAITED = "nodes are ready, and none has come up for 60 s (deadlines.join: 1m)"


def beginning(effects):
    """To whom: which workers it is told begin."""
    return {
        e.to: e.message.workers for e in effects if isinstance(e, Send) and isinstance(e.message, messages.Start)
    }  # fmt: skip


def test_the_server_alone_is_told_who_begins(fleet):
    """Workers themselves, and the evaluator, wait for nobody."""
    none = dict.fromkeys(("evaluator", "edge-0", "edge-1"), ())

    assert beginning(fleet.start().effects) == none | {"server": ("edge-0", "edge-1")}


def test_who_is_not_ready_in_time_does_not_begin(fleet):
    """The server waits for nobody whom the controller has given up."""
    fleet.start("server", "evaluator", "edge-0")

    assert beginning(fleet.do(Woken("join"), 60.0))["server"] == ("edge-0",)


def test_a_worker_that_is_missing_at_the_deadline_is_left_out_and_may_come_late(fleet):
    """Training starts without it; it is started when it is ready."""
    fleet.start("server", "evaluator", "edge-0")
    fleet.hello("edge-1")

    effects = fleet.do(Woken("join"), 60.0)

    why = "not ready, and none has come up for 60 s (deadlines.join: 1m)"
    missing = records.Node(name="edge-1", state="missing", incarnation=1, reason=why)
    assert effects[0] == Journal(missing)
    assert told(effects) == [(name, "Start") for name in ALL[:-1]]
    assert told(fleet.ready("edge-1", now=61.0)) == [("edge-1", "Start")]
    assert fleet.states()["edge-1"] == "running"


@pytest.mark.parametrize("vital", ["server", "evaluator"])
def test_without_server_or_evaluator_at_the_deadline_the_trial_fails(vital, fleet):
    """Nobody can be trained or measured."""
    fleet.start(*(name for name in ALL if name != vital))
    fleet.do(Woken("join"), 60.0)
    end_all(fleet)

    assert fleet.ended() == ("failed", f"{vital} not ready: 3 of 4 {WAITED}")
    assert fleet.records(records.Trial) == []


def test_without_any_worker_at_the_deadline_the_trial_fails(fleet):
    """There is nobody to train."""
    fleet.start("server", "evaluator")
    fleet.do(Woken("join"), 60.0)
    end_all(fleet)

    assert fleet.ended() == ("failed", f"no worker is ready: 2 of 4 {WAITED}")


def test_when_nobody_came_at_all_the_trial_is_over_at_once(fleet):
    """There is nobody to wait for."""
    fleet.do(Woken("join"), 60.0)

    assert fleet.ended() == ("failed", f"server, evaluator not ready: 0 of 4 {WAITED}")


def test_a_worker_that_dies_before_the_start_is_not_waited_for(fleet):
    """The others start as soon as they are ready."""
    fleet.start("server", "evaluator", "edge-0")

    effects = fleet.do(NodeExited("edge-1", "exit code 1"), 2.0)

    assert effects[0] == Journal(records.Node(name="edge-1", state="died", reason="exit code 1"))
    assert told(effects) == [(name, "Start") for name in ALL[:-1]]


@pytest.mark.parametrize("sign", ["started", "joined", "ready"])
def test_the_join_deadline_counts_from_the_last_sign_of_progress(sign, fleet):
    """A hundred containers may take their time, as long as one after the other comes up."""
    if sign == "ready":
        fleet.hello("edge-0")
    {
        "started": lambda: fleet.do(NodeStarted("edge-0"), 45.0),
        "joined": lambda: fleet.hello("edge-0", now=45.0),
        "ready": lambda: fleet.ready("edge-0", now=45.0),
    }[sign]()

    assert fleet.do(Woken("join"), 60.0) == [Wake(105.0, "join")]
    fleet.do(Woken("join"), 105.0)
    assert fleet.controller.ending.outcome == "failed"


def test_what_is_no_progress_does_not_move_the_join_deadline(fleet):
    """A death, a refused hello, a second `started`, a stranger."""
    fleet.do(NodeStarted("edge-0"), 0.0)
    fleet.hello("server")
    fleet.do(NodeStarted("edge-0"), 20.0)
    fleet.hello("edge-9", now=20.0)
    fleet.hello("server", now=20.0)
    fleet.ready("edge-0", now=20.0)
    fleet.do(NodeExited("edge-1", "exit code 1"), 20.0)

    fleet.do(Woken("join"), 60.0)
    assert fleet.controller.ending.outcome == "failed"


def test_a_started_node_is_waited_for_like_an_expected_one(fleet):
    """It is not there yet: it may die or be missing, and is not written to."""
    fleet.start("server", "evaluator", "edge-0")
    assert fleet.do(NodeStarted("edge-1"), 1.0) == [Journal(records.Node(name="edge-1", state="started"))]
    assert fleet.controller.phase is Phase.LAUNCHED

    effects = fleet.do(Woken("join"), 61.0)

    assert told(effects) == [(name, "Start") for name in ALL[:-1]]
    assert fleet.states()["edge-1"] == "missing"


def test_a_node_that_says_hello_before_it_is_heard_to_have_started_stays_joined(fleet):
    """The engine and the node are two ways, so either may be first."""
    fleet.hello("edge-0")

    assert fleet.do(NodeStarted("edge-0"), 1.0) == []
    assert fleet.states()["edge-0"] == "joined"


def test_a_node_that_ends_after_its_start_and_before_its_hello_has_died(fleet):
    """As one that never was heard of."""
    fleet.start("server", "evaluator", "edge-0")
    fleet.do(NodeStarted("edge-1"), 1.0)

    effects = fleet.do(NodeExited("edge-1", "exit code 1"), 2.0)

    assert effects[0] == Journal(records.Node(name="edge-1", state="died", reason="exit code 1"))
    assert told(effects) == [(name, "Start") for name in ALL[:-1]]


def test_the_join_deadline_means_nothing_once_training_has_started(fleet):
    """Its timer still comes."""
    fleet.start()

    assert fleet.do(Woken("join"), 60.0) == []


# --- who may join ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", ["edge-0", "elsewhere"], ids=["the same connection", "another connection"])
def test_a_second_hello_of_a_node_that_is_there_is_refused(peer, fleet):
    """The first one is not disturbed."""
    fleet.start()

    note, refusal = fleet.hello("edge-0", peer)

    assert isinstance(note.record, records.Note)
    assert (refusal.to, refusal.message.code) == (peer, "duplicate")
    assert (fleet.states()["edge-0"], fleet.controller.members["edge-0"].incarnation) == ("running", 1)


def test_a_hello_of_nobody_in_the_plan_is_refused(fleet):
    """And leaves no trace in the list of nodes."""
    assert [e.message.code for e in fleet.hello("edge-9") if isinstance(e, Send)] == ["unknown-node"]
    assert set(fleet.controller.members) == set(ALL)


def test_a_node_that_comes_back_gets_a_higher_incarnation(fleet):
    """And is started at once, while what its predecessor's connection still says is ignored."""
    fleet.start()
    fleet.do(NodeExited("edge-0", "killed by SIGKILL"), 5.0)

    configure = fleet.hello("edge-0", "edge-0~second")[1].message

    assert configure.incarnation == 2
    assert fleet.ready("edge-0", "edge-0") == []
    assert told(fleet.ready("edge-0", "edge-0~second")) == [("edge-0~second", "Start")]
    nodes = [(r.state, r.incarnation) for r in fleet.records(records.Node) if r.name == "edge-0"]
    assert nodes[-4:] == [("died", 1), ("joined", 2), ("ready", 2), ("running", 2)]


def test_a_hello_after_the_end_is_refused(fleet):
    """Nothing starts any more."""
    fleet.start()
    fleet.do(Interrupted())

    assert [e.message.code for e in fleet.hello("edge-9", "x") if isinstance(e, Send)] == ["unknown-node"]
    fleet.bye("edge-0")
    assert [e.message.code for e in fleet.hello("edge-0", "x") if isinstance(e, Send)] == ["finished"]


def test_messages_from_strangers_and_repeated_ones_have_no_effect(fleet):
    """A report, a goodbye, a `ready` that nobody waits for."""
    fleet.start()

    for node, peer in (("edge-0", "elsewhere"), ("edge-9", "edge-9")):
        assert fleet.bye(node, peer) == []
        assert fleet.ready(node, peer) == []
    assert fleet.ready("edge-0") == []
    assert set(fleet.states().values()) == {"running"}


# --- the end ---------------------------------------------------------------------------------------------------------


def test_a_trial_completes_with_the_final_evaluation(fleet):
    """Last update, final evaluation, everybody is stopped, everybody says goodbye."""
    fleet.start()
    fleet.report("server", UPDATE)
    assert told(fleet.report("server", FINISHED)) == [("evaluator", "Finish")]

    effects = fleet.report("evaluator", evaluated(0.9, final=True))

    assert told(effects) == [("server", "Finish"), *((name, "Stop") for name in ALL)]
    assert effects[-1] == Wake(fleet.now + GRACE_S, "grace")
    end_all(fleet)
    assert fleet.ended() == ("completed", "10 updates were applied")
    assert set(fleet.states().values()) == {"stopped"}


def test_a_final_evaluation_that_overtakes_the_servers_report_completes_the_trial_as_well(fleet):
    """They come over two connections, so either may be first."""
    fleet.start()
    fleet.report("evaluator", evaluated(0.9, final=True))
    fleet.report("server", FINISHED)
    end_all(fleet)

    assert fleet.ended() == ("completed", "the model is final at update 5")


def test_the_time_limit_counts_from_the_start_of_training(make_fleet):
    """The server is told to finish; the rest follows from that."""
    fleet = make_fleet(stop_time_s=30.0).start(now=7.0)
    assert Wake(37.0, "time") in fleet.effects

    assert told(fleet.do(Woken("time"), 37.0)) == [("server", "Finish")]
    fleet.report("server", records.Finished(version=3, reason="30 s have passed"))
    assert fleet.do(Woken("time"), 37.0) == []
    fleet.report("evaluator", evaluated(0.1, final=True))
    end_all(fleet)
    assert fleet.ended() == ("completed", "30 s have passed")


def test_the_accuracy_limit_ends_the_training_when_it_is_reached(make_fleet):
    """Not below it, and not before."""
    fleet = make_fleet(stop_level=Level("accuracy", 0.9)).start()

    assert fleet.report("evaluator", evaluated(0.8999)) == []
    (finish,) = fleet.report("evaluator", evaluated(0.9, 10))
    assert (finish.to, finish.message.reason) == ("server", "accuracy 0.9 reached 0.9 at update 10")


def test_a_lucky_evaluation_does_not_end_what_a_mean_is_to_end(make_fleet):
    """The mean of the last three decides, and there must be three, of different models."""
    fleet = make_fleet(stop_level=Level("accuracy", 0.9, 3)).start()

    for version, accuracy in enumerate((0.95, 0.95, 0.7, 0.92, 0.91)):
        for _ in range(3):
            assert fleet.report("evaluator", evaluated(accuracy, version)) == []
    (finish,) = fleet.report("evaluator", evaluated(0.9))
    assert finish.message.reason == "accuracy 0.91 (mean of 3 evaluations) reached 0.9 at update 5"


@pytest.mark.parametrize("vital", ["server", "evaluator"])
def test_the_death_of_server_or_evaluator_fails_the_trial(vital, fleet):
    """The others are stopped; the dead one is not written to."""
    fleet.start()

    effects = fleet.do(NodeExited(vital, "killed by SIGKILL"), 9.0)

    assert [to for to, kind in told(effects) if kind == "Stop"] == [name for name in ALL if name != vital]
    assert vital not in [to for to, _ in told(effects)]
    end_all(fleet)
    assert fleet.ended() == ("failed", f"the {vital} died: killed by SIGKILL")


def test_training_goes_on_without_a_worker_and_ends_without_the_last(fleet):
    """The fleet is what is left of it."""
    fleet.start()
    assert fleet.do(NodeExited("edge-0", "killed"), 5.0) == [
        Journal(records.Node(name="edge-0", state="died", incarnation=1, reason="killed"))
    ]

    fleet.do(NodeExited("edge-1", "killed"), 6.0)
    end_all(fleet)

    assert fleet.ended() == ("failed", "no worker is left; edge-1 was the last: killed")


def test_a_fleet_whose_workers_all_die_before_training_is_told_why(fleet):
    """Not that they were late: what killed the last of them."""
    fleet.start("server", "evaluator")
    fleet.do(NodeExited("edge-0", "out of memory"), 5.0)

    fleet.do(NodeExited("edge-1", "out of memory"), 6.0)
    end_all(fleet)

    assert fleet.ended() == ("failed", "no worker is left; edge-1 was the last: out of memory")


def test_a_worker_that_says_goodbye_before_the_end_has_died(fleet):
    """Whatever made it go: it was not told to."""
    fleet.start()
    fleet.bye("edge-0")

    assert fleet.states()["edge-0"] == "died"
    assert fleet.do(NodeExited("edge-0", "exit code 0")) == []


def test_workers_may_die_during_the_final_evaluation(fleet):
    """They are not needed any more."""
    fleet.start()
    fleet.report("server", FINISHED)
    fleet.do(NodeExited("edge-0", "killed"))
    fleet.do(NodeExited("edge-1", "killed"))
    fleet.report("evaluator", evaluated(0.9, final=True))
    end_all(fleet)

    assert fleet.ended()[0] == "completed"


def test_a_user_can_end_the_trial_at_any_time(make_fleet):
    """Before anybody came, while nodes join, while they train; a second request changes nothing."""
    for present in ((), ("server",), ALL):
        fleet = make_fleet()
        fleet.start(*present) if present else None
        fleet.do(Interrupted())
        assert fleet.do(Interrupted()) == []
        end_all(fleet)
        assert fleet.ended() == ("interrupted", "the user ended the run")


def test_a_trial_without_progress_is_ended(fleet):
    """Sixty seconds after the last update, not after the start."""
    fleet.start(now=0.0)
    fleet.report("server", UPDATE, now=40.0)

    assert fleet.do(Woken("stall"), 60.0) == [Wake(100.0, "stall")]
    fleet.do(Woken("stall"), 100.0)
    end_all(fleet)
    assert fleet.ended() == ("failed", "no update was applied for 60 s (deadlines.stall: 60 s)")


@pytest.mark.parametrize(("alive", "wakes", "lasts_s"), [((), [110], 60), (("evaluator",), [120, 650], 600)])
def test_a_final_evaluation_that_never_comes_ends_the_trial(fleet, alive, wakes, lasts_s):
    """The evaluator may be frozen; one that lives, under a small cap, has ten times as long."""
    fleet.start(now=0.0)
    fleet.report("server", FINISHED, now=50.0)
    fleet.do(HealthChecked(frozenset({"server", *alive})), 55.0)

    for now, due_s in zip((60.0, 600.0), wakes, strict=False):
        assert fleet.do(Woken("stall"), now) == [Wake(due_s, "stall")]
    fleet.do(Woken("stall"), wakes[-1])
    end_all(fleet)
    advice = "; the evaluator was at work: give it more CPU by `evaluator`, or more time by `deadlines.stall`"
    why = advice * bool(alive)
    assert fleet.ended() == ("failed", f"no final evaluation came for {lasts_s} s (deadlines.stall: 60 s{why})")


def test_nodes_that_do_not_say_goodbye_are_given_up_after_the_grace(fleet):
    """A frozen node never does."""
    fleet.start()
    fleet.do(Interrupted(), 10.0)
    fleet.bye("server")
    fleet.do(NodeExited("evaluator", "exit code 0"))

    fleet.do(Woken("grace"), 10.0 + GRACE_S)

    assert fleet.ended()[0] == "interrupted"
    assert fleet.states() == {"server": "stopped", "evaluator": "stopped", "edge-0": "died", "edge-1": "died"}
    reasons = [r.reason for r in fleet.records(records.Node) if r.state == "died"]
    assert reasons == [f"did not answer 'stop' within {GRACE_S:g} s"] * 2


@st.composite
def happenings(draw):
    """Things that happen, in any order."""
    node = st.sampled_from([*ALL, "edge-9"])
    said = st.sampled_from([UPDATE, FINISHED, evaluated(0.5), evaluated(0.95), evaluated(0.99, final=True)])
    return draw(
        st.lists(
            st.tuples(st.just("hello"), node, st.sampled_from(["", "other"]))
            | st.tuples(st.just("ready"), node, st.sampled_from(["", "other"]))
            | st.tuples(st.just("bye"), node, st.sampled_from(["", "other"]))
            | st.tuples(st.just("report"), node, said)
            | st.tuples(st.just("exit"), st.sampled_from(ALL))
            | st.tuples(st.just("started"), st.sampled_from(ALL))
            | st.tuples(st.just("wake"), st.sampled_from(["join", "stall", "time", "grace", "idle"]))
            | st.tuples(st.just("interrupt"))
            | st.tuples(st.just("start all")),
            max_size=40,
        )
    )


@settings(max_examples=8 * settings.default.max_examples)
@given(happened=happenings())
def test_whatever_happens_a_trial_ends_with_one_record_and_nothing_after_it(happened, make_fleet):
    """However the nodes behave, an interruption and its grace lead to exactly one Ended record, the last of all."""
    fleet = make_fleet(stop_time_s=30.0, stop_level=Level("accuracy", 0.9))
    for what, *details in happened:
        now = fleet.now + 10.0
        if what == "start all":
            fleet.start()
        elif what == "exit":
            fleet.do(NodeExited(details[0], "killed"), now)
        elif what == "started":
            fleet.do(NodeStarted(details[0]), now)
        elif what == "wake":
            fleet.do(Woken(details[0]), now)
        elif what == "interrupt":
            fleet.do(Interrupted(), now)
        elif what == "report":
            fleet.report(*details, now=now)
        else:
            getattr(fleet, what)(*details)
    fleet.do(Interrupted())
    fleet.do(Woken("grace"), fleet.now + GRACE_S)

    journal = [effect.record for effect in fleet.effects if isinstance(effect, Journal)]
    kinds = [type(record) for record in journal if not isinstance(record, records.Note)]
    assert kinds.count(records.Ended) == 1
    assert kinds[-1] is records.Ended
    assert kinds.count(records.Trial) <= 1
    assert fleet.controller.phase is Phase.OVER
    assert fleet.controller.ending.outcome in ("completed", "failed", "interrupted")
    assert all(effect.message.sender == NAME for effect in fleet.effects if isinstance(effect, Send))
    assert all(effect.to for effect in fleet.effects if isinstance(effect, Send))
