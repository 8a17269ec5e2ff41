"""What nodes used in training alone: the final evaluation neither hides what they lacked nor adds to it."""

import pytest

from edgebed.core import records
from edgebed.core.records import Usage
from edgebed.journal.series import Series, _Builder

BEGAN_S = 3.0
BEGUN = [(BEGAN_S, "", records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=1, parameters=1))]
FINISHED = records.Finished(version=1, reason="enough")


def used(*entries):
    """What edge-0 used, by incarnation; times are seconds of training."""
    lines = [*BEGUN, *((BEGAN_S + t, "edge-0" if isinstance(line, Usage) else "server", line) for t, line in entries)]
    return _Builder().add_all(lines).series(Series).usage["edge-0"]


def usage(time_s, cpu_s, starved_s=0.0, **more):
    """An account of a node that began with training."""
    return Usage(time_s=time_s, cpu_s=cpu_s, starved_s=starved_s, stopped_s=0.0, **more)


@pytest.mark.parametrize("evaluation_s", [0.5, 60.0])
def test_a_node_that_rests_while_the_model_is_evaluated_lacked_no_less_in_training(evaluation_s):
    """However long that takes: it waited for two of ten seconds."""
    told = [(float(t), usage(t, 0.8 * t, 0.2 * t)) for t in range(1, 11)]
    (last,) = used(*told, (10.0, FINISHED), (10.0 + evaluation_s, usage(10.0 + evaluation_s, 8.0, 2.0)))

    assert last.time_s == pytest.approx(10.0)
    assert (last.cpu_s, last.starved_s, last.stopped_s) == (8.0, 2.0, 0.0)


def test_between_two_lines_times_are_those_of_the_end_of_training():
    """Each by as much; what is no time is as it was told last."""
    (last,) = used(
        (8.0, usage(8.0, 4.0, 1.0, memory_bytes=5)),
        (9.0, FINISHED),
        (12.0, usage(12.0, 6.0, 2.0, memory_bytes=7, throttled_s=4.0)),
        (22.0, usage(22.0, 9.0, 9.0, memory_bytes=9, throttled_s=8.0)),
    )

    assert (last.time_s, last.cpu_s, last.starved_s) == (9.0, 4.5, 1.25)
    assert (last.memory_bytes, last.throttled_s) == (9, 1.0)


def test_a_node_that_told_first_when_training_was_over_used_its_share():
    """As of a training shorter than a second; the same of one that came again and told only then."""
    (only,) = used((0.5, FINISHED), (2.0, usage(2.0, 1.0)))
    earlier, again = used(
        (8.0, usage(8.0, 4.0)),
        (8.5, records.Node(name="edge-0", state="joined", incarnation=2)),
        (9.0, FINISHED),
        (9.5, usage(1.0, 1.0)),
    )

    assert (only.time_s, only.cpu_s) == (0.5, 0.25)
    assert (earlier.time_s, again.time_s, again.cpu_s) == (8.0, 0.5, 0.5)


def test_a_training_that_goes_on_has_not_ended():
    """Where a server is restored, or a controller goes on, what was told meanwhile is of the training."""
    (last,) = used(
        (8.0, usage(8.0, 4.0)),
        (9.0, FINISHED),
        (10.0, usage(10.0, 5.0)),
        (10.5, records.Restored(version=1)),
        (11.0, FINISHED),
        (12.0, usage(12.0, 9.0)),
    )

    assert (last.time_s, last.cpu_s) == (11.0, 7.0)
