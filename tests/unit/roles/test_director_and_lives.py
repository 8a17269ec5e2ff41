"""Nodes come back, nothing waits for those that do not, and a trial can go on after its controller was gone."""

import pytest
from staged_world import World, fault, inject

from edgebed.core import records
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange
from edgebed.roles.control.controller import Phase, ResumedTrial
from edgebed.roles.control.pending_actions import ON_FAILURE
from edgebed.roles.events import (
    CommandReceived,
    CommandResult,
    HealthChecked,
    NodeExited,
)  # fmt: skip
from edgebed.wire import messages

# --- lives -----------------------------------------------------------------------------------------------------------


def test_a_node_that_is_restarted_has_a_new_incarnation(make_world):
    """Killed, and launched when its time has come."""
    world = make_world(fault("edge-0", inject("edge-0", "kill"), inject("edge-0", "launch", 3.0), at_s=1.0)).until(10)

    assert world.state("edge-0") == "running"
    assert world.controller.members["edge-0"].incarnation == 2
    assert [message.incarnation for message in world.told(messages.Configure, "edge-0")] == [1, 2]
    assert len(world.told(messages.Start, "edge-0")) == 2


def test_a_launch_waits_for_the_end_of_the_life_before(make_world):
    """Both are asked for at once, as by hand."""
    world = make_world()
    orders = Injection(node="edge-0", action="kill"), Injection(node="edge-0", action="launch")
    world.do(CommandReceived(1, orders))
    assert [action for _, _, action in world.injected] == ["kill"]
    world.until(1.0)

    assert world.state("edge-0") == "running"
    assert world.answers == [CommandResult(1, "")]


def test_a_node_that_dies_is_restarted_when_it_is_dead(make_world):
    """Asked for just after the kill, it does not have to be killed once more."""
    world = make_world()
    kill, launch = Injection(node="edge-0", action="kill"), Injection(node="edge-0", action="launch")
    world.do(CommandReceived(1, (kill,)))
    world.do(CommandReceived(2, (kill, launch)))
    assert [action for _, _, action in world.injected] == ["kill"]
    world.until(1.0)

    assert world.state("edge-0") == "running"
    assert world.answers == [CommandResult(1, ""), CommandResult(2, "")]


def test_a_new_life_finds_its_link_and_its_cap_as_they_were(make_world):
    """The device died, its street did not; nothing of that is journaled as a fault."""
    change = LinkChange(uplink_bit_s=1_000_000)
    world = make_world(
        fault("edge-0", inject("edge-0", "link", change=change), inject("edge-0", "cut", 1.0),
              inject("edge-0", "cpus", 1.0, cpus=0.5), at_s=1.0),
        fault("edge-0", inject("edge-0", "kill"), inject("edge-0", "launch", 1.0), at_s=5.0),
    ).until(10.0)  # fmt: skip

    assert [action for t, _, action in world.injected if t > 6.05] == ["link", "cut", "cpus"]
    told = [message.injection.action for message in world.told(messages.Inject, "edge-0")]
    assert told == 2 * ["link", "cut", "cpus"]
    assert len(world.faults()) == 5


def test_changes_of_one_link_add_up_until_it_is_as_planned_again(make_world):
    """The later one counts where both say something; each is journaled in the words of a scenario."""
    first = LinkChange(uplink_bit_s=1_000_000, latency_s=0.04)
    second = LinkChange(uplink_bit_s=2_000_000, loss=0.01)
    restart = inject("edge-0", "kill"), inject("edge-0", "launch", 1.0)
    world = make_world(
        fault("edge-0", inject("edge-0", "link", change=first), inject("edge-0", "link", 30.0), at_s=1.0),
        fault("edge-0", inject("edge-0", "link", change=second), at_s=2.0),
        fault("edge-0", *restart, at_s=10.0),
        fault("edge-0", *restart, at_s=40.0),
    ).until(50.0)

    changes = [record.change for _, record in world.journal if isinstance(record, records.Fault) and record.change]
    assert changes == ["uplink 1mbit, latency 40ms", "uplink 2mbit, loss 1%", "as planned"]
    again = [m.injection.change for t, to, m in world.sent
             if to == "edge-0~011" and isinstance(m, messages.Inject)]  # fmt: skip
    assert again == [LinkChange(uplink_bit_s=2_000_000, latency_s=0.04, loss=0.01), None]
    assert not [m for _, to, m in world.sent if to == "edge-0~0111" and isinstance(m, messages.Inject)]


