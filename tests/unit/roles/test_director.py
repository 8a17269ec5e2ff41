"""Faults are done when they are due, whatever triggers them, by several at once and by hand."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from staged_world import fault, inject

from edgebed.core import records
from edgebed.core.errors import EdgebedError
from edgebed.core.plan import Method, Part
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange
from edgebed.roles.control.active_faults import BY_HAND
from edgebed.roles.events import (
    CommandReceived,
    CommandResult,
    NodeExited,
)  # fmt: skip
from edgebed.wire import messages

# --- triggers --------------------------------------------------------------------------------------------------------


def test_a_fault_by_time_is_done_then_and_undone_later(make_world):
    """The record's own time is that of its being done, and it says when it was asked."""
    world = make_world(fault("edge-0", inject("edge-0", "freeze"), inject("edge-0", "thaw", 5.0), at_s=10.0)).until(20)

    assert world.injected == [(10.0, "edge-0", "freeze"), (15.0, "edge-0", "thaw")]
    (done_s, record), (_, thaw) = [(t, r) for t, r in world.journal if isinstance(r, records.Fault)]
    assert (done_s, record.asked_s, record.trigger) == (10.1, 10.0, "at 10s")
    assert (thaw.name, thaw.asked_s, thaw.problem) == ("fault-1", 15.0, "")


def test_a_fault_by_update_is_done_once_when_so_many_are_applied(make_world):
    """A report may tell of several at once."""
    world = make_world(fault("edge-1", inject("edge-1", "kill"), at_update=100))
    world.update(99)
    assert world.injected == []
    world.update(101)
    world.update(102)

    assert [(name, action) for _, name, action in world.injected] == [("edge-1", "kill")]


def test_a_worker_at_a_point_proceeds_when_the_fault_is_done(make_world):
    """Not before; a frozen one finds the message after its thaw."""
    world = make_world(fault("edge-0", inject("edge-0", "freeze"), inject("edge-0", "thaw", 2.0), point="after-push"))
    world.say("edge-0", messages.Reached(sender="edge-0", fault=0, step=7))
    assert not world.told(messages.Proceed)
    world.until(1.0)

    assert len(world.told(messages.Proceed, "edge-0")) == 1
    (record,) = [r for _, r in world.journal if isinstance(r, records.Fault)]
    assert record.trigger == "after-push 7"
    assert len(world.until(5.0).faults()) == 2


def test_a_worker_that_stands_where_no_fault_of_its_own_waits_proceeds(make_world):
    """Nothing is done to anybody."""
    world = make_world(fault("edge-1", inject("edge-1", "kill"), at_update=1000))
    world.say("edge-0", messages.Reached(sender="edge-0", fault=0, step=3))

    assert (world.injected, len(world.told(messages.Proceed, "edge-0"))) == ([], 1)


def test_a_worker_that_is_killed_at_a_point_is_told_nothing(make_world):
    """It is gone."""
    world = make_world(fault("edge-0", inject("edge-0", "kill"), point="during-pull"))
    world.say("edge-0", messages.Reached(sender="edge-0", fault=0, step=0))
    world.until(1.0)

    assert world.state("edge-0") == "died"
    assert not world.told(messages.Proceed)


def test_a_worker_at_a_point_proceeds_when_the_fault_cannot_be_done(make_world):
    """It never waits for ever."""
    world = make_world(fault("edge-0", inject("edge-0", "kill"), point="after-push"))
    world.failing.add("kill")
    world.say("edge-0", messages.Reached(sender="edge-0", fault=0, step=0))
    world.until(1.0)

    assert world.faults() == [("kill", "edge-0", "no")]
    assert world.told(messages.Proceed, "edge-0")


def test_a_worker_at_a_point_that_nobody_knows_proceeds(make_world):
    """A plan of another code."""
    world = make_world()
    world.say("edge-0", messages.Reached(sender="edge-0", fault=3, step=0))

    assert world.told(messages.Proceed, "edge-0")


