"""The far ends of nodes' links, over netlink: ports of a bridge, each the other end of a node's pair of veth.

    node's namespace   data  <-- pair of veth -->  port   namespace of the bridge

What a port receives is what its node sends. The kernel counts at both ends; whoever has changed a node's own end has
not changed this one. edgebed sets nothing at a port, so what limits there is somebody else's.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from edgebed.core.quantities import rate_text
from edgebed.emulation import netlink
from edgebed.emulation.netlink import Netlink, Payload, Qdisc

INGRESS = {netlink._INGRESS_HANDLE: "sends"}
CLSACT = {0xFFFF_FFF2: "sends", 0xFFFF_FFF3: "receives"}
"""Parents of filters at a port (pkt_sched.h), with what the node does with the packets that pass them."""
_IFLA_LINK = 5


class Port(NamedTuple):
    """One end of a pair of veth."""

    received: int
    """Bytes, with Ethernet's headers."""
    sent: int
    mtu: int
    peer: int
    """Index of the other end, in the other end's namespace; 0: there is none."""


class PortReader(Netlink):
    """Reader of all interfaces of the network namespace that the thread is in when it makes one.

    Its methods raise OSError, and BadAnswerError.
    """

    def ports(self) -> dict[int, Port]:
        """All interfaces by their index."""
        return {index: _port(found) for index, found in self._links().items()}

    def port(self, index: int) -> Port:
        """One interface."""
        return _port(self._link(index))

    def limits(self, indices: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """What limits what passes these interfaces, in words, where anything does."""
        wanted = set(indices)
        found: dict[int, list[str]] = {}
        for qdisc in self._qdiscs():
            if qdisc.interface in wanted and qdisc.handle:  # the kernel's defaults have none
                found.setdefault(qdisc.interface, []).extend(self._words(qdisc))
        return {index: tuple(words) for index, words in found.items() if words}

    def _words(self, qdisc: Qdisc) -> Iterator[str]:
        if qdisc.parent == netlink._ROOT:
            yield f"a {_described(qdisc)} on what the node receives"
        elif qdisc.parent == netlink._INGRESS:
            for parent, way in CLSACT.items() if qdisc.kind == "clsact" else INGRESS.items():
                if self._filters(qdisc.interface, parent):
                    yield f"a filter on what the node {way}"


def _port(found: Mapping[int, Payload]) -> Port:
    received, sent = netlink._unpack(netlink._STATS64, found.get(netlink._IFLA_STATS64, b""))
    (mtu,) = netlink._unpack(netlink._UINT32, found.get(netlink._IFLA_MTU, b""))
    (peer,) = netlink._unpack(netlink._UINT32, found.get(_IFLA_LINK, bytes(4)))
    return Port(received, sent, mtu, peer)


def _described(qdisc: Qdisc) -> str:
    queue = qdisc.queue
    if queue.rate_bit_s is not None:
        return f"{qdisc.kind} of {rate_text(queue.rate_bit_s)}"
    delayed = f" of {1000 * queue.delay_s:g} ms" if queue.delay_s else ""
    lossy = f" that loses {100 * queue.loss:g} %" if queue.loss else ""
    return f"{qdisc.kind}{delayed}{lossy}"
