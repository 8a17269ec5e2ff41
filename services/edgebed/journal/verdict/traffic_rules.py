"""Rules of the verdict about foreign traffic: what came to nodes' own interfaces is the trial's own.

What was dropped before a node is nobody's: only what passed took something from the link. Two counts explain what
passed. TCP counts what came over a node's own connections, with what was still unread in the end; of a connection that
ended, only what had come a second before. And the messages themselves tell their payload, whoever sent it when. The
larger one counts, so that each makes up for what the other cannot see.
"""

from collections.abc import Iterator

from edgebed.core.actions import LINK_ACTIONS
from edgebed.core.framing import MTU, ack_share, packet_bytes, segment_bytes
from edgebed.core.quantities import bytes_text
from edgebed.core.records import Traffic
from edgebed.journal.verdict.findings import Finding, Judged, Observed, Rule, of_class, share_text

FOREIGN_SHARE_MAX = 0.05
"""Share of what came that may be foreign, a twentieth: so much of the link's rate others had. Clean runs differ by less
than a hundredth."""
FOREIGN_BYTES_MAX = 250_000
"""Bytes that a network's own traffic may be: addresses that are looked up, connections that open and end, packets that
were sent again."""


def foreign(trial: Observed) -> Iterator[Finding]:
    """Rule: no message, no framing and no acknowledgement of the trial's explains what came to the server."""
    traffic, server = trial.traffic, trial.server
    if traffic is None or traffic.ingress_interface is None or traffic.tcp_bytes is None:
        return
    if not traffic.has_own_interface or not _is_counted(trial, server):
        return
    came_bytes = max(0, traffic.ingress_interface - _dropped_bytes(server))
    if is_foreign(foreign_bytes := came_bytes - explained_bytes(traffic, trial.mtu), came_bytes):
        yield _finding(f"the server's interface ({traffic.interface})", foreign_bytes, came_bytes)


def foreign_at_others(trial: Observed) -> Iterator[Finding]:
    """Rule: the same of all other nodes that count what comes over their connections."""
    for nodes in trial.classes():
        found = [
            (foreign_bytes, came_bytes, node)
            for node in nodes
            if node.plan.role != "server" and node.row.downlink.own_bytes is not None and _is_counted(trial, node)
            for came_bytes in [max(0, (node.row.downlink.arrived_bytes or 0) - _dropped_bytes(node))]
            if is_foreign(foreign_bytes := came_bytes - _own_bytes(node), came_bytes)
        ]
        if found:
            foreign_bytes, came_bytes, _ = max(found, key=lambda each: each[0])
            whose = of_class([node for _, _, node in found], nodes)
            yield _finding(f"the interface of {whose}", foreign_bytes, came_bytes, "up to " * (len(found) > 1))


def _own_bytes(node: Judged) -> int:
    """Bytes at a worker's or a shard's interface that the trial itself made; of shards TCP alone tells."""
    row = node.row
    messages_bytes = row.downlink.bytes + round(ack_share(row.mtu) * row.uplink.bytes)
    return max(row.downlink.own_bytes or 0, messages_bytes)


def _is_counted(trial: Observed, node: Judged) -> bool:
    """Whether counts can be compared: what is lost behind an interface is sent again, and counted there twice."""
    return not node.plan.link.lossy and not trial.was_done(node, *LINK_ACTIONS)


def _dropped_bytes(node: Judged) -> int:
    """Bytes that the queue before a node dropped; where only packets were counted, as large as the mean one."""
    way = node.row.downlink
    if way.dropped_bytes is not None:
        return way.dropped_bytes
    return round((way.drops or 0.0) * (way.arrived_bytes or 0))


def is_foreign(foreign_bytes: int, came_bytes: int) -> bool:
    """Whether so many bytes, of those that came, are more than a network's own."""
    return foreign_bytes > max(FOREIGN_BYTES_MAX, FOREIGN_SHARE_MAX * came_bytes)


def _finding(where: str, foreign_bytes: int, came_bytes: int, most: str = "") -> Finding:
    return Finding(
        f"foreign traffic: {most}{bytes_text(foreign_bytes)} of the {bytes_text(came_bytes)} that passed {where}, "
        f"{share_text(foreign_bytes / came_bytes)}, are not the trial's; find who else sends there"
    )


def explained_bytes(traffic: Traffic, mtu: int = MTU) -> int:
    """Bytes at the server's interface that the trial itself made, on a data network with that MTU."""
    framed = traffic.ingress_payload * packet_bytes(mtu) // segment_bytes(mtu)
    return max(traffic.tcp_bytes or 0, framed + (traffic.ack_bytes or 0))


TRAFFIC_RULES: tuple[Rule, ...] = (foreign, foreign_at_others)