def test_when_training_has_ended_nothing_begins_and_who_is_away_is_brought_back(make_world):
    """A kill during the final evaluation would tell of nothing; nobody waits for what is not to come."""
    frozen = fault("edge-0", inject("edge-0", "freeze"), inject("edge-0", "thaw", 10.0), name="freeze-1", at_s=5.0)
    killed = fault("edge-1", inject("edge-1", "kill"), inject("edge-1", "launch", 500.0), name="restart-1", at_s=8.0)
    world = make_world(frozen, killed, stall_deadline_s=60.0).until(6.0)
    world.report("server", records.Finished(version=1, reason="updates"))

    assert world.until(100.0).faults() == [("freeze", "edge-0", ""), ("thaw", "edge-0", "")]
    advice = "the evaluator was at work: give it more CPU by `evaluator`, or more time by `deadlines.stall`"
    reason = f"no final evaluation came for 600 s (deadlines.stall: 60 s; {advice})"
    assert world.until(700.0).ended() == ("failed", reason)


# --- by hand, and by several -----------------------------------------------------------------------------------------


def test_what_is_asked_by_hand_is_journaled_and_answered(make_world):
    """Through the same code."""
    world = make_world()
    world.do(CommandReceived(5, (Injection(node="edge-0", action="cut"),)))
    assert world.answers == []
    world.until(1.0)

    assert world.answers == [CommandResult(5, "")]
    (record,) = [r for _, r in world.journal if isinstance(r, records.Fault)]
    assert (record.name, record.action, record.target) == (BY_HAND, "cut", "edge-0")
    assert [message.injection.action for message in world.told(messages.Inject, "edge-0")] == ["cut"]


@pytest.mark.parametrize(
    ("node", "action", "words"),
    [
        ("edge-9", "kill", "no node 'edge-9'; there are server, evaluator, edge-0, edge-1"),
        ("edge-0", "heal", "edge-0: it is not cut"),
        ("edge-0", "launch", "edge-0: it is running"),
        ("evaluator", "cut", "evaluator: it has no link: watching is not traffic"),
        ("edge-0", "memory", "edge-0: it has no memory cap to run into"),
    ],
)
def test_what_cannot_be_done_is_answered_with_the_reason(make_world, node, action, words):
    """At once."""
    world = make_world()
    world.do(CommandReceived(1, (Injection(node=node, action=action),)))

    assert world.answers == [CommandResult(1, words)]


def test_no_link_gets_more_jitter_than_latency_by_hand(make_world):
    """Neither at once nor bit by bit, as no scenario may ask for one; both together are as good as any."""
    world = make_world()
    asked = [{"jitter_s": 0.005}, {"latency_s": 0.02, "jitter_s": 0.005}, {"latency_s": 0.004}, {"uplink_bit_s": 10**6}]
    for ticket, change in enumerate(asked):
        world.do(CommandReceived(ticket, (Injection(node="edge-0", action="link", change=LinkChange(**change)),)))
        world.until(ticket + 1.0)

    above = "edge-0: a jitter of 5ms is above the latency of"
    assert [answer.problem for answer in world.answers] == [f"{above} 0s", "", f"{above} 4ms", ""]


def test_a_roll_back_to_a_backup_that_is_of_no_use_is_refused(make_world):
    """And training goes on."""
    world = make_world()
    server = world.controller.members["server"]
    method = Method(name="layers", parts={"learning": Part(name="back-propagation")})
    server.plan = msgspec.structs.replace(server.plan, method=method)

    def backup_at(step):
        raise EdgebedError(f"backup-{step}.npz: it has numbers that are not finite")

    world.controller.backup_at = backup_at
    world.do(CommandReceived(1, (), roll_back_to=20))

    assert world.answers == [CommandResult(1, "backup-20.npz: it has numbers that are not finite")]
    assert not world.told(messages.RollBack)


