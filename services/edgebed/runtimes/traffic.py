"""Counts what goes through a node's data socket, and reports it: the same in every runtime."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from edgebed.core import records
from edgebed.emulation.resources import InterfaceBytes
from edgebed.emulation.tcp import IncomingCount
from edgebed.runtimes.tracing import kind_of
from edgebed.wire.messages import AnyMessage, Model

OBSERVE_S = 1.0
"""Seconds between two times at which a node reports what has to be polled."""


@dataclass
class TrafficCount:
    """Payload in and out since the trial began; at the server the models among it as well."""

    ingress: int = 0
    egress: int = 0
    pulls: int = 0
    pull_bytes: int = 0
    pulls_changed: int = 0
    pull_changed_bytes: int = 0
    by_kind: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Messages and bytes that came, by the connection's other end and the kind of message."""
    changed: set[tuple[str, str]] = field(default_factory=set)
    """Entries of `by_kind` that have grown since they were reported."""
    told_bytes: int = 0
    """Payload in both directions that has been reported."""

    @property
    def is_news(self) -> bool:
        """Whether more has passed than was reported."""
        return self.ingress + self.egress > self.told_bytes

    def received(self, source: str, message: AnyMessage, size: int) -> None:
        """Count a message of `size` bytes that came over the connection with `source`."""
        self.ingress += size
        key = source, kind_of(message)
        counts = self.by_kind.setdefault(key, [0, 0])
        counts[0] += 1
        counts[1] += size
        self.changed.add(key)

    def sent(self, message: AnyMessage, size: int) -> None:
        """Count `message`, which left with all its frames as `size` bytes; 0 bytes: it did not leave."""
        self.egress += size
        if not isinstance(message, Model) or not size:
            return
        self.pulls += 1
        self.pull_bytes += size
        if message.since is not None:
            self.pulls_changed += 1
            self.pull_changed_bytes += size

    def account(
        self,
        interface: InterfaceBytes | None = None,
        incoming: IncomingCount | None = None,
        *,
        by_kind: bool = False,
    ) -> Iterator[records.Record]:
        """Records to report now; `by_kind`: with what has changed in the counts of messages by kind."""
        self.told_bytes = self.ingress + self.egress
        yield self.record(interface, incoming)
        if by_kind:
            yield from self.messages()

    def messages(self) -> Iterator[records.Messages]:
        """Records of messages by kind that have changed since the last call."""
        for source, kind in sorted(self.changed):
            count, size = self.by_kind[source, kind]
            yield records.Messages(source=source, message=kind, count=count, bytes=size)
        self.changed.clear()

    def record(self, interface: InterfaceBytes | None = None, incoming: IncomingCount | None = None) -> records.Traffic:
        """A record of the traffic, with what can be read of the interface and of the connections."""
        received, sent = interface.read() if interface else (None, None)
        came = incoming.read() if incoming else None
        return records.Traffic(
            ingress_payload=self.ingress,
            egress_payload=self.egress,
            ingress_interface=received,
            egress_interface=sent,
            interface=interface.name if interface else "",
            pulls=self.pulls,
            pull_bytes=self.pull_bytes,
            pulls_changed=self.pulls_changed,
            pull_changed_bytes=self.pull_changed_bytes,
            ack_bytes=came.ack_bytes if came else None,
            tcp_bytes=came.all_bytes if came else None,
        )
