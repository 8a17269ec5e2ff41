"""What a link asks of the kernel's queues, written by another library and read back."""

import struct

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from edgebed.emulation.conditions import LinkState
from edgebed.emulation.netlink import attributes, messages, read_qdisc
from edgebed.emulation.tc import Features, disciplines

_QDISC_BYTES, _TCA_OPTIONS = 20, 2


def queues_of(rate_bit_s: int | None, **asked: float) -> dict[str, bytes]:
    """The message of each queue by its kind, from the root downwards."""
    found = {}
    for kind, options in disciplines(rate_bit_s, LinkState(uplink_bit_s=rate_bit_s, **asked), Features(netem=True)):
        message = tcmsg()
        message["attrs"] = [("TCA_KIND", kind), ("TCA_OPTIONS", options)]
        message.encode()
        ((*_, found[kind]),) = messages(bytes(message.data))
    return found


def options_of(payload: bytes) -> bytes:
    """What a queue is asked to be."""
    return attributes(payload[_QDISC_BYTES:])[_TCA_OPTIONS]


def packets_of(netem: bytes) -> int:
    """Packets that a netem takes: the second number of the kernel's tc_netem_qopt."""
    return struct.unpack_from("=4xI", options_of(netem))[0]


@pytest.mark.parametrize("rate_bit_s", [64_000, 1_000_000, 10_000_000, 100_000_000])
def test_below_a_limit_a_queue_counts_bytes_and_what_is_on_its_way_has_room(rate_bit_s):
    """However small packets are: acknowledgements of a fast downlink are many, and none is lost for that."""
    queues = queues_of(rate_bit_s, latency_s=0.04, jitter_s=0.01, loss=0.25)
    delay = read_qdisc(queues["netem"]).queue

    assert list(queues) == ["tbf", "netem", "bfifo"]
    assert (delay.latency_s, delay.jitter_s) == (pytest.approx(0.04), pytest.approx(0.01))
    assert delay.loss == pytest.approx(0.25)
    assert packets_of(queues["netem"]) >= 100_000
    assert struct.unpack("=I", options_of(queues["bfifo"])) == (max(32_000, rate_bit_s // 8 // 5),)


def test_a_netem_alone_never_lacks_room():
    """There is no rate for packets to wait for."""
    queues = queues_of(None, loss=0.01)

    assert list(queues) == ["netem"]
    assert read_qdisc(queues["netem"]).queue.loss == pytest.approx(0.01)
    assert packets_of(queues["netem"]) >= 100_000
