"""How long a message takes between two nodes whose links are exactly as asked, with nothing else on them; pure."""

from edgebed.emulation.conditions import Timeline
from edgebed.emulation.framing import burst_bytes


def transfer_s(uplink_of: Timeline, downlink_of: Timeline, since_s: float, wire_bytes: int) -> float:
    """Seconds that bytes take from `since_s` on (of the training) through one's uplink and another's downlink.

    The slower one counts, at each moment; its burst passes at once. Latency is not in it.
    """
    at_s = since_s
    left: float | None = None
    while True:
        rate_bit_s = _slower(uplink_of.at(at_s).uplink_bit_s, downlink_of.at(at_s).downlink_bit_s)
        if rate_bit_s is None:
            return at_s - since_s
        if left is None:
            left = max(0, wire_bytes - burst_bytes(rate_bit_s))
        change_s = min(uplink_of.next_change_s(at_s), downlink_of.next_change_s(at_s))
        capacity = (change_s - at_s) * rate_bit_s / 8
        if left <= capacity:
            return at_s + left * 8 / rate_bit_s - since_s
        left -= capacity
        at_s = change_s


def _slower(*rates_bit_s: int | None) -> int | None:
    return min((rate for rate in rates_bit_s if rate is not None), default=None)
