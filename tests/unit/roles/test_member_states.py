"""The states of a node in the controller's eyes: a table, and nothing beside it."""

import itertools

import pytest
from tasks import one_array

from edgebed.core.plan import Method, Task, WorkerPlan
from edgebed.roles.control.members import ENDS, TRANSITIONS, Member, State

PLAN = WorkerPlan(
    node="edge-0", device_class="edge", seed=1, method=Method(name="m", parts={}),
    task=Task(model="small", inputs=one_array((1,)), outputs=2, layout=(), batch_size=1, gradient_time_s=0.01),
)  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [*itertools.product(State, State)])
def test_what_is_not_in_the_table_is_an_error_that_says_who_and_how_it_stood(before, after):
    """Nothing is changed by it."""
    member = Member(PLAN, state=before)
    if after in TRANSITIONS[before]:
        member.become(after)
        assert member.state is after
    else:
        with pytest.raises(AssertionError, match=f"worker edge-0 cannot become {after}: it is {before}"):
            member.become(after)
        assert member.state is before


def test_every_state_is_reached_and_every_node_can_end_and_be_launched_again():
    """From `expected`, in as many steps as there are states."""
    reached = {State.EXPECTED}
    for _ in State:
        reached |= {after for before in reached for after in TRANSITIONS[before]}
    assert reached == set(State)
    assert all(TRANSITIONS[state] >= ENDS for state in State if state not in ENDS)
    assert all(State.EXPECTED in TRANSITIONS[state] for state in ENDS)