def test_the_other_end_of_a_link_hears_what_is_asked_of_it_also_in_a_new_life(make_world):
    """The server compares what comes with what a link may carry; a worker's cap is none of its business."""
    change = LinkChange(uplink_bit_s=1_000_000)
    world = make_world(
        fault("edge-0", inject("edge-0", "link", change=change), inject("edge-0", "cpus", cpus=0.5), at_s=1.0),
        fault("server", inject("server", "kill"), inject("server", "launch", 1.0), at_s=5.0),
        fault("server", inject("server", "cut"), at_s=8.0),
    ).until(10.0)

    assert [(m.injection.node, m.injection.action) for m in world.told(messages.Inject, "server")] == [
        ("edge-0", "link"), ("edge-0", "link"), ("server", "cut"),
    ]  # fmt: skip
    assert [(m.injection.node, m.injection.action) for m in world.told(messages.Inject, "edge-1")] == [
        ("server", "cut")
    ]
    assert len(world.faults()) == 5


def test_the_server_goes_on_from_its_checkpoint_and_all_hear_where_it_is(make_world):
    """Every running node is told to start again, with the new address."""
    world = make_world(fault("server", inject("server", "kill"), inject("server", "launch", 2.0), at_s=5.0)).until(5.5)
    assert world.state("server") == "died"
    world.versions["server"] = 40
    world.until(10.0)

    assert [r for _, r in world.journal if isinstance(r, records.Restored)] == [
        records.Restored(version=40, incarnation=2)
    ]
    assert [dict(m.addresses)["server"] for m in world.told(messages.Start, "edge-1")] == [
        "data server~01",
        "data server~011",
    ]
    assert world.controller.phase is Phase.RUNNING


def test_a_server_that_is_back_hears_who_is_there(make_world):
    """They join anew; who has died meanwhile is not waited for."""
    world = make_world(
        fault("server", inject("server", "kill"), inject("server", "launch", 2.0), at_s=5.0),
        fault("edge-0", inject("edge-0", "kill"), at_s=6.0, name="fault-2"),
    ).until(20.0)

    assert [m.workers for m in world.told(messages.Start, "server")] == [("edge-0", "edge-1"), ("edge-1",)]


def test_a_finish_that_the_server_missed_is_said_when_it_is_back(make_world):
    """The time was over while it was away."""
    restart = inject("server", "kill"), inject("server", "launch", 10.0)
    world = make_world(fault("server", *restart, at_s=5.0), stop_time_s=8.0).until(20.0)

    assert [m.reason for m in world.told(messages.Finish, "server")] == ["8 s have passed"]


def test_a_death_under_a_policy_is_followed_by_a_new_life(make_world):
    """Also one that nobody planned."""
    world = make_world(on_failure="restart", restart_delay_s=2.0)
    world.do(NodeExited("edge-0", "exit code 1"))
    world.until(1.9)
    assert world.state("edge-0") == "died"
    world.until(3.0)

    assert world.state("edge-0") == "running"
    (record,) = [r for _, r in world.journal if isinstance(r, records.Fault)]
    assert (record.name, record.action) == (ON_FAILURE, "launch")


def test_a_planned_restart_keeps_its_delay_under_a_policy(make_world):
    """The policy's own would come first."""
    steps = inject("edge-0", "kill"), inject("edge-0", "launch", 8.0)
    world = make_world(fault("edge-0", *steps, at_s=1.0), on_failure="restart").until(8.9)

    assert world.state("edge-0") == "died"
    assert world.until(10.0).state("edge-0") == "running"


def test_a_server_that_would_die_again_is_not_started_again(make_world):
    """Neither by a policy nor by a fault that is to come: the trial fails at once, for the server's reason."""
    kills = [fault("server", inject("server", "kill"), inject("server", "launch"), at_s=at_s) for at_s in (9.0, 99.0)]
    world = make_world(*kills, on_failure="restart")
    world.say("server", messages.Bye(sender="server", reason="its log is damaged", recurs=True))
    world.until(20.0)

    assert world.ended() == ("failed", "the server died: its log is damaged")
    assert world.injected == []


def test_a_worker_that_would_die_again_is_left_to_itself(make_world):
    """The others go on."""
    world = make_world(on_failure="restart", restart_delay_s=1.0)
    world.say("edge-0", messages.Bye(sender="edge-0", reason="no", recurs=True))
    world.until(5.0)

    assert world.state("edge-0") == "died"
    assert world.controller.phase is Phase.RUNNING


