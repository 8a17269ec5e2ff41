"""The far ends of nodes' links: ports of a bridge, each the other end of a node's pair of veth.

    node's namespace   data  <-- pair of veth -->  port   namespace of the bridge

What a port receives is what its node sends. The kernel counts at both ends; whoever changes the node's own end has not
changed this one. edgebed sets nothing at a port, so what limits there is somebody else's.
"""

from collections.abc import Collection, Iterator

from edgebed.core.planned.link import IMPAIRMENTS
from edgebed.core.quantities import rate_text
from edgebed.emulation.netlink import _INGRESS, _INGRESS_HANDLE, _ROOT, Netlink, Qdisc

INGRESS = {_INGRESS_HANDLE: "sends"}
CLSACT = {0xFFFF_FFF2: "sends", 0xFFFF_FFF3: "receives"}
"""Parents of filters at a port (pkt_sched.h), with what the node does with the packets that pass them."""


def limits(kernel: Netlink, ports: Collection[int]) -> dict[int, tuple[str, ...]]:
    """What limits what passes these ports, in words, by their index, where anything does.

    Raises OSError and BadAnswerError.
    """
    found: dict[int, list[str]] = {}
    for qdisc in kernel.qdiscs():
        if qdisc.interface in ports and qdisc.handle:  # the kernel's defaults have none
            found.setdefault(qdisc.interface, []).extend(_words(kernel, qdisc))
    return {index: tuple(words) for index, words in found.items() if words}


def _words(kernel: Netlink, qdisc: Qdisc) -> Iterator[str]:
    if qdisc.parent == _ROOT:
        yield f"a {_described(qdisc)} on what the node receives"
    elif qdisc.parent == _INGRESS:
        for parent, way in CLSACT.items() if qdisc.kind == "clsact" else INGRESS.items():
            if kernel.filters(qdisc.interface, parent):
                yield f"a filter on what the node {way}"


def _described(qdisc: Qdisc) -> str:
    queue = qdisc.queue
    if queue.rate_bit_s is not None:
        return f"{qdisc.kind} of {rate_text(queue.rate_bit_s)}"
    found = ((each, getattr(queue, each.field)) for each in IMPAIRMENTS)
    texts = [f"{each.key} {each.seen_text(value)}" for each, value in found if value]
    return f"{qdisc.kind} of {', '.join(texts)}" if texts else qdisc.kind
