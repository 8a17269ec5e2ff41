"""How long a message takes over links as asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.conditions import LinkSchedule
from edgebed.emulation.transfer_time import transfer_s

MBIT = 1_000_000


def took_s(link, other=None, since_s=0.0, wire_bytes=126_600, acknowledged=True):
    """Through the uplink of one node and the downlink of another."""
    return transfer_s(
        LinkSchedule(link), LinkSchedule(other or LinkPlan()), since_s, wire_bytes, acknowledged=acknowledged
    )


def test_acknowledgements_hold_a_message_up_on_a_very_uneven_link():
    """A packet of 66 bytes for every 3,028: at 100 mbit they need 2.2 mbit the other way."""
    server, home = LinkPlan(), LinkPlan(uplink_bit_s=MBIT, downlink_bit_s=100 * MBIT)
    size = 10_003_000  # 80 mbit after the burst

    assert took_s(server, home, wire_bytes=size) == pytest.approx(80 * 66 / 3028, rel=0.01)
    assert took_s(server, home, wire_bytes=size, acknowledged=False) == pytest.approx(0.8)
    assert took_s(LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=MBIT), wire_bytes=1_251_600) == pytest.approx(1.0)


def test_an_overlays_packets_are_smaller():
    """Less passes at once, and there are more of them to acknowledge: 66 bytes for every 2,928."""
    link, home = LinkSchedule(LinkPlan(uplink_bit_s=MBIT)), LinkPlan(uplink_bit_s=MBIT, downlink_bit_s=100 * MBIT)
    free = LinkSchedule(LinkPlan())

    assert transfer_s(link, free, 0.0, 1550 + 125_000, acknowledged=False, mtu=1450) == pytest.approx(1.0)
    took = transfer_s(free, LinkSchedule(home), 0.0, 10_002_900, acknowledged=True, mtu=1450)
    assert took == pytest.approx(80 * 66 / 2928, rel=0.01)


def test_without_a_limit_it_takes_no_time():
    """A link as fast as the machine."""
    assert took_s(LinkPlan(), LinkPlan()) == 0.0


def test_the_slower_end_counts():
    """125 kB after a burst of 1600 bytes, at 10 mbit."""
    fast, slow = LinkPlan(uplink_bit_s=100 * MBIT), LinkPlan(downlink_bit_s=10 * MBIT)

    assert took_s(fast, slow) == pytest.approx(0.1)
    assert took_s(LinkPlan(uplink_bit_s=10 * MBIT), LinkPlan(downlink_bit_s=100 * MBIT)) == pytest.approx(0.1)


def test_what_fits_into_the_burst_takes_no_time():
    """A single packet after a silence."""
    assert took_s(LinkPlan(uplink_bit_s=MBIT), wire_bytes=1600) == 0.0


def test_a_rate_that_changes_on_the_way_counts_from_then_on():
    """Half a second at 1 mbit, the rest at 10."""
    link = LinkPlan(uplink_bit_s=MBIT, changes=(LinkChange(at_s=2.0, uplink_bit_s=10 * MBIT),))

    assert took_s(link, since_s=1.5) == pytest.approx(0.5 + 0.05)
    assert took_s(link, since_s=3.0) == pytest.approx(0.1, rel=0.02)


@given(
    size=st.integers(0, 10**7),
    more=st.integers(0, 10**6),
    since_s=st.floats(0, 100),
    rates=st.lists(st.integers(10**5, 10**8), min_size=1, max_size=8),
)
def test_more_bytes_never_take_less_time(size, more, since_s, rates):
    """Over any trace."""
    changes = tuple(LinkChange(at_s=float(index), uplink_bit_s=rate) for index, rate in enumerate(rates))
    link = LinkPlan(changes=changes, period_s=float(len(rates)), uplink_bit_s=rates[0])

    one, other = took_s(link, None, since_s, size), took_s(link, None, since_s, size + more)

    assert 0.0 <= one <= other
    assert other <= (size + more) * 8 / min(rates) + 1e-6
