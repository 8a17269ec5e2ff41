"""The rule of the verdict about foreign traffic: what came to the server's interface is the trial's own.

Two counts explain what came. TCP counts what came over the server's own connections, with what was still unread in the
end; of a connection that ended, only what had come a second before. And the messages themselves tell their payload,
whoever sent it when. The larger one counts, so that each makes up for what the other cannot see.
"""

from collections.abc import Iterator

from edgebed.core.framing import MTU, packet_bytes, segment_bytes
from edgebed.core.quantities import bytes_text
from edgebed.core.records import Traffic
from edgebed.journal.verdict.findings import Finding, Observed, Rule, share_text

FOREIGN_SHARE_MAX = 0.05
"""Share of what came that may be foreign, a twentieth: so much of the link's rate others had. Clean runs differ by less
than a hundredth."""
FOREIGN_BYTES_MAX = 250_000
"""Bytes that a network's own traffic may be: addresses that are looked up, connections that open and end, packets that
were sent again."""


def foreign(trial: Observed) -> Iterator[Finding]:
    """Bytes that no message, no framing and no acknowledgement explains."""
    traffic, link = trial.traffic, trial.server.plan.link
    if traffic is None or traffic.ingress_interface is None or traffic.tcp_bytes is None:
        return
    if not traffic.has_own_interface or link.lossy or trial.was_done(trial.server, "cut", "link"):
        return  # what is lost behind the interface is sent again, and counted there twice
    dropped = (trial.server.row.downlink.dropped or 0) * packet_bytes(trial.mtu)
    foreign_bytes = traffic.ingress_interface - explained_bytes(traffic, trial.mtu) - dropped
    share = foreign_bytes / max(1, traffic.ingress_interface)
    if foreign_bytes > FOREIGN_BYTES_MAX and share > FOREIGN_SHARE_MAX:
        yield Finding(
            f"foreign traffic: {bytes_text(foreign_bytes)} of the {bytes_text(traffic.ingress_interface)} that came to "
            f"the server's interface ({traffic.interface}), {share_text(share)}, are not the trial's; find who else "
            "sends there"
        )


def explained_bytes(traffic: Traffic, mtu: int = MTU) -> int:
    """Bytes at the server's interface that the trial itself made, on a data network with that MTU."""
    framed = traffic.ingress_payload * packet_bytes(mtu) // segment_bytes(mtu)
    return max(traffic.tcp_bytes or 0, framed + (traffic.ack_bytes or 0))


TRAFFIC_RULES: tuple[Rule, ...] = (foreign,)
