"""The activation store: what shards send each other waits here until it is asked for.

    shard ---- Activation, Gradient, Taken ---> store <--- Fetch ---- the shard that it is for

Chen et al. 2019, Exploring the use of synthetic gradients for distributed deep learning across cloud and edge
resources, HotEdge, section 3.2. Everything is fetched once and then gone; what belongs to an earlier history than the
latest heard of is dropped. How much there can be is bounded by the queues of the shards.

Where things are stored by batch, a newer one takes the place of the older one of its batch, so that N of a kind are the
most there can be from a shard, the batches of an epoch; and whoever made something hears at once that it has come.
"""

from collections.abc import Sequence

from edgebed.core.plan import StorePlan
from edgebed.core.records import Refused
from edgebed.roles.events import (
    Connected,
    Disconnected,
    Effect,
    Event,
    Journal,
    MessageReceived,
    Observe,
    Send,
    unexpected,
)
from edgebed.wire.messages import Activation, Fetch, Gradient, Refuse, Start, Taken
from edgebed.wire.tensors import Buffer

Key = tuple[str, str, int, int]
"""Key of an item: its maker, activation or answer, step or batch, micro-batch."""


class ActivationStore:
    """The heart of the store."""

    def __init__(self, plan: StorePlan) -> None:
        self.plan = plan
        self.batches = plan.shard.batches if plan.shard else None
        self.history = 0
        self.kept: dict[Key, tuple[Activation | Gradient | Taken, Sequence[Buffer]]] = {}
        self.asked: dict[Key, str] = {}
        """Connections that wait for what is not here yet."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Store a message, or hand one over."""
        if isinstance(event, Connected | Disconnected | Observe):
            return []  # whoever is back joins the server anew, and all begin a new history
        if not isinstance(event, MessageReceived):
            raise unexpected(self, event)
        message = event.message
        if isinstance(message, Start):
            return []
        if not isinstance(message, Activation | Gradient | Taken | Fetch):
            reason = f"a store gets no {type(message).__name__}"
            refusal = Refuse(sender=self.plan.node, code="malformed", reason=reason)
            return [Journal(Refused(peer=event.peer, code="malformed", reason=reason)), Send(event.peer, refusal)]
        if message.history > self.history:
            self.history = message.history
            self.kept.clear()
            self.asked.clear()
        if message.history < self.history:
            return []
        if isinstance(message, Fetch):
            return self._fetch(event.peer, message)
        kind = "activation" if isinstance(message, Activation) else "answer"
        key = (message.sender, kind, self._number(message.step), message.micro)
        taken = Taken(sender=self.plan.node, history=message.history, step=message.step)
        confirmed: list[Effect] = [Send(event.peer, taken)] if self.batches else []
        if peer := self.asked.pop(key, None):
            return [Send(peer, message, event.frames), *confirmed]
        self.kept[key] = message, event.frames
        return confirmed

    def _number(self, step: int) -> int:
        """Return the number that an item is stored by."""
        return step % self.batches if self.batches else step

    def _fetch(self, peer: str, fetch: Fetch) -> list[Effect]:
        key = (fetch.of, fetch.what, self._number(fetch.step), fetch.micro)
        if key in self.kept:
            message, frames = self.kept.pop(key)
            return [Send(peer, message, frames)]
        self.asked[key] = peer
        return []
