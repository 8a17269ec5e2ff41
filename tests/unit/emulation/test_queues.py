"""What a link asks of the kernel's queues, written by another library and read back."""

import struct

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from edgebed.emulation.conditions import LinkState
from edgebed.emulation.netlink import attributes, messages, read_qdisc
from edgebed.emulation.tc import Features, disciplines

PACKET_BYTES = 1514
_QDISC_BYTES, _TCA_OPTIONS = 20, 2


def netem_of(rate_bit_s: int | None, **asked: float) -> tuple[list[str], bytes]:
    """Kinds from the root downwards, and the message of the netem."""
    found = disciplines(rate_bit_s, LinkState(uplink_bit_s=rate_bit_s, **asked), Features(netem=True))
    message = tcmsg()
    message["attrs"] = [("TCA_KIND", "netem"), ("TCA_OPTIONS", found[-1][1])]
    message.encode()
    ((*_, payload),) = messages(bytes(message.data))
    return [kind for kind, _ in found], payload


def limit_of(payload: bytes) -> int:
    """Packets that a netem takes: the second number of the kernel's tc_netem_qopt."""
    return struct.unpack_from("=4xI", attributes(payload[_QDISC_BYTES:])[_TCA_OPTIONS])[0]


@pytest.mark.parametrize("rate_bit_s", [64_000, 1_000_000, 10_000_000, 100_000_000])
def test_a_netem_below_a_limit_holds_no_more_than_the_queue_and_what_is_on_its_way(rate_bit_s):
    """A queue counted in packets keeps the promise of one in bytes, also on a slow link."""
    kinds, payload = netem_of(rate_bit_s, latency_s=0.04, jitter_s=0.01, loss=0.25)
    queue = read_qdisc(payload).queue

    assert kinds == ["tbf", "netem"]
    assert (queue.delay_s, queue.jitter_s) == (pytest.approx(0.04), pytest.approx(0.01))
    assert queue.loss == pytest.approx(0.25)
    waiting, on_their_way = max(32_000, rate_bit_s / 8 * 0.2), rate_bit_s / 8 * 0.05
    assert limit_of(payload) == pytest.approx((waiting + on_their_way) / PACKET_BYTES, abs=1)


def test_a_netem_alone_never_lacks_room():
    """There is no rate for packets to wait for."""
    kinds, payload = netem_of(None, loss=0.01)

    assert kinds == ["netem"]
    assert read_qdisc(payload).queue.loss == pytest.approx(0.01)
    assert limit_of(payload) >= 100_000
