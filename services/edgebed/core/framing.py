"""What a message costs on an Ethernet link, where rates are counted: payload in TCP segments with all their headers.

Packets are as large as the network lets them be: an Ethernet has an MTU of 1500, an overlay network less.
"""

MTU = 1500
"""Bytes of a packet of an Ethernet, with the headers of IPv4 and TCP."""
_IN_PACKET_BYTES = 52
"""Headers that count against the MTU: IPv4 20, TCP 20, and TCP's timestamps 12."""
ETHERNET_BYTES = 14
HEADER_BYTES = ETHERNET_BYTES + _IN_PACKET_BYTES
"""Headers of a packet: Ethernet 14, IPv4 20, TCP 32."""
ACK_BYTES_A_SEGMENT = HEADER_BYTES / 2
"""Acknowledgements for each segment: every second full one gets a packet of headers alone (RFC 5681)."""

SLOW_BIT_S = 10_000_000
QUEUE_S = 0.2
"""Seconds that a packet may wait in the queue of a limited link; what comes then is dropped."""
QUEUE_BYTES_MIN = 32_000
"""Smallest queue, however slow the link: what TCP sends at first must find room."""
INITIAL_WINDOW = 10
"""Segments that a new connection sends before it hears of the first (RFC 6928)."""
CONGESTION_CONTROLS = ("cubic", "reno")
"""TCP's congestion controls that data connections are given, whatever their machine's default is.

The first, or the second, which is everybody's to choose, where the kernel lacks the first or keeps it for the
privileged. BBR, the default of many servers, takes twice the time for 30 packets over a slow link, whose queue drops
the last of them.
"""


def segment_bytes(mtu: int = MTU) -> int:
    """Payload of a full TCP segment: 1448 where the MTU is 1500."""
    return mtu - _IN_PACKET_BYTES


def packet_bytes(mtu: int = MTU) -> int:
    """Bytes on the wire of a full packet: 1514 where the MTU is 1500."""
    return mtu + ETHERNET_BYTES


def ack_share(mtu: int = MTU) -> float:
    """Bytes of acknowledgements that go back for each byte of large messages."""
    return ACK_BYTES_A_SEGMENT / packet_bytes(mtu)


def wire_bytes(payload_bytes: int, mtu: int = MTU) -> int:
    """Bytes on the wire of `payload_bytes` sent in one go."""
    return payload_bytes + HEADER_BYTES * num_segments(payload_bytes, mtu)


def num_segments(payload_bytes: int, mtu: int = MTU) -> int:
    """TCP segments of `payload_bytes` sent in one go."""
    return -(-payload_bytes // (mtu - _IN_PACKET_BYTES))


def burst_bytes(rate_bit_s: int, mtu: int = MTU) -> int:
    """Bytes that a limited link lets through at once after a silence: 1600 or 3000 where the MTU is 1500.

    One full packet; above 10 mbit two, or the kernel's timers would cost throughput. More would let a small push
    through at the machine's own speed.
    """
    return mtu + 100 if rate_bit_s <= SLOW_BIT_S else 2 * mtu


def queue_bytes(rate_bit_s: int) -> int:
    """Bytes that may wait for a limited link."""
    return max(QUEUE_BYTES_MIN, round(rate_bit_s // 8 * QUEUE_S))


def extra_rounds(message_bytes: float, mtu: int = MTU) -> int:
    """Round trips that TCP needs after a silence before all of a message has left.

    It sends INITIAL_WINDOW segments before the first acknowledgement; with each round trip they are twice as many.
    """
    rounds = 0
    while INITIAL_WINDOW * (2 ** (rounds + 1) - 1) * segment_bytes(mtu) < message_bytes:
        rounds += 1
    return rounds


SEGMENT_BYTES = segment_bytes()
ACK_SHARE = ack_share()
