"""A connection is read from the kernel's bytes, and whatever else these are, they are refused."""

import contextlib
import ipaddress
import socket
import struct
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.emulation.netlink import BadAnswerError
from edgebed.emulation.witness.connections import Connection, read_connection

COOKIE = bytes(range(8))
COUNTS = st.integers(0, 2**64 - 1)


def told(near, far, acked=0, received=0, round_trip_us=0):
    """What the kernel tells of a connection between two addresses."""
    addresses = [ipaddress.ip_address(each).packed for each in (near, far)]
    family = socket.AF_INET if len(addresses[0]) == 4 else socket.AF_INET6
    head = struct.pack("=BBBBHH16s16sI8s5I", family, 1, 0, 0, 80, 81, *addresses, 0, COOKIE, 0, 0, 0, 0, 7)
    info = bytes(120) + struct.pack("=QQIIII", acked, received, 1, 2, 3, round_trip_us) + bytes(40)
    return head + struct.pack("=HHB3x", 5, 8, 0) + struct.pack("=HH", 4 + len(info), 2) + info


@given(COUNTS, COUNTS, st.integers(1, 2**32 - 2))
@pytest.mark.parametrize(("near", "far"), [("10.0.0.2", "10.0.0.1"), ("::ffff:10.0.0.2", "::ffff:10.0.0.1")])
def test_a_connection_is_read_as_it_is_told(near, far, acked, received, round_trip_us):
    """Whether its socket is of IPv4, or of IPv6 and speaks to one."""
    peer = ipaddress.ip_address("10.0.0.1").packed

    assert read_connection(told(near, far, acked, received, round_trip_us)) == (
        COOKIE,
        Connection(peer, acked, received, round_trip_us),
    )


@pytest.mark.parametrize("unmeasured", [0, 2**32 - 1])
def test_a_round_trip_that_was_not_measured_is_none(unmeasured):
    """The kernel tells the largest number there is, or none."""
    _, connection = read_connection(told("10.0.0.2", "10.0.0.1", round_trip_us=unmeasured))

    assert connection.round_trip_us is None


def test_the_smallest_round_trip_is_kept():
    """The kernel forgets it after some minutes."""
    looks = [Connection(b"peer", sent, 0, trip) for sent, trip in enumerate((None, 30, 50, None))]

    assert reduce(Connection.then, looks) == Connection(b"peer", 3, 0, 30)


@pytest.mark.parametrize(
    ("near", "far"),
    [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.2"), ("10.0.0.2", "10.0.0.2"), ("10.0.0.2", "0.0.0.0"),
     ("::1", "::1"), ("::ffff:127.0.0.1", "::ffff:127.0.0.1"), ("::", "::")],
)  # fmt: skip
def test_what_stays_in_a_node_is_no_connection_with_another(near, far):
    """Over the loopback, or a socket that listened."""
    assert read_connection(told(near, far)) is None


@given(st.binary(max_size=400) | st.integers(0, 300).map(lambda size: told("10.0.0.2", "10.0.0.1")[:size]))
def test_any_bytes_are_read_or_refused(data):
    """Nothing else is raised."""
    with contextlib.suppress(BadAnswerError):
        read_connection(data)
