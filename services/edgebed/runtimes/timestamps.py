"""Messages on their way between nodes, as both shells hold them: before they leave, and before they are there."""

import msgspec

from edgebed.roles.events import MessageReceived, Send
from edgebed.wire import frames as codec
from edgebed.wire.messages import Activation, AnyMessage, Gradient, Model, Push

TIMED = (Push, Model, Activation, Gradient)
"""Kinds of messages that say when their first byte left; for what a store hands over, the store's."""


class Leaving(msgspec.Struct, frozen=True, gc=False):
    """A message that is sent, until its last byte has left."""

    effect: Send
    first_s: float
    """When the message's first byte left, or will."""
    asked_s: float
    """When the message was given to the link."""
    gone_s: float
    """When the message's last byte is to leave."""


class Arriving(msgspec.Struct, frozen=True, gc=False):
    """A message whose last byte has left its sender, until it has arrived."""

    event: MessageReceived


def payload_bytes(effect: Send) -> int:
    """Payload of the whole message in bytes; its time of sending, set later, makes no difference."""
    return codec.size_bytes(codec.encode(effect.message, effect.frames))


def stamp(message: AnyMessage, first_s: float) -> AnyMessage:
    """The message with the time at which its first byte leaves, if its kind has a field for that."""
    if isinstance(message, TIMED):
        return msgspec.structs.replace(message, sent_s=round(first_s, 6))
    return message


def sent_s(message: AnyMessage) -> float:
    """When the message's first byte left, by its own field; negative if it has none."""
    return message.sent_s if isinstance(message, TIMED) else -1.0