def test_a_policy_may_end_the_trial(make_world):
    """It says which node, and why."""
    world = make_world(on_failure="stop")
    world.do(NodeExited("edge-0", "exit code 1"))
    world.until(1.0)

    assert world.ended() == ("failed", "edge-0 died: exit code 1 (on_failure: stop)")


# --- checks ----------------------------------------------------------------------------------------------------------

EVERYBODY = frozenset({"server", "evaluator", "edge-0", "edge-1"})


def test_two_missed_checks_in_a_row_are_a_failure_and_one_sign_ends_it(make_world):
    """One is not; the server hears nothing of it."""
    world = make_world()
    world.do(HealthChecked(EVERYBODY - {"edge-0"}))
    world.do(HealthChecked(EVERYBODY))
    world.do(HealthChecked(EVERYBODY - {"edge-0"}))
    assert world.state("edge-0") == "running"
    world.do(HealthChecked(EVERYBODY - {"edge-0"}))
    assert world.state("edge-0") == "unresponsive"
    world.do(HealthChecked(EVERYBODY))

    assert world.state("edge-0") == "running"
    assert not world.told(messages.Failed)


def test_an_oracle_tells_the_server(make_world):
    """Of a death, and of a missing sign of life."""
    world = make_world(detector="oracle")
    world.do(NodeExited("edge-0", "exit code 1"))
    world.do(HealthChecked(EVERYBODY - {"edge-1"}))
    world.do(HealthChecked(EVERYBODY - {"edge-1"}))

    assert [message.node for message in world.told(messages.Failed, "server")] == ["edge-0", "edge-1"]


def test_a_node_without_a_sign_of_life_is_restarted_by_a_policy(make_world):
    """It is killed first."""
    world = make_world(on_failure="restart")
    for _ in range(2):
        world.do(HealthChecked(EVERYBODY - {"edge-0"}))
    world.until(5.0)

    assert [action for _, _, action in world.injected] == ["kill", "launch"]
    assert world.state("edge-0") == "running"


def test_a_policy_brings_back_those_that_the_scenario_freezes_for_good(make_world):
    """So the trial goes on, though for a moment nobody trains."""
    frozen = (fault(f"edge-{k}", inject(f"edge-{k}", "freeze"), at_s=1.0) for k in range(2))
    world = make_world(*frozen, on_failure="restart").until(2.0)
    for _ in range(2):
        world.do(HealthChecked(EVERYBODY - {"edge-0", "edge-1"}))
    world.until(5.0)

    assert not world.over
    assert [world.state(f"edge-{k}") for k in range(2)] == ["running", "running"]


def test_a_node_that_comes_while_the_server_is_frozen_is_told_where_it_is(make_world):
    """It can be reached there as soon as it is thawed, of which nobody else need be told."""
    steps = inject("edge-0", "kill"), inject("edge-0", "launch", 3.0)
    world = make_world(fault("edge-0", *steps, at_s=1.0))
    for _ in range(2):
        world.do(HealthChecked(EVERYBODY - {"server"}))
    assert world.until(5.0).state("server") == "unresponsive"

    assert world.state("edge-0") == "running"
    assert [dict(message.addresses)["server"] for message in world.told(messages.Start, "edge-0")] == [
        "data server~01"
    ] * 2
    assert len(world.told(messages.Start, "edge-1")) == 1


# --- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["kill", "freeze", "cut"])
def test_a_trial_ends_at_once_when_nobody_is_left(make_world, action):
    """However they went; a frozen one is not waited for."""
    world = make_world(*(fault(f"edge-{k}", inject(f"edge-{k}", action), at_s=1.0 + k) for k in range(2))).until(3.0)

    outcome, reason = world.ended()
    assert outcome == "failed"
    assert "no worker is left" in reason


@pytest.mark.parametrize(("action", "undone"), [("kill", "launch"), ("freeze", "thaw"), ("cut", "heal")])
def test_a_trial_goes_on_while_somebody_comes_back(make_world, action, undone):
    """Nobody is there for half a minute, longer than a stall may last."""
    faults = [
        fault(f"edge-{k}", inject(f"edge-{k}", action), inject(f"edge-{k}", undone, 30.0), at_s=1.0) for k in (0, 1)
    ]
    world = make_world(*faults, stall_deadline_s=5.0).until(35.0)

    assert not world.over
    assert world.state("edge-0") == "running"
    world.until(45.0)
    assert world.ended()[1] == "no update was applied for 5 s (deadlines.stall: 5 s)"


