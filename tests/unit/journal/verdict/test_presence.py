"""When nodes took part in training, and until when they could tell."""

import dataclasses

import pytest

from edgebed.core import records
from edgebed.core.recorded.measured import told_after_s
from edgebed.journal.series import Series
from edgebed.journal.verdict.presence import Incarnation, Presence, Span

from .conftest import done, host

ENDED = records.Ended(outcome="completed", reason="enough")


def series_with(*states, faults=(), loads=(), ended=ENDED):
    """A minute of training, in which edge-0 was in these states: (t, state)."""
    nodes = tuple((t, records.Node(name="edge-0", state=state)) for t, state in states)
    hosts = {"": tuple((t, host()) for t in loads)}
    return dataclasses.replace(
        Series.empty(), nodes=nodes, faults=faults, hosts=hosts, finished_t=60.0, last_t=61.0, ended=ended
    )


@pytest.mark.parametrize(
    ("states", "lives"),
    [
        ([], [(0.0, 60.0, True)]),
        ([(-1.0, "joined"), (0.001, "running"), (60.3, "stopped")], [(0.001, 60.0, True)]),
        ([(0.0, "running"), (20.0, "unresponsive"), (25.0, "running")], [(0.0, 60.0, True)]),
        ([(0.0, "running"), (20.0, "died")], [(0.0, 20.0, False)]),
        (
            [(0.0, "running"), (20.0, "died"), (21.0, "joined"), (23.0, "running")],
            [(0.0, 20.0, False), (23.0, 60.0, True)],
        ),
        ([(-9.0, "started"), (-2.0, "died")], []),
        ([(-9.0, "expected"), (-2.0, "missing")], []),
    ],
    ids=["unknown", "all the time", "out of reach for a while", "died", "started anew", "never trained", "never came"],
)
def test_a_node_takes_part_from_running_to_its_end(states, lives):
    """Whoever died cannot have told all."""
    found = Presence(series_with(*states)).lives("edge-0")

    assert [(*span, told) for span, told in found] == lives


@pytest.mark.parametrize(
    ("actions", "until_s", "told"),
    [
        ([("freeze", 10.0)], 10.0, False),
        ([("freeze", 10.0), ("thaw", 20.0)], 60.0, True),
        ([("cut", 10.0), ("heal", 20.0), ("cut", 30.0)], 30.0, False),
        ([("link", 10.0)], 60.0, True),
    ],
)
def test_a_node_that_faults_silenced_to_the_end_could_tell_until_then(actions, until_s, told):
    """One that came back tells of the time in between: its figures are cumulative."""
    faults = tuple(done(action, asked_t=t) for action, t in actions)
    (life,) = Presence(series_with((0.0, "running"), faults=faults)).lives("edge-0")

    assert life == Incarnation(Span(0.0, until_s), told)


def test_a_life_whose_end_nobody_saw_ended_when_anything_was_last_heard():
    """The controller was gone, and with it all nodes; resumed, it begins anew."""
    series = series_with((0.0, "running"), (40.0, "expected"), (45.0, "running"), loads=(2.0, 18.0, 47.0))

    assert Presence(series).lives("edge-0") == (
        Incarnation(Span(0.0, 18.0), reported=False),
        Incarnation(Span(45.0, 60.0), reported=True),
    )


def test_what_was_measured_last_is_not_owed_of_a_node_that_could_not_tell():
    """That is a second, and what it would have told then; while a trial goes on likewise."""
    assert Incarnation(Span(0.0, 60.0), reported=True).owed == Span(0.0, 60.0)
    assert Incarnation(Span(0.0, 60.0), reported=False).owed == Span(0.0, 60.0 - told_after_s(60.0) - 1.0)
    assert Incarnation(Span(5.0, 6.0), reported=False).owed.length_s == 0.0
    (life,) = Presence(series_with((0.0, "running"), ended=None)).lives("edge-0")
    assert not life.reported


def test_parts_of_the_training_overlap_or_do_not():
    """Each second counts once."""
    assert Span(5.0, 10.0).within([Span(0.0, 6.0), Span(7.0, 8.0), Span(9.0, 20.0), Span(30.0, 31.0)]) == 3.0
    assert Span(5.0, 4.0).length_s == 0.0


@pytest.mark.parametrize(
    ("actions", "seconds"),
    [
        ([("freeze", 10.0), ("thaw", 14.0), ("freeze", 20.0), ("thaw", 21.0)], 5.0),
        ([("freeze", 10.0), ("freeze", 12.0), ("kill", 13.0)], 3.0),
        ([("freeze", 50.0)], 10.0),
        ([("cut", 10.0), ("heal", 14.0)], 0.0),
    ],
)
def test_a_node_is_frozen_from_a_freeze_to_a_thaw_its_death_or_the_end(actions, seconds):
    """As asked, by a fault or by hand."""
    faults = tuple(done(action, asked_t=t) for action, t in actions)

    presence = Presence(series_with(faults=faults))

    frozen, other = (sum(each.span.length_s for each in presence.frozen(node)) for node in ("edge-0", "edge-1"))

    assert (frozen, other) == (seconds, 0.0)
