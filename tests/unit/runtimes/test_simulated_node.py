"""A node's life in virtual time: what waits while it is frozen, what stands still, what an end leaves."""

from edgebed.runtimes.simulation.agenda import Agenda
from edgebed.runtimes.simulation.simulated_node import PendingResult, SimulatedIncarnation


def happenings(agenda: Agenda[SimulatedIncarnation], *incarnations: SimulatedIncarnation) -> list[tuple[float, object]]:
    """(when, what) of all that happens to these, frozen ones deferring it."""
    found = []
    while entry := agenda.next():
        incarnation, event = entry
        assert incarnation in incarnations
        if incarnation.is_frozen:
            incarnation.deferred.append(event)
        else:
            found.append((agenda.now, event))
    return found


def test_what_is_due_at_the_same_time_happens_as_it_was_added() -> None:
    """And what is added for a time that is past happens now."""
    agenda, incarnation = Agenda[SimulatedIncarnation](), SimulatedIncarnation("edge-0")
    for at_s, event in ((2.0, "c"), (1.0, "a"), (2.0, "d"), (1.0, "b")):
        agenda.add(at_s, incarnation, event)

    assert happenings(agenda, incarnation) == [(1.0, "a"), (1.0, "b"), (2.0, "c"), (2.0, "d")]
    agenda.add(0.0, incarnation, "late")
    assert happenings(agenda, incarnation) == [(2.0, "late")]


def test_what_is_taken_out_does_not_happen_and_the_rest_keeps_its_order() -> None:
    """Taken in order, with the seconds that were left."""
    agenda, incarnation, other = (
        Agenda[SimulatedIncarnation](),
        SimulatedIncarnation("edge-0"),
        SimulatedIncarnation("edge-1"),
    )
    for k in range(10):
        agenda.add(10.0 - k, incarnation if k % 2 else other, k)
    agenda.add(0.5, other, "first")
    assert agenda.next() == (other, "first")

    assert agenda.take(incarnation) == [(10.0 - k - 0.5, incarnation, k) for k in (9, 7, 5, 3, 1)]
    assert [event for _, event in happenings(agenda, other)] == [8, 6, 4, 2, 0]


def test_a_frozen_life_gets_what_it_missed_in_order_and_its_work_so_much_later() -> None:
    """Frozen from 1 to 4: work that was due at 2.5 is due at 5.5."""
    agenda, incarnation = Agenda[SimulatedIncarnation](), SimulatedIncarnation("edge-0")
    work = PendingResult(1)
    for at_s, event in ((1.0, "freeze"), (2.0, "message"), (2.5, work), (3.0, "timer"), (4.0, "thaw"), (9.0, "later")):
        agenda.add(at_s, incarnation, event)
    assert agenda.next() == (incarnation, "freeze")
    incarnation.freeze(agenda)
    incarnation.freeze(agenda)
    for expected in ("message", "timer"):
        entry = agenda.next()
        assert entry == (incarnation, expected)
        incarnation.deferred.append(expected)
    assert agenda.next() == (incarnation, "thaw")
    incarnation.thaw(agenda)

    assert happenings(agenda, incarnation) == [(4.0, "message"), (4.0, "timer"), (5.5, work), (9.0, "later")]


def test_an_ended_life_tells_all_that_it_leaves() -> None:
    """What it missed, what was to come, the work that stood still; of another nothing."""
    agenda, incarnation, other = (
        Agenda[SimulatedIncarnation](),
        SimulatedIncarnation("edge-0"),
        SimulatedIncarnation("edge-1"),
    )
    work = PendingResult(1)
    agenda.add(1.0, incarnation, work)
    incarnation.freeze(agenda)
    incarnation.deferred.append("missed")
    agenda.add(2.0, incarnation, "to come")
    agenda.add(2.0, other, "not its own")

    assert incarnation.unfinished(agenda) == ["missed", "to come", work]
    assert happenings(agenda, other) == [(2.0, "not its own")]
