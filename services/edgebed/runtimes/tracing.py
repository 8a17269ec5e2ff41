"""Records of messages that tracing journals, the same in every runtime."""

from edgebed.core import records
from edgebed.runtimes.timestamps import sent_s
from edgebed.wire.messages import AnyMessage


def kind_of(message: AnyMessage) -> str:
    """The message's kind, as on the wire."""
    return type(message).__name__.lower()


def sent(to: str, message: AnyMessage, size: int) -> records.Sent:
    """The record of a message of `size` bytes that left for `to`."""
    return records.Sent(to=to, message=kind_of(message), version=_version(message), bytes=size)


def received(sender: str, message: AnyMessage, size: int) -> records.Received:
    """The record of a message of `size` bytes that came from `sender`."""
    return records.Received(
        sender=sender, message=kind_of(message), version=_version(message), bytes=size, sent_s=sent_s(message)
    )


def _version(message: AnyMessage) -> int:
    """The model's version in a message: a model's own, a push's base, -1 for others."""
    version: int = getattr(message, "version", getattr(message, "base", -1))
    return version
