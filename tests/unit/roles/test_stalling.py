"""A trial without progress: how long it is borne, and who is named at its end."""

import pytest
from staged_world import fault, inject

from edgebed.core import records


def with_work(world, until_s, every_s=20.0, worker="edge-0"):
    """The world until then; a worker says again and again that it works."""
    while world.now + every_s <= until_s and not world.over:
        world.until(world.now + every_s).report("server", records.AtWork(worker=worker))
    return world.until(until_s)


def test_a_trial_waits_longer_for_workers_who_say_that_they_work(make_world):
    """Ten times as long, as their word comes again and again."""
    world = with_work(make_world(stall_deadline_s=60.0), 590.0)

    assert not world.over
    assert with_work(world, 610.0).ended()[1] == (
        "no update was applied for 600 s (deadlines.stall: 60 s; at work: edge-0; give pushes more time by "
        "`deadlines.stall`)"
    )


def test_a_worker_that_has_worked_long_ago_is_not_waited_for(make_world):
    """It may have died, or wait for somebody else."""
    world = with_work(make_world(stall_deadline_s=60.0), 40.0).until(130.0)

    assert world.ended()[1] == "no update was applied for 60 s (deadlines.stall: 60 s)"


@pytest.mark.parametrize(
    ("action", "how"), [("cut", "cut off: edge-1"), ("freeze", "frozen: edge-1"), ("kill", "died: edge-1")]
)
def test_who_is_away_is_named(make_world, action, how):
    """Whom a round may have waited for."""
    world = make_world(fault("edge-1", inject("edge-1", action), at_s=1.0), stall_deadline_s=60.0).until(130.0)

    assert world.ended()[1] == f"no update was applied for 60 s (deadlines.stall: 60 s; {how})"
