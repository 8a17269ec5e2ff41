"""Barriers: who waits, who goes on, and what a death changes."""

from edgebed.runtimes.programs.barriers import Barriers


def test_a_barrier_opens_for_all_who_wait_and_can_be_used_again():
    """Names are apart; the next round begins with nobody."""
    barriers = Barriers()

    assert barriers.came("home-0", "a", 2) == []
    assert barriers.came("home-1", "b", 2) == []
    assert barriers.came("home-0", "a", 2) == [], "the same node counts once"
    assert barriers.came("home-2", "a", 2) == ["home-0", "home-2"]
    assert barriers.came("home-2", "a", 2) == []


def test_a_program_that_has_ended_waits_no_more():
    """Its next life has to come itself."""
    barriers = Barriers()
    barriers.came("home-0", "a", 2)
    barriers.left("home-0")

    assert barriers.came("home-1", "a", 2) == []
    assert barriers.came("home-0", "a", 2) == ["home-1", "home-0"]