def test_a_dead_server_ends_the_trial_and_is_named(make_world):
    """Unless it comes back."""
    world = make_world(fault("server", inject("server", "kill"), at_s=1.0)).until(3.0)

    assert world.ended() == ("failed", "the server died: killed by SIGKILL")


@pytest.mark.parametrize("action", ["freeze", "cut"])
def test_a_server_that_is_stopped_for_good_ends_the_trial_and_is_named(make_world, action):
    """Nobody can train with it; one that is to come back is waited for."""
    world = make_world(fault("server", inject("server", action), at_s=1.0)).until(1.5)

    assert world.ended() == ("failed", "the server is frozen or cut off, and nothing undoes it")
    undone = {"freeze": "thaw", "cut": "heal"}[action]
    other = make_world(fault("server", inject("server", action), inject("server", undone, 9.0), at_s=1.0)).until(9.0)
    assert not other.over


def test_nodes_that_are_frozen_by_hand_may_be_thawed_by_hand(make_world):
    """The trial does not end at once."""
    world = make_world()
    world.do(CommandReceived(1, tuple(Injection(node=f"edge-{k}", action="freeze") for k in range(2))))
    world.until(2.0)

    assert not world.over


def test_a_trial_that_ends_tells_whoever_waits(make_world):
    """Nobody waits for an answer for ever."""
    world = make_world()
    world.do(CommandReceived(1, (Injection(node="edge-0", action="freeze"),)))
    world.do(NodeExited("server", "exit code 1"))
    world.until(10.0)

    assert [answer.problem for answer in world.answers] == ["the trial has ended"]


# --- going on after the controller was gone --------------------------------------------------------------------------


def test_a_trial_that_goes_on_does_not_repeat_what_has_been(make_plan):
    """Neither faults by time nor by update, but that who was frozen is so again; lives are counted on."""
    faults = (
        fault("edge-0", inject("edge-0", "freeze"), at_s=5.0),
        fault("edge-0", inject("edge-0", "freeze"), at_update=30),
        fault("edge-1", inject("edge-1", "freeze"), at_s=100.0),
    )
    plan = make_plan(2, faults=faults, stall_deadline_s=500.0)
    incarnations = {"server": 1, "evaluator": 1, "edge-0": 3, "edge-1": 1}
    past = ResumedTrial(began_s=2.0, until_s=50.0, trained_s=48.0, updates=50, incarnations=incarnations)
    world = World(plan, past, now=50.0, version=20)
    world.until(101.0).update(60)

    assert world.injected == [(50.0, "edge-0", "freeze")]
    assert world.controller.members["edge-0"].incarnation == 4
    assert world.until(102.5).injected[1:] == [(102.0, "edge-1", "freeze")]


def test_while_a_trial_comes_up_again_nothing_is_due(make_plan):
    """Training stands still: what is to come comes as long after the start as it would have come after the end."""
    faults = (
        fault("edge-0", inject("edge-0", "freeze"), at_s=48.0),
        fault("edge-1", inject("edge-1", "cut"), inject("edge-1", "heal"), at_s=47.9),
    )
    past = ResumedTrial(began_s=2.0, until_s=49.95, trained_s=47.95, updates=0, incarnations={})
    world = World(make_plan(3, faults=faults, stop_time_s=49.0), past, now=51.0)

    assert world.until(51.5).injected == [(pytest.approx(51.05), "edge-0", "freeze")]
    assert not world.controller.stopping.reason
    assert world.until(52.1).controller.stopping.reason == "49 s have passed"


def test_what_was_due_while_nodes_went_on_alone_is_done_when_there_is_a_controller(make_plan):
    """The server's log tells how long that was; it counts as training."""
    plan = make_plan(3, faults=(fault("edge-0", inject("edge-0", "freeze"), at_s=60.0),))
    past = ResumedTrial(began_s=2.0, until_s=50.0, trained_s=48.0, updates=10, incarnations={})
    update = records.Update(
        worker="edge-0", incarnation=1, step=0, version=11, base=0, staleness=0, entries=1, bits=1, bytes=1, loss=1.0
    )
    world = World(plan, past, now=90.0, version=20, brought=[(63.0, update), (64.0, update)])
    (starts,) = [record for _, record in world.journal if isinstance(record, records.Trial)]

    assert starts.trained_s == 62.0
    assert {message.began_s for message in world.told(messages.Start)} == {28.0}
    assert world.injected == [(90.0, "edge-0", "freeze")]


