"""The count of what goes through a node's data socket, the same in every runtime."""

from dataclasses import dataclass

from edgebed.observe.resources import InterfaceBytes
from edgebed.observe.tcp import Acknowledgements
from edgebed.roles import records
from edgebed.wire.messages import AnyMessage, Model


@dataclass
class TrafficCount:
    """Payload in and out since the trial began; at the server the models among it as well."""

    ingress: int = 0
    egress: int = 0
    pulls: int = 0
    pull_bytes: int = 0
    pulls_changed: int = 0
    pull_changed_bytes: int = 0

    def received(self, size: int) -> None:
        """A message of `size` bytes came."""
        self.ingress += size

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

    def record(
        self, interface: InterfaceBytes | None = None, acknowledgements: Acknowledgements | None = None
    ) -> records.Traffic:
        """As the journal has it, with what can be read of the interface and of the connections."""
        received, sent = interface.read() if interface else (None, None)
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
            ack_bytes=acknowledgements.read() if acknowledgements else None,
        )
