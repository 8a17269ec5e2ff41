"""How a calibration reads its trials."""

import pytest

from edgebed.core.errors import InfrastructureError
from edgebed.core.framing import burst_bytes
from edgebed.core.records import HostLoad, Received, Trial, Usage
from edgebed.emulation.calibration import PAYLOAD_SHARE
from edgebed.journal.transfer_times import Passed
from edgebed.studies.host.calibrate import FULL, QUICK, bulk_of, images, together_of

RATE = 10_000_000


def test_goodput_leaves_out_what_the_burst_let_through():
    """Messages that took exactly their time on the wire less the burst miss nothing; one that waited does not count."""
    perfect = [Passed("edge-0", "push", 847_000, 1.0, Passed("", "", 847_000, 0.0, 0.0).ideal_s(RATE))] * 4
    waited = Passed("edge-0", "push", 847_000, 1.0, 60.0)

    found = bulk_of(RATE, "up", [*perfect, waited])

    assert found.messages == 5
    assert found.deviation == pytest.approx(0.0, abs=1e-4)  # the last segment of a message is not full
    assert bulk_of(RATE, "up", [waited]).goodput_bit_s == pytest.approx(
        8 * (847_000 - burst_bytes(RATE) * PAYLOAD_SHARE) / 60
    )


def test_a_rate_at_which_nothing_passed_was_not_measured():
    """It says which."""
    with pytest.raises(InfrastructureError, match="10mbit, up"):
        bulk_of(RATE, "up", [])


def test_links_together_are_judged_once_they_no_longer_leave_together():
    """Messages count by what they should have taken; memory is each node's last word, CPU counts as messages do."""
    ideal_s = Passed("", "", 100_000, 0.0, 0.0).ideal_s(RATE)

    def message(worker, kind, sent_s, took_s):
        sender, reader = ("server", worker) if kind == "model" else (worker, "server")
        return [(sent_s + took_s, reader, Received(sender=sender, message=kind, bytes=100_000, sent_s=sent_s))]

    trial = Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=4, parameters=1)
    entries = [(10.0, "controller", trial)]
    for worker in ("edge-0", "edge-1"):
        entries += message(worker, "model", 10.0, 9.0)
        entries += message(worker, "push", 20.0, ideal_s)
        entries += message(worker, "model", 21.0, 2 * ideal_s)
        entries += [(t, worker, Usage(time_s=t, cpu_s=1.0, memory_bytes=size)) for t, size in ((11.0, 5), (22.0, 30))]
    entries += [
        (t, "controller", HostLoad(busy=busy, steal=0.0, load=0.0, lag_s=0.0)) for t, busy in ((9.0, 1.0), (15.0, 0.4))
    ]

    found = together_of(2, RATE, entries)

    assert found.messages == 4
    assert found.held == pytest.approx(2 / 3)
    assert (found.host_busy, found.node_bytes) == (0.4, 30)


def test_noise_has_the_shape_of_mnist():
    """So that the CNN is as large as there: 847 kB."""
    x, y, _, _ = images(3)

    assert x.shape[1:] == (1, 28, 28)
    assert set(y) == set(range(10))
    assert (images(3)[0] == x).all()


def test_a_quick_look_takes_less_than_a_minute_a_place():
    """And the whole of it less than eight."""
    for place in ("docker", "namespaces", "model"):
        assert QUICK.duration_s(place) < 60
        assert QUICK.duration_s(place) < FULL.duration_s(place) < 480