def test_what_a_fault_had_done_to_links_and_caps_holds_when_the_trial_goes_on(make_plan):
    """Until it is undone, however it was triggered: every node is a new one at the same place, as away as it was."""
    slow = LinkChange(uplink_bit_s=1_000_000)
    faults = (
        fault("edge-0", inject("edge-0", "cut"), inject("edge-0", "heal", 20.0), at_s=10.0, name="by time"),
        fault("edge-1", inject("edge-1", "cut"), inject("edge-1", "heal", 2.0), at_s=10.0, name="over"),
        fault("edge-1", inject("edge-1", "link", change=slow), at_update=30, name="by update"),
        fault("edge-1", inject("edge-1", "cpus", cpus=0.5), inject("edge-1", "cpus", 50.0), at_update=40, name="cap"),
        fault("edge-2", inject("edge-2", "freeze"), inject("edge-2", "thaw", 20.0), at_s=10.0, name="freeze"),
        fault("edge-2", inject("edge-2", "kill"), inject("edge-2", "launch", 15.0), at_s=5.0, name="restart"),
    )
    asked_s = {("by time", "edge-0"): 10.0, ("by update", "edge-1"): 11.0, ("cap", "edge-1"): 12.0}
    past = ResumedTrial(began_s=2.0, until_s=17.0, trained_s=15.0, updates=50, incarnations={}, triggered_s=asked_s)
    world = World(make_plan(3, faults=faults), past, now=17.0)
    assert world.injected == [
        (17.0, "edge-0", "cut"), (17.0, "edge-1", "link"), (17.0, "edge-1", "cpus"), (17.0, "edge-2", "kill"),
    ]  # fmt: skip
    assert world.told(messages.Inject, "edge-1")[0].injection.change == slow
    assert world.until(63.0).faults() == [
        ("kill", "edge-2", ""), ("launch", "edge-2", ""), ("thaw", "edge-2", "it is not frozen"),
        ("heal", "edge-0", ""),
    ]  # fmt: skip

    assert world.injected[4:] == [(22.0, "edge-2", "launch"), (32.0, "edge-0", "heal")]
    assert world.until(65.0).injected[6:] == [(64.0, "edge-1", "cpus")]


def test_what_was_done_by_hand_to_links_and_caps_holds_when_the_trial_goes_on(make_plan):
    """In the order in which it was asked for, among the faults of the plan."""
    slow = LinkChange(uplink_bit_s=20_000)
    cut = fault("edge-0", inject("edge-0", "cut"), inject("edge-0", "heal", 20.0), at_s=10.0)
    by_hand = (
        (9.0, Injection(node="edge-0", action="cut")),
        (11.0, Injection(node="edge-0", action="heal")),
        (12.0, Injection(node="edge-1", action="link", change=slow)),
        (13.0, Injection(node="edge-1", action="cpus", cpus=0.1)),
        (14.0, Injection(node="edge-1", action="cpus")),
    )
    past = ResumedTrial(began_s=2.0, until_s=17.0, trained_s=15.0, updates=50, incarnations={}, by_hand=by_hand)
    world = World(make_plan(2, faults=(cut,)), past, now=17.0)

    assert world.injected == [(17.0, "edge-1", "link")]
    assert world.told(messages.Inject, "edge-1")[0].injection.change == slow


@pytest.mark.parametrize(
    ("policy", "injected"), [("ignore", [(17.0, "edge-0", "freeze"), (32.0, "edge-0", "thaw")]), ("restart", [])]
)
def test_who_was_frozen_when_the_trial_broke_off_is_frozen_until_the_plan_thaws_it(make_plan, policy, injected):
    """A policy brings back whoever is away."""
    freeze = fault("edge-0", inject("edge-0", "freeze"), inject("edge-0", "thaw", 20.0), at_s=10.0)
    over = fault("edge-1", inject("edge-1", "freeze"), inject("edge-1", "thaw", 2.0), at_s=10.0, name="over")
    past = ResumedTrial(began_s=2.0, until_s=17.0, trained_s=15.0, updates=50, incarnations={})
    world = World(make_plan(3, faults=(freeze, over), on_failure=policy), past, now=17.0).until(40.0)

    assert world.injected == injected
    assert [action for action, _, no_op in world.faults() if not no_op] == [action for _, _, action in injected]
