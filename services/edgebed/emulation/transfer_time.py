"""How long a message takes between two nodes whose links are exactly as asked, with nothing else on them; pure."""

from edgebed.core.framing import MTU, ack_share, burst_bytes
from edgebed.emulation.conditions import LinkSchedule, LinkState


def transfer_s(
    uplink_of: LinkSchedule,
    downlink_of: LinkSchedule,
    since_s: float,
    wire_bytes: int,
    *,
    acknowledged: bool,
    mtu: int = MTU,
) -> float:
    """Return the seconds of training that bytes take from `since_s` on through one's uplink and another's downlink.

    The slowest counts, at each moment, with what is between the two; the burst passes at once. Latency is not in it.
    `acknowledged`: with the wait for acknowledgements, where the way back is very much slower. They may be fewer, so it
    could be less. `mtu`: the network's.
    """
    at_s = since_s
    left: float | None = None
    while True:
        rate_bit_s = _rate_bit_s(uplink_of.at(at_s), downlink_of.at(at_s), mtu if acknowledged else None)
        if rate_bit_s is None:
            return at_s - since_s
        if left is None:
            left = max(0, wire_bytes - burst_bytes(rate_bit_s, mtu))
        change_s = min(uplink_of.next_change_s(at_s), downlink_of.next_change_s(at_s))
        capacity = (change_s - at_s) * rate_bit_s / 8
        if left <= capacity:
            return at_s + left * 8 / rate_bit_s - since_s
        left -= capacity
        at_s = change_s


def _rate_bit_s(sender: LinkState, receiver: LinkState, acknowledged_mtu: int | None) -> int | None:
    """Return the rate from one to the other, with acknowledgements of packets of that MTU, if any; None: no limit."""
    rates = [rate for rate in (sender.uplink_bit_s, receiver.downlink_bit_s) if rate is not None]
    rates += [rate for _, rate in (*sender.narrowed, *receiver.narrowed)]  # whoever asks knows of these two alone
    if acknowledged_mtu is not None:
        back = (receiver.uplink_bit_s, sender.downlink_bit_s)
        rates += [round(rate / ack_share(acknowledged_mtu)) for rate in back if rate is not None]
    return min(rates, default=None)
