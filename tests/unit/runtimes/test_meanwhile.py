"""While a node computes, another thread sees to what is due: what is lent is used by one at a time, and given back."""

import threading
import time

import pytest
from waiting import until

from edgebed.runtimes.live.shell.meanwhile import Meanwhile


def test_what_is_due_is_seen_to_while_something_is_lent_and_never_else():
    """However long the job: nothing else may happen in the node's own thread meanwhile."""
    lent = threading.Event()
    seen: list[bool] = []
    enough = threading.Event()

    def see_to() -> float:
        seen.append(lent.is_set())
        if len(seen) >= 3:
            enough.set()
        return 0.0

    with Meanwhile(see_to, 0.02) as meanwhile:
        time.sleep(0.05)
        assert seen == []
        with meanwhile.lending():
            lent.set()
            assert enough.wait(30.0)
            lent.clear()
        count = len(seen)
        time.sleep(0.05)
        assert len(seen) == count
    assert not meanwhile.thread.is_alive()


def test_what_goes_wrong_meanwhile_ends_the_job_with_it():
    """In the node's own thread, where it ends the node as it would have without."""

    def see_to() -> float:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"), Meanwhile(see_to, 0.004) as meanwhile, meanwhile.lending():
        until(lambda: meanwhile.problem is not None, "the problem", every_s=0.002)


def test_a_node_that_does_nothing_meanwhile_has_no_thread():
    """As a server."""
    with Meanwhile(lambda: 0.0, None) as meanwhile, meanwhile.lending():
        assert not meanwhile.thread.is_alive()
