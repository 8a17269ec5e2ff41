"""Stale-synchronous: nobody goes on who would be too far ahead of the slowest, and nobody waits in vain."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.aggregation import stale_synchronous
from edgebed.algorithms.update import ModelUpdate

N = 3
WORKERS = ("a", "b", "c", "d")


def make(bound, *workers):
    """A server with these workers."""
    server = stale_synchronous.Aggregation(stale_synchronous.Config(bound=bound), np.zeros(N, "f4"))
    for worker in workers:
        server.joined(worker)
    return server


def ones():
    """An update of all entries."""
    return ModelUpdate(N, None, np.ones(N, "f4"))


STEPS = st.lists(st.tuples(st.sampled_from(["push", "leave", "join", "expect"]), st.sampled_from(WORKERS)), max_size=60)


@given(bound=st.integers(0, 3), steps=STEPS)
def test_who_goes_on_is_never_too_far_ahead_and_the_slowest_never_waits(bound, steps):
    """Whoever comes and goes, or joins anew; every push is in the model at once."""
    server, going, pushes = make(bound, *WORKERS), set(WORKERS), 0
    clocks = dict.fromkeys(WORKERS, 0)
    for what, worker in steps:
        released = ()
        if what == "push" and worker in going:
            going.discard(worker)
            pushes, clocks[worker] = pushes + 1, clocks[worker] + 1
            released = server.push(worker, ones(), server.version).released
        elif what == "leave" and worker in clocks:
            going.discard(worker)
            del clocks[worker]
            applied = server.left(worker)
            released = applied.released if applied else ()
        elif what == "join":
            clocks.pop(worker, None)
            clocks[worker] = min(clocks.values(), default=0)
            applied = server.joined(worker)
            released = (worker, *(applied.released if applied else ()))
        elif what == "expect" and worker not in clocks:
            clocks[worker] = min(clocks.values(), default=0)
            server.expected(worker)
            going.add(worker)  # nobody waits for its push in vain
        going |= set(released)

        assert server.version == pushes
        if clocks:
            slowest = min(clocks.values())
            assert all(clocks[each] <= slowest + bound for each in going)
            assert all(each in going for each, clock in clocks.items() if clock <= slowest + bound)
    np.testing.assert_allclose(server.theta, -0.1 * pushes, rtol=1e-4)


def test_with_a_bound_of_nothing_all_are_at_one_clock():
    """The last of a round lets all go on."""
    server = make(0, "a", "b", "c")

    assert server.push("b", ones(), 0).released == ()
    assert server.push("a", ones(), 0).released == ()
    assert server.push("c", ones(), 0).released == ("b", "a", "c")