def test_an_order_for_several_nodes_is_answered_once_with_all_that_could_not_be_done(make_world):
    """What has nothing to do at once does not answer for what is still under way."""
    world = make_world()
    world.do(CommandReceived(1, (Injection(node="edge-1", action="freeze"),)))
    world.until(1.0)
    world.do(CommandReceived(2, tuple(Injection(node=f"edge-{k}", action="heal") for k in range(2))))
    world.do(CommandReceived(3, tuple(Injection(node=f"edge-{k}", action="freeze") for k in (1, 0))))
    world.until(2.0)

    assert world.answers[1:] == [
        CommandResult(2, "edge-0: it is not cut; edge-1: it is not cut"),
        CommandResult(3, "edge-1: it is frozen already"),
    ]


def test_a_dead_node_is_restarted_by_hand_without_being_killed(make_world):
    """There is nothing to kill, and that is no problem."""
    world = make_world()
    world.do(CommandReceived(1, (Injection(node="edge-0", action="kill"),)))
    world.until(1.0)
    assert world.state("edge-0") == "died"
    world.do(CommandReceived(2, (Injection(node="edge-0", action="kill"),)))
    world.do(CommandReceived(3, tuple(Injection(node="edge-0", action=action) for action in ("kill", "launch"))))
    world.until(2.0)

    assert world.state("edge-0") == "running"
    assert world.answers == [
        CommandResult(1, ""),
        CommandResult(2, "edge-0: it is not there (died)"),
        CommandResult(3, ""),
    ]


def test_a_node_that_two_users_restart_at_once_is_started_once_and_both_are_answered(make_world):
    """The second comes before the first life has ended."""
    world = make_world()
    orders = Injection(node="edge-0", action="kill"), Injection(node="edge-0", action="launch")
    world.do(CommandReceived(1, orders))
    world.now = 0.05
    world.do(CommandReceived(2, orders))
    world.until(3.0)

    assert [action for _, _, action in world.injected] == ["kill", "launch"]
    assert world.answers == [
        CommandResult(2, "edge-0: it is to be launched already"),
        CommandResult(1, ""),
    ]


def test_who_waits_for_the_end_of_a_node_that_cannot_be_killed_is_told(make_world):
    """There is no end that its launch could wait for: the user is answered, and so is the next who asks."""
    world = make_world()
    world.failing = {"kill"}
    orders = Injection(node="edge-0", action="kill"), Injection(node="edge-0", action="launch")
    for ticket in (1, 2):
        world.do(CommandReceived(ticket, orders))
        world.until(world.now + 1.0)

    assert world.answers == [CommandResult(ticket, "edge-0: no; edge-0: it is running") for ticket in (1, 2)]
    assert [(action, why) for action, _, why in world.faults()] == 2 * [("kill", "no"), ("launch", "it is running")]


def test_a_change_that_is_refused_leaves_everything_as_it_was(make_world):
    """Whoever was told of it hears what holds instead, and a new life knows nothing of it."""
    world = make_world(
        fault("edge-0", inject("edge-0", "kill"), inject("edge-0", "launch", 1.0), at_s=5.0),
    )
    slow, lossy = LinkChange(uplink_bit_s=1_000_000), LinkChange(loss=0.01)
    world.do(CommandReceived(1, (Injection(node="edge-0", action="link", change=slow),)))
    world.until(1.0)
    world.failing |= {"link", "cpus"}
    world.do(CommandReceived(2, (Injection(node="edge-0", action="link", change=lossy),)))
    world.do(CommandReceived(3, (Injection(node="edge-0", action="cpus", cpus=1e9),)))
    world.until(2.0)
    world.failing.clear()

    for node in ("edge-0", "server"):
        heard = [message.injection.change for message in world.told(messages.Inject, node)
                 if message.injection.action == "link"]  # fmt: skip
        assert heard == [slow, lossy, None, slow]
    caps = [m.injection.cpus for m in world.told(messages.Inject, "edge-0") if m.injection.action == "cpus"]
    assert caps == [1e9, None]
    before = len(world.injected)
    world.until(10.0)
    assert [action for _, _, action in world.injected[before:]] == ["kill", "launch", "link"]
    assert world.told(messages.Inject, "edge-0")[-1].injection.change == slow


