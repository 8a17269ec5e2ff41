"""What messages cost on the wire, by the network's MTU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.framing import ack_share, burst_bytes, num_segments, packet_bytes, segment_bytes, wire_bytes


@pytest.mark.parametrize(("mtu", "segment", "packet"), [(1500, 1448, 1514), (1450, 1398, 1464)])
def test_a_full_segment_is_what_the_mtu_leaves(mtu, segment, packet):
    """An Ethernet, and an overlay network, whose outer headers of 50 bytes have to fit as well."""
    assert (segment_bytes(mtu), packet_bytes(mtu)) == (segment, packet)
    assert wire_bytes(segment, mtu) == packet
    assert wire_bytes(segment + 1, mtu) == segment + 1 + 2 * 66
    assert num_segments(10 * segment, mtu) == 10
    assert ack_share(mtu) == pytest.approx(66 / (2 * packet))


@given(st.integers(1000, 1_000_000_000), st.sampled_from([1450, 1500]))
def test_a_burst_is_one_packet_or_two_whatever_the_mtu(rate_bit_s, mtu):
    """A packet always fits, and less than three do."""
    assert packet_bytes(mtu) <= burst_bytes(rate_bit_s, mtu) < 2 * packet_bytes(mtu)


def test_an_ethernets_burst_is_what_it_was():
    """Journals of runs say so."""
    assert [burst_bytes(rate) for rate in (1_000, 10_000_000, 10_000_001, 10**9)] == [1600, 1600, 3000, 3000]
