"""A flood of bad messages is counted, and no refused push of a known worker is lost in it."""

from edgebed.core.records import Dropped, Refused
from edgebed.runtimes.live.rate_limit import ALLOWANCE, ALLOWANCES, SAVED_S, TOLD_APART, Budget, RateLimiter


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


def test_a_node_spends_what_it_may_report_and_no_more():
    """By records and by bytes; what it does not report is saved up, for a while; each node has its own."""
    budget = Budget()
    second = ALLOWANCE.records, ALLOWANCE.bytes
    at_once = [budget.spend("a", "worker", *second, now=0.0) for _ in range(int(SAVED_S) + 2)]

    assert at_once == [True] * int(SAVED_S) + [False] * 2
    assert not budget.spend("a", "worker", 1, ALLOWANCE.bytes, now=0.5)
    assert budget.spend("b", "worker", *second, now=0.5)
    assert [budget.spend("a", "worker", *second, now=now) for now in (1.0, 1.1, 2.0)] == [True, False, True]
    assert budget.spend("a", "worker", 1, int(SAVED_S) * ALLOWANCE.bytes, now=1e6)
    assert not budget.spend("a", "worker", 1, ALLOWANCE.bytes, now=1e6)


def test_a_server_may_report_more():
    """It has a record for each update."""
    budget = Budget()
    assert budget.spend("s", "server", int(SAVED_S) * ALLOWANCES["server"].records, 0, now=0.0)
    assert not budget.spend("w", "worker", int(SAVED_S) * ALLOWANCES["server"].records, 0, now=0.0)