def test_a_link_that_two_faults_cut_is_healed_when_both_are_over(make_world):
    """The second finds it cut; the first one's heal comes too early."""
    world = make_world(
        fault("edge-0", inject("edge-0", "cut"), inject("edge-0", "heal", 5.0), at_s=1.0, name="one"),
        fault("edge-0", inject("edge-0", "cut"), inject("edge-0", "heal", 5.0), at_s=3.0, name="two"),
    ).until(20.0)

    assert world.injected == [(1.0, "edge-0", "cut"), (8.0, "edge-0", "heal")]
    assert world.faults() == [
        ("cut", "edge-0", ""), ("cut", "edge-0", "it is cut already"), ("heal", "edge-0", "it is cut by two, too"),
        ("heal", "edge-0", ""),
    ]  # fmt: skip


def test_a_heal_of_its_own_ends_what_others_have_cut(make_world):
    """As one by hand does; it is no end of a fault of its own name."""
    world = make_world(
        fault("edge-0", inject("edge-0", "cut"), at_s=1.0, name="one"),
        fault("edge-0", inject("edge-0", "cut"), at_s=2.0, name="two"),
        fault("edge-0", inject("edge-0", "heal"), at_s=3.0, name="heal-3"),
    ).until(20.0)

    assert world.injected == [(1.0, "edge-0", "cut"), (3.0, "edge-0", "heal")]


# --- anything at all -------------------------------------------------------------------------------------------------

ACTIONS = ("kill", "launch", "freeze", "thaw", "cut", "heal", "link", "cpus")
NODES = ("edge-0", "edge-1", "edge-2")


@st.composite
def any_faults(draw):
    """Up to eight faults of any kind at any time."""
    found = []
    for k in range(draw(st.integers(0, 8))):
        node = draw(st.sampled_from(NODES))
        times = sorted(draw(st.lists(st.floats(0, 10), max_size=3)))
        actions = [draw(st.sampled_from(ACTIONS)) for _ in times]
        steps = [inject(node, action, after_s) for action, after_s in zip(actions, times, strict=True)]
        found.append(
            fault(node, inject(node, draw(st.sampled_from(ACTIONS))), *steps, name=f"f{k}", at_s=draw(st.floats(0, 20)))
        )
    return found


@settings(max_examples=4 * settings.default.max_examples)
@given(
    faults=any_faults(),
    policy=st.sampled_from(["ignore", "restart", "stop"]),
    failing=st.sets(st.sampled_from(ACTIONS)),
    deaths=st.lists(st.tuples(st.floats(0, 30), st.sampled_from((*NODES, "server"))), max_size=4),
)
def test_whatever_is_done_the_trial_ends_and_each_step_is_told(make_world, faults, policy, failing, deaths):
    """Every step that came due before the end has its record, and the trial ends by a deadline at the latest."""
    world = make_world(*faults, num_workers=3, on_failure=policy, stop_time_s=40.0, stall_deadline_s=10.0)
    world.failing = failing
    for at_s, name in deaths:
        world.at(at_s, NodeExited(name, "exit code 1"))
    world.until(200.0)

    outcome, reason = world.ended()
    assert outcome == "failed"  # no node trains here
    assert reason
    ended_s = next(t for t, r in world.journal if isinstance(r, records.Ended))
    due = sum(f.trigger.at_s + step.after_s < ended_s - 10.0 for f in faults for step in f.steps)
    assert len(world.faults()) >= due
