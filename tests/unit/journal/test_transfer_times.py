"""Times of messages out of a traced journal."""

import pytest

from edgebed.core.framing import burst_bytes, wire_bytes
from edgebed.core.records import Note, Received
from edgebed.journal.transfer_times import Passed, passed


def test_pushes_and_models_have_a_worker_a_size_and_a_time():
    """From when the message says that its first byte left; other records and other messages do not matter."""
    entries = [
        (0.1, "server", Note(text="something else")),
        (0.2, "server", Received(sender="edge-0", message="join", bytes=9)),
        (2.0, "server", Received(sender="edge-0", message="push", bytes=10, sent_s=1.0)),
        (3.25, "edge-1", Received(sender="server", message="model", bytes=99, sent_s=3.0)),
    ]

    assert list(passed(entries)) == [Passed("edge-0", "push", 10, 1.0, 1.0), Passed("edge-1", "model", 99, 3.0, 0.25)]


def test_the_evaluator_is_no_worker():
    """Its models travel elsewhere."""
    assert list(passed([(2.0, "evaluator", Received(sender="server", message="model", bytes=5, sent_s=1.0))])) == []


def test_the_ideal_time_leaves_out_what_the_burst_lets_through():
    """And is nothing for a message that fits into it."""
    rate = 10_000_000
    bulk, small = Passed("edge-0", "push", 847_000, 0.0, 1.0), Passed("edge-0", "push", 100, 0.0, 1.0)

    assert bulk.ideal_s(rate) == pytest.approx((wire_bytes(847_000) - burst_bytes(rate)) * 8 / rate)
    assert small.ideal_s(rate) == 0.0
