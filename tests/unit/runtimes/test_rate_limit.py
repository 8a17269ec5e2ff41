"""A flood of bad messages is counted, and no refused push of a known worker is lost in it."""

from edgebed.core.records import Dropped, Refused
from edgebed.runtimes.live.rate_limit import TOLD_APART, RateLimiter


def test_the_first_of_a_second_are_told_apart_and_the_others_counted():
    """By kind; the next second begins anew."""
    gate = RateLimiter()
    admitted = [gate.admit(Dropped(socket="data", reason=str(k))) for k in range(TOLD_APART + 5)]

    assert admitted == [True] * TOLD_APART + [False] * 5
    assert gate.admit(Refused(peer="p", code="unknown-node", reason="")) is True
    assert gate.release() == [Dropped(socket="data", reason=str(TOLD_APART + 4), count=5)]
    assert (gate.release(), gate.admit(Dropped(socket="data", reason=""))) == ([], True)


def test_every_refused_push_of_a_known_worker_is_told_apart():
    """Each update is accounted for by its line."""
    gate = RateLimiter()
    pushes = [Refused(peer="p", code="late", reason="", worker="edge-0", step=k) for k in range(3 * TOLD_APART)]

    assert all(gate.admit(push) for push in pushes)
    assert gate.release() == []
