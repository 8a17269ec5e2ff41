"""What else was on the one link of a node that exchanges messages with several others, by what it sends and receives.

Others' messages take their part of a link's rate. And where the kernel holds the link, acknowledgements wait on the way
back in the queue of what passes there, and TCP waits for them.
"""

from edgebed.core.framing import extra_rounds, queue_bytes
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.conditions import LinkSchedule
from edgebed.emulation.shared_link import LinkLoad, SharedDownlink, SharedUplink
from edgebed.emulation.transfer_time import transfer_s

UNLIMITED = LinkSchedule(LinkPlan())


class SharedLinks:
    """A node's uplink and downlink; times are in seconds since training began."""

    def __init__(self, own: LinkSchedule, mtu: int) -> None:
        self.own = own
        self.mtu = mtu
        self.uplink, self.downlink = SharedUplink(), SharedDownlink()
        self.paced_uplink = SharedDownlink()
        """The uplink where the shell holds it: there a message is known when it is over."""
        self.is_paced = False
        """Whether the shell holds the link."""
        self.up_load, self.down_load = LinkLoad(), LinkLoad()
        self.left: dict[str, tuple[float, int]] = {}
        """When the last message left for each node that has not been heard of since, and its bytes."""

    def sent(self, now: float, first_s: float, to: str, size: int, *, paced: bool) -> dict[str, float]:
        """Note bytes given to the kernel, whose first one left at `first_s`: what is added to messages, by receiver."""
        alone_s = transfer_s(self.own, UNLIMITED, first_s, size, acknowledged=False, mtu=self.mtu)
        self.is_paced = paced
        self.up_load.add(now, alone_s)
        self.left[to] = now, size
        if not alone_s:
            return {}
        return self.paced_uplink.receive(now, first_s, to, alone_s) if paced else self.uplink.send(now, to, alone_s)

    def came(self, now: float, sent_s: float, source: str, size: int) -> tuple[dict[str, float], float]:
        """Note a message that came: what is added to such messages, by sender, and to the last one sent to `source`."""
        alone_s = transfer_s(UNLIMITED, self.own, sent_s, size, acknowledged=False, mtu=self.mtu)
        extra = self.downlink.receive(now, sent_s, source, alone_s) if alone_s else {source: 0.0}
        self.down_load.add(now, alone_s)
        state = self.own.at(sent_s)
        extra[source] += self._waits_s(state.uplink_bit_s, self.up_load, sent_s, size)
        return extra, self._back_s(source)

    def unheard(self) -> dict[str, float]:
        """What is added, at the end, to the last message for each node that has not been heard of since."""
        return {to: self._back_s(to) for to in list(self.left)}

    def _back_s(self, to: str) -> float:
        """Seconds that acknowledgements of the last message for a node waited behind what came, at most; told once."""
        left_s, left_bytes = self.left.pop(to, (0.0, 0))
        return self._waits_s(self.own.at(left_s).downlink_bit_s, self.down_load, left_s, left_bytes)

    def _waits_s(self, rate_bit_s: int | None, load: LinkLoad, since_s: float, size: int) -> float:
        """Seconds that acknowledgements of a message waited behind others' bytes on the way back, at most."""
        if rate_bit_s is None or self.is_paced or not size:
            return 0.0
        queue_s = 8 * queue_bytes(rate_bit_s) / rate_bit_s
        return min((1 + extra_rounds(size, self.mtu)) * queue_s, load.since(since_s - queue_s))
