"""What is to come is asked for at every check: the answer is kept, the same as if all of it were looked at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staged_world import fault, inject

from edgebed.core.actions import BRINGS_BACK
from edgebed.core.planned.fault import Injection
from edgebed.roles.control.pending_actions import ON_FAILURE, FaultCause, Latest, PendingActions

NODES, ACTIONS = ("edge-0", "edge-1"), ("kill", "launch", "thaw")
TIMES = st.sampled_from([0.0, 0.5, 1.0, 3.0, 9.0])
STEPS = st.tuples(st.sampled_from(NODES), st.sampled_from(ACTIONS), TIMES, st.sampled_from(["churn-1", ON_FAILURE]))


@given(st.lists(st.one_of(STEPS, st.integers(0, 30)), max_size=60))
def test_the_latest_is_that_of_all_which_are_left(acts):
    """A step is added, or one of those that are left is done with."""
    to_come, left = PendingActions[int](), {}
    for key, act in enumerate(acts):
        if isinstance(act, tuple):
            node, action, asked_s, name = act
            left[key] = FaultCause(name, "", asked_s), Injection(node=node, action=action)
            to_come.add(key, *left[key])
        elif left:
            done = list(left)[act % len(left)]
            assert to_come.pop(done) == left.pop(done)
        steps = list(left.values())
        for node in NODES:
            for action in ACTIONS:
                due = [cause.asked_s for cause, each in steps if (each.node, each.action) == (node, action)]
                assert to_come.latest_s(node, action) == max(due, default=None)
        due = [cause.asked_s for cause, each in steps if each.action in BRINGS_BACK and cause.name != ON_FAILURE]
        assert to_come.last_return_s() == max(due, default=None)
        assert list(to_come.causes()) == [cause for cause, _ in steps]


BEGUN = st.tuples(*(st.none() | TIMES,) * 2).map(lambda times: (times[0] or 0.0, times[1]))


@given(
    st.lists(
        st.tuples(st.sampled_from(NODES), st.sampled_from(("kill", *sorted(BRINGS_BACK))), BEGUN,
                  st.sampled_from(["f-1", "f-2"]), st.booleans()), max_size=12),
    st.sets(st.integers(0, 11)), TIMES,
)  # fmt: skip
def test_who_is_away_or_stands_still_is_told_by_what_undoes_just_that(steps, done, now):
    """A launch counts once its own fault has begun; a thaw or heal counts for its own fault, or for all."""
    to_come, left = PendingActions[int](), []
    for key, (node, action, (asked_s, begun_s), name, undoes_all) in enumerate(steps):
        cause = FaultCause(name, "", asked_s, begun_s=begun_s, undoes_all=undoes_all and action in ("thaw", "heal"))
        to_come.add(key, cause, Injection(node=node, action=action))
        left.append((key, node, action, cause))
    for key in done & set(range(len(steps))):
        to_come.pop(key)
    left = [each[1:] for each in left if each[0] not in done]
    for node in NODES:
        begun = [cause.asked_s if cause.begun_s is None else cause.begun_s for where, action, cause in left
                 if (where, action) == (node, "launch")]  # fmt: skip
        assert to_come.is_absent(node, now) == any(begun_s <= now for begun_s in begun)
        for action in ("thaw", "heal"):
            undoing = [cause for where, each, cause in left if (where, each) == (node, action)]
            own = {cause.name for cause in undoing if not cause.undoes_all}
            for names in (set(), {"f-1"}, {"f-1", "f-2"}):
                expected = names <= own or any(cause.undoes_all for cause in undoing)
                assert to_come.is_undone(node, action, names) == expected


@given(st.lists(st.tuples(st.booleans(), TIMES), max_size=80))
def test_what_has_been_removed_is_half_of_the_heap_at_most(acts):
    """So a day of churn does not grow, however often a policy restarts a node."""
    bag, times = Latest(), []
    for is_new, time_s in acts:
        if is_new:
            bag.add(time_s)
            times.append(time_s)
        elif time_s in times:
            bag.remove(time_s)
            times.remove(time_s)
        assert bag.latest_s() == max(times, default=None)
        assert len(bag.heap) <= 2 * len(set(times)) + 1


def test_a_death_does_not_look_at_what_is_still_to_come(make_world, monkeypatch):
    """A worker leaves and comes back a hundred times or four hundred times: so much more is read, not its square."""
    seen = []
    for count in (100, 400):
        reads = 0

        class Counted(FaultCause):
            def __getattribute__(self, name):
                nonlocal reads
                reads += name == "asked_s"
                return super().__getattribute__(name)

        monkeypatch.setattr("edgebed.roles.control.fault_schedule.FaultCause", Counted)
        steps = [
            fault(
                f"edge-{k % 2}", inject(f"edge-{k % 2}", "kill"), inject(f"edge-{k % 2}", "launch", 0.5), at_s=1.0 + k
            )
            for k in range(count)
        ]
        world = make_world(*steps, num_workers=3, stall_deadline_s=1e6).until(count + 10.0)
        assert len(world.faults()) == 2 * count
        seen.append(reads)

    assert seen[1] == pytest.approx(4 * seen[0], rel=0.1)
