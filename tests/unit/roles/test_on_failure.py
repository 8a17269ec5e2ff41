"""A policy of restarting restarts, but for a node that a fault keeps away; a freeze that ends is no death."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from staged_world import fault, inject

from edgebed.core import records
from edgebed.core.planned.fault import Injection
from edgebed.roles.control.active_faults import LAUNCHES_MAX
from edgebed.roles.control.pending_actions import ON_FAILURE
from edgebed.roles.events import CommandReceived, HealthChecked, Injected, NodeExited

EVERYBODY = frozenset({"server", "evaluator", "edge-0", "edge-1"})


def restart(at_s, delay_s, name="restart-1", node="edge-0"):
    """A planned restart."""
    return fault(node, inject(node, "kill"), inject(node, "launch", delay_s), at_s=at_s, name=name)


def freeze(at_s, for_s=None, name="freeze-1"):
    """A planned freeze of edge-0, for good or for a while."""
    steps = [inject("edge-0", "freeze")] + ([] if for_s is None else [inject("edge-0", "thaw", for_s)])
    return fault("edge-0", *steps, at_s=at_s, name=name)


def named(world):
    """(when it was asked for, name of its fault, action) of all that was done."""
    found = [record for _, record in world.journal if isinstance(record, records.Fault) and not record.no_op]
    return [(round(record.asked_s, 1), record.name, record.action) for record in found]


def goes_silent(world, at_s):
    """Edge-0 misses two checks."""
    world.until(at_s)
    for _ in range(2):
        world.do(HealthChecked(EVERYBODY - {"edge-0"}))


# --- what withholds a restart ----------------------------------------------------------------------------------------


def test_a_restart_to_come_withholds_nothing_before_its_own_kill(make_world):
    """The node that was killed for good at 5 s is back after the policy's delay, and is restarted at 25 s."""
    killed = fault("edge-0", inject("edge-0", "kill"), at_s=5.0, name="kill-1")
    world = make_world(killed, restart(25.0, 3.0, "restart-2"), on_failure="restart", restart_delay_s=1.0).until(40.0)

    assert named(world) == [
        (5.0, "kill-1", "kill"),
        (6.1, ON_FAILURE, "launch"),
        (25.0, "restart-2", "kill"),
        (28.0, "restart-2", "launch"),
    ]


def test_another_kill_before_the_launch_does_not_shorten_an_absence(make_world):
    """The node is away from 5 s to 15 s, whatever else would have killed it meanwhile."""
    killed = fault("edge-0", inject("edge-0", "kill"), at_s=10.0, name="kill-2")
    world = make_world(restart(5.0, 10.0), killed, on_failure="restart", restart_delay_s=1.0).until(40.0)

    assert named(world) == [(5.0, "restart-1", "kill"), (15.0, "restart-1", "launch")]


def test_an_absence_that_begins_while_a_restart_is_due_is_kept(make_world):
    """A node that had died by itself is not launched amid the absence that begins before the policy's delay is over."""
    world = make_world(restart(6.0, 10.0), on_failure="restart", restart_delay_s=2.0).until(5.0)
    world.do(NodeExited("edge-0", "exit code 1"))
    world.until(40.0)

    assert named(world) == [(16.0, "restart-1", "launch")]


def test_a_launch_by_hand_is_followed_by_the_policy_when_the_node_dies_again(make_world):
    """Each death has one launch by the policy at most."""
    world = make_world(on_failure="restart", restart_delay_s=5.0).until(1.0)
    world.do(NodeExited("edge-0", "exit code 1"))
    world.do(CommandReceived(1, (Injection(node="edge-0", action="launch"),)))
    world.until(2.0)
    world.do(NodeExited("edge-0", "exit code 1"))
    world.until(20.0)

    assert [action for _, _, action in named(world)] == ["launch", "launch"]
    assert world.state("edge-0") == "running"


TIMES = st.integers(1, 30).map(float)


@settings(max_examples=60)
@given(st.data())
def test_a_node_is_away_as_long_as_faults_ask_and_no_longer_than_the_policy(make_world, data):
    """Whatever its kills and restarts, a node that is dead is so by a restart's absence or for the policy's delay."""
    kills = data.draw(st.lists(TIMES, max_size=3))
    restarts = data.draw(st.lists(st.tuples(TIMES, st.sampled_from([0.0, 3.0, 8.0])), max_size=3))
    faults = [fault("edge-0", inject("edge-0", "kill"), at_s=at_s, name=f"kill-{k}") for k, at_s in enumerate(kills)]
    faults += [restart(at_s, delay_s, f"restart-{k}") for k, (at_s, delay_s) in enumerate(restarts)]
    world = make_world(*faults, on_failure="restart", restart_delay_s=1.0, stop_time_s=1e3)
    dead_since = None
    for tenth in range(500):
        now = tenth / 10
        world.until(now)
        if world.state("edge-0") == "running":
            dead_since = None
            continue
        dead_since = now if dead_since is None else dead_since
        is_asked = any(at_s - 0.1 <= now <= at_s + delay_s + 0.6 for at_s, delay_s in restarts)
        assert is_asked or now - dead_since <= 1.5, (kills, restarts, now)
    assert world.state("edge-0") == "running"


# --- freezes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["restart", "stop"])
@pytest.mark.parametrize(
    "faults",
    [
        (freeze(5.0, 10.0),),
        (freeze(5.0), fault("edge-0", inject("edge-0", "thaw"), at_s=15.0, name="thaw-2")),
        (freeze(5.0, 10.0), freeze(6.0, 5.0, "freeze-2")),
    ],
)
def test_a_freeze_that_will_end_is_no_death(make_world, faults, policy):
    """Its node goes on where it stopped."""
    world = make_world(*faults, on_failure=policy)
    goes_silent(world, 7.5)
    world.until(30.0)

    assert named(world)[-1] == (15.0, faults[-1].name if faults[-1].name == "thaw-2" else "freeze-1", "thaw")
    assert {action for _, _, action in named(world)} == {"freeze", "thaw"}
    assert world.controller.members["edge-0"].incarnation == 1
    assert not world.over


