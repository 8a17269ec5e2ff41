"""What a message costs on an Ethernet link, where rates are counted: payload in TCP segments with all their headers."""

SEGMENT_BYTES = 1448
"""Payload of a full TCP segment: 1500 less the headers of IPv4 and TCP, and TCP's timestamps."""
HEADER_BYTES = 66
"""Headers of a packet: Ethernet 14, IPv4 20, TCP 32."""
ACK_BYTES_A_SEGMENT = HEADER_BYTES / 2
"""Acknowledgements for each segment: every second full one gets a packet of headers alone (RFC 5681)."""
ACK_SHARE = ACK_BYTES_A_SEGMENT / (SEGMENT_BYTES + HEADER_BYTES)
"""Bytes of acknowledgements that go back for each byte of large messages."""

SLOW_BIT_S = 10_000_000
BURST_BYTES_SLOW, BURST_BYTES = 1600, 3000


def wire_bytes(payload_bytes: int) -> int:
    """Bytes on the wire of `payload_bytes` sent in one go."""
    return payload_bytes + HEADER_BYTES * num_segments(payload_bytes)


def num_segments(payload_bytes: int) -> int:
    """TCP segments of `payload_bytes` sent in one go."""
    return -(-payload_bytes // SEGMENT_BYTES)


def burst_bytes(rate_bit_s: int) -> int:
    """Bytes that a limited link lets through at once after a silence.

    One full packet; above 10 mbit two, or the kernel's timers would cost throughput. More would let a small push
    through at the machine's own speed.
    """
    return BURST_BYTES_SLOW if rate_bit_s <= SLOW_BIT_S else BURST_BYTES
