"""The count of what goes through a node's data socket, and the telling of it: the same in every runtime."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from edgebed.observe.resources import InterfaceBytes
from edgebed.observe.tcp import IncomingCount
from edgebed.roles import records
from edgebed.runtimes.tracing import kind_of
from edgebed.wire.messages import AnyMessage, Model

OBSERVE_S = 1.0
"""Between two times at which a node tells what is known only by looking."""


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
    """Those of which more has come since they were told."""
    told_bytes: int = 0
    """Payload of both ways that has been told."""

    @property
    def is_news(self) -> bool:
        """Whether more has passed than was told."""
        return self.ingress + self.egress > self.told_bytes

    def received(self, source: str, message: AnyMessage, size: int) -> None:
        """A message of `size` bytes came over the connection with `source`."""
        self.ingress += size
        key = source, kind_of(message)
        counts = self.by_kind.setdefault(key, [0, 0])
        counts[0] += 1
        counts[1] += size
        self.changed.add(key)

    def sent(self, message: AnyMessage, size: int) -> None:
        """`message` left, with all its frames `size` bytes; 0 bytes: it did not."""
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
        """What there is to tell now; `by_kind`: with what has changed of the kinds of messages that came."""
        self.told_bytes = self.ingress + self.egress
        yield self.record(interface, incoming)
        if by_kind:
            yield from self.messages()

    def messages(self) -> Iterator[records.Messages]:
        """As the journal has them, what has changed since the last call."""
        for source, kind in sorted(self.changed):
            count, size = self.by_kind[source, kind]
            yield records.Messages(source=source, message=kind, count=count, bytes=size)
        self.changed.clear()

    def record(self, interface: InterfaceBytes | None = None, incoming: IncomingCount | None = None) -> records.Traffic:
        """As the journal has it, with what can be read of the interface and of the connections."""
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