@pytest.mark.parametrize("silent_s", [14.95, 15.05, 15.15])
def test_the_silence_of_a_freeze_counts_no_longer_when_it_ends(make_world, silent_s):
    """The second check that is missed falls to the moment of the thaw: before it, under way, and just done."""
    world = make_world(freeze(5.0, 10.0), on_failure="restart").until(14.0)
    world.do(HealthChecked(EVERYBODY - {"edge-0"}))
    world.until(silent_s)
    world.do(HealthChecked(EVERYBODY - {"edge-0"}))
    world.until(16.0)
    assert [action for _, _, action in named(world)] == ["freeze", "thaw"]
    world.do(HealthChecked(EVERYBODY - {"edge-0"}))
    world.do(HealthChecked(EVERYBODY - {"edge-0"}))
    world.until(17.0)

    assert [action for _, _, action in named(world)] == ["freeze", "thaw", "kill"]


def test_a_freeze_that_ends_at_an_update_is_a_death(make_world):
    """Nobody knows that the update comes; the plan warns of it."""
    thaw = fault("edge-0", inject("edge-0", "thaw"), at_update=10_000, name="thaw-2")
    world = make_world(freeze(5.0), thaw, on_failure="restart", restart_delay_s=1.0)
    goes_silent(world, 7.5)
    world.until(10.0)

    assert [name for _, name, _ in named(world)] == ["freeze-1", ON_FAILURE, ON_FAILURE]


def test_a_freeze_for_good_is_a_death_though_another_is_to_end(make_world):
    """The thaw to come is not its own, and would thaw nothing."""
    world = make_world(freeze(5.0), freeze(20.0, 2.0, "freeze-2"), on_failure="restart", restart_delay_s=1.0)
    goes_silent(world, 7.5)
    world.until(10.0)

    assert named(world) == [(5.0, "freeze-1", "freeze"), (7.5, ON_FAILURE, "kill"), (8.6, ON_FAILURE, "launch")]


def test_a_worker_that_is_frozen_for_good_does_not_come_back_by_another_freeze_that_ends(make_world):
    """Nobody trains any more, which is said at once; the thaw that is to come thaws nothing."""
    others = fault("edge-1", inject("edge-1", "freeze"), at_s=5.0, name="freeze-2")
    world = make_world(freeze(5.0), others, freeze(20.0, 2.0, "freeze-3")).until(10.0)

    assert world.ended() == ("failed", "no worker is left; the others are frozen or cut off, and nothing undoes it")


# --- what is under way -----------------------------------------------------------------------------------------------


def test_a_kill_that_finds_its_node_dead_is_no_failure(make_world):
    """The node had run out of memory, as planned, just before: there was nothing to do, and it is launched once."""
    world = make_world(on_failure="restart", restart_delay_s=1.0)
    world.failing.add("kill")  # what the launcher answers is said below
    goes_silent(world, 1.0)
    (number,) = world.controller.injector.asked.all
    world.do(Injected(number, no_op="its process has ended"))
    world.do(NodeExited("edge-0", "out of memory"))
    world.until(5.0)

    assert world.faults() == [("kill", "edge-0", "its process has ended"), ("launch", "edge-0", "")]
    assert [record.problem for _, record in world.journal if isinstance(record, records.Fault)] == ["", ""]


def test_a_launch_that_waits_for_a_kill_still_comes_when_the_node_had_ended(make_world):
    """Its end is still to be told, and the launch waits for that."""
    world = make_world(restart(5.0, 0.0), on_failure="ignore")
    world.failing.add("kill")
    world.until(5.0)
    (number,) = world.controller.injector.asked.all
    world.do(Injected(number, no_op="its process has ended"))
    world.do(NodeExited("edge-0", "exit code 1"))
    world.until(8.0)

    assert world.state("edge-0") == "running"
    assert world.controller.members["edge-0"].incarnation == 2


def test_the_kill_that_ends_the_trial_is_recorded(make_world):
    """All workers are killed at once: the end of the last may be told before what was done to it is."""
    kills = [fault(f"edge-{k}", inject(f"edge-{k}", "kill"), at_s=5.0) for k in range(2)]
    world = make_world(*kills).until(5.0)
    for k in range(2):
        world.do(NodeExited(f"edge-{k}", "killed by SIGKILL"))
    world.until(6.0)

    assert world.faults() == [("kill", "edge-0", ""), ("kill", "edge-1", "")]
    assert world.ended()[0] == "failed"


def test_a_restart_that_takes_no_time_again_and_again_ends_the_trial(make_world):
    """The policy's delay is nothing, and the node dies as soon as it is there: no time passes."""
    world = make_world(on_failure="restart", restart_delay_s=0.0).until(1.0)
    for _ in range(LAUNCHES_MAX + 2):
        world.do(NodeExited("edge-0", "exit code 1"))
        due = [event for at_s, _, event in sorted(world.heap) if at_s <= world.now]
        world.heap = [each for each in world.heap if each[0] > world.now]
        for event in due:
            world.do(event)
        if world.over or world.controller.is_ending:
            break
        (number,) = world.controller.injector.asked.all
        world.do(Injected(number))
        world.live("edge-0")
    world.until(20.0)

    outcome, reason = world.ended()
    assert outcome == "failed"
    assert reason.startswith(f"on_failure does not end: edge-0: it has been launched {LAUNCHES_MAX} times at 1 s")
