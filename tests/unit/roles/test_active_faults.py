"""Parts of the director by themselves: when faults are triggered, what is active at a node, who waits for an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.link import PROPERTIES, RATE_MAX_BIT_S, RATE_MIN_BIT_S, LinkChange
from edgebed.roles.control.active_faults import BY_HAND, ActiveFaults
from edgebed.roles.control.fault_schedule import FaultSchedule
from edgebed.roles.control.fault_text import change_text, injection_of
from edgebed.roles.control.members import Member, State
from edgebed.roles.control.pending_actions import FaultCause
from edgebed.roles.control.tickets import Tickets
from edgebed.roles.events import CommandResult
from edgebed.wire.messages import Reached


def do(action, **settings):
    """An action on a worker."""
    return Injection(node="edge-0", action=action, **settings)


def cause(name, **settings):
    """Why it is done."""
    return FaultCause(name, "at 1s", 1.0, **settings)


@pytest.mark.parametrize(("begin", "end", "state"), [("freeze", "thaw", "frozen"), ("cut", "heal", "cut")])
def test_who_is_held_by_two_is_let_go_by_the_second(begin, end, state):
    """Or by whoever lets go of all: a thaw or heal of its own, and the user."""
    world = ActiveFaults()
    assert world.note(cause("a"), do(begin)) == ""
    assert world.note(cause("b"), do(begin)) == f"it is {state} already"
    assert world.note(cause("a"), do(end)) == f"it is {state} by b, too"
    assert world.note(cause("b"), do(end)) == ""
    assert world.note(cause("b"), do(end)) == f"it is not {state}"
    for last in (cause(BY_HAND), cause("c", undoes_all=True)):
        world.note(cause("a"), do(begin))
        world.note(cause("b"), do(begin))
        assert world.note(last, do(end)) == ""


def test_changes_of_a_link_add_up_and_are_done_to_the_next_life():
    """What could not be done is taken back, and told anew to whom it was told."""
    world = ActiveFaults()
    world.note(cause("a"), do("link", change=LinkChange(uplink_bit_s=1, loss=0.1)))
    before = world.changed
    world.note(cause("b"), do("link", change=LinkChange(uplink_bit_s=2)))
    assert world.injections("edge-0") == [do("link", change=LinkChange(uplink_bit_s=2, loss=0.1))]

    untold = world.take_back(cause("b"), do("link"), before)
    assert untold == [do("link"), do("link", change=LinkChange(uplink_bit_s=1, loss=0.1))]
    world.note(cause("c"), do("link"))
    assert world.injections("edge-0") == []


def test_what_passes_between_two_is_changed_beside_the_link_and_undone_by_itself():
    """And done to the next life of either; what ended while the node was away is undone at its place."""
    world, slow = ActiveFaults(), LinkChange(uplink_bit_s=1)
    world.note(cause("a"), do("link", peer="server", change=slow))
    before = world.changed
    world.note(cause("b"), do("link", change=LinkChange(loss=0.1)))
    assert world.injections("edge-0") == [
        do("link", peer="server", change=slow), do("link", change=LinkChange(loss=0.1))
    ]  # fmt: skip
    world.note(cause("a"), do("link", peer="server", change=LinkChange(uplink_bit_s=2)))
    untold = world.take_back(cause("a"), do("link", peer="server"), before)
    assert untold == [do("link", peer="server"), do("link", peer="server", change=slow)]

    world.note(cause("a"), do("link", peer="server"))
    world.missed.add("link")
    assert world.catch_up("edge-0") == [do("link"), do("link", peer="server")]
    assert world.injections("edge-0") == [do("link", change=LinkChange(loss=0.1))]


def test_what_is_done_to_a_node_that_is_not_there_is_moot_or_of_its_next_life(make_node):
    """A node that is there cannot be launched."""
    gone, there = (
        Member(make_node("edge-0", "worker"), State.DIED),
        Member(make_node("edge-0", "worker"), State.RUNNING),
    )
    world = ActiveFaults()
    assert world.no_op(do("freeze"), gone) == "it is not there (died)"
    assert world.no_op(do("cpus", cpus=0.5), gone) == "it is not there (died); its next life will be so"
    assert (world.no_op(do("launch"), gone), world.no_op(do("launch"), there)) == ("", "it is running")


VALUES = {
    "rate": st.integers(RATE_MIN_BIT_S, RATE_MAX_BIT_S),
    "delay": st.integers(0, 10**7).map(lambda us: us / 10**6),
    "packets": st.integers(0, 999).map(lambda share: share / 1000),
}
CHANGES = st.builds(LinkChange, **{each.field: st.none() | VALUES[each.kind] for each in PROPERTIES.values()}).filter(
    lambda change: change != LinkChange()
)


@given(
    st.builds(do, st.just("link"), change=st.none() | CHANGES)
    | st.builds(do, st.just("cpus"), cpus=st.none() | st.integers(1, 10**6).map(lambda share: share / 10**4))
    | st.builds(do, st.sampled_from(["cut", "heal"]))
)
def test_the_words_of_a_change_say_all_of_it(injection):
    """So that a trial that is resumed has again what was done by hand."""
    assert injection_of("edge-0", injection.action, change_text(injection)) == injection


def fault(name, trigger, *steps):
    """A fault of a worker, with steps of (seconds, action)."""
    made = tuple(FaultStep(after_s=after_s, injection=do(action)) for after_s, action in steps)
    return FaultPlan(name=name, node="edge-0", trigger=trigger, steps=made)


@pytest.fixture
def schedule(make_plan):
    """A fault by time, two by updates, one by point."""
    return FaultSchedule(
        make_plan(
            faults=(
                fault("timed", Trigger(at_s=5.0), (0.0, "cut"), (2.0, "heal")),
                fault("late", Trigger(at_update=20), (0.0, "kill")),
                fault("early", Trigger(at_update=10), (0.0, "freeze"), (3.0, "thaw")),
                fault("point", Trigger(point="before-push"), (0.0, "kill"), (1.0, "launch")),
            )
        )
    )


def due(steps):
    """Names, actions and times."""
    return [(each.name, injection.action, each.asked_s) for each, injection in steps]


def test_faults_are_triggered_by_time_by_updates_and_by_points(schedule):
    """Those of an update once each, in the order of updates; the worker that stands waits for the first step alone."""
    assert due(schedule.timed(100.0)) == [("timed", "cut", 105.0), ("timed", "heal", 107.0)]
    assert due(schedule.updated(9, 1.0)) == []
    expected = [("early", "freeze", 2.0), ("early", "thaw", 5.0), ("late", "kill", 2.0)]
    assert due(schedule.updated(25, 2.0)) == expected
    assert due(schedule.updated(26, 3.0)) == []
    steps = list(schedule.reached(Reached(sender="edge-0", fault=3, step=7), 4.0))
    assert [(each.waiting, each.trigger) for each, _ in steps] == [("edge-0", "before-push 7"), ("", "before-push 7")]


@pytest.mark.parametrize(
    ("node", "place"),
    [("edge-0", 0), ("edge-0", 1), ("edge-1", 3), ("edge-0", 4), ("edge-0", 2**53)],
    ids=["a time", "an update", "another's", "none", "none by far"],
)
def test_a_worker_triggers_nothing_but_its_own_fault_at_a_point(schedule, node, place):
    """Whatever it says it has come to."""
    assert list(schedule.reached(Reached(sender=node, fault=place, step=7), 4.0)) == []
    assert due(schedule.reached(Reached(sender="edge-0", fault=3, step=7), 5.0)) != []


@pytest.mark.parametrize(("probability", "times"), [(None, 1), (0.5, 3)])
def test_a_fault_at_a_point_is_met_once_unless_chance_decides_on_it(make_plan, probability, times):
    """Else a worker that says so again and again has a line in the journal each time."""
    trigger = Trigger(point="before-push", probability=probability)
    schedule = FaultSchedule(make_plan(faults=(fault("point", trigger, (0.0, "freeze")),)))
    said = [due(schedule.reached(Reached(sender="edge-0", fault=0, step=step), 4.0)) for step in range(3)]

    assert said == [[("point", "freeze", 4.0)]] * times + [[]] * (3 - times)


def test_of_a_resumed_trial_only_what_has_not_been_done_is_still_to_come(schedule):
    """Also of faults that updates had triggered."""
    passed = schedule.resume(6.0, 12, {("early", "edge-0"): 4.0})
    assert due(passed) == [("early", "freeze", 4.0), ("timed", "cut", 5.0)]
    assert due(schedule.timed(100.0)) == [("timed", "heal", 107.0), ("early", "thaw", 107.0)]
    assert due(schedule.updated(30, 9.0)) == [("late", "kill", 9.0)]


def test_a_user_is_answered_once_with_all_problems():
    """Not before all of the order was asked for."""
    tickets = Tickets()
    tickets.open(4)
    tickets.note(4, "edge-0: it is frozen already")
    assert not tickets.is_due(4)
    tickets.ordering = None
    tickets.note(4, "edge-1: it is not there")
    assert tickets.is_due(4)
    assert tickets.answer(4) == [CommandResult(4, "edge-0: it is frozen already; edge-1: it is not there")]
    assert not tickets.is_due(4)

    tickets.open(5)
    assert tickets.close() == [CommandResult(5, "the trial has ended")]
