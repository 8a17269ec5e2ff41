"""Items stored by the number of their batch: the newest takes the place of what was there, so N entries are the most.

Tong et al. 2016, Layer-wise asynchronous training of neural networks with synthetic gradients, section 8.3.1: the
number of a batch is the step modulo N, the batches of an epoch.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from edgebed.roles.events import Effect, Send
from edgebed.wire.messages import Activation, Gradient

T = TypeVar("T")


class ByBatch(Generic[T]):
    """Items stored by batch, with their steps; a newer one has the turn of the one whose place it takes."""

    def __init__(self, batches: int) -> None:
        self.batches = batches
        self.kept: dict[int, tuple[int, T]] = {}
        """(step, item) by batch, in order of its turn."""

    def __len__(self) -> int:
        """Return the number of items stored."""
        return len(self.kept)

    def put(self, step: int, item: T) -> None:
        """Store the item, unless something newer of its batch is there."""
        known = self.kept.get(step % self.batches)
        if known is None or known[0] < step:
            self.kept[step % self.batches] = step, item

    def pop_first(self, fits: Callable[[int], bool]) -> tuple[int, T] | None:
        """Remove and return the step and the item of the first batch in order that `fits`."""
        for batch in self.kept:
            if fits(batch):
                return self.kept.pop(batch)
        return None


class Outbox:
    """Messages for a neighbour: so many are on their way at a time, the others wait here, by batch.

    A sender that nobody holds up would else fill its own memory, or the network's, where the link is slower than it.
    """

    def __init__(self, batches: int, room: int, *, is_open: bool) -> None:
        """`room`: messages on their way at a time; nothing leaves before the outbox `is_open`."""
        self.batches = batches
        self.room = room
        self.is_open = is_open
        self.waiting: dict[tuple[bool, int], Send] = {}
        """Waiting messages by (whether it goes up, batch), in order of its turn."""
        self.on_their_way = 0

    def put(self, send: Send) -> list[Effect]:
        """Add a message; return what may leave now."""
        assert isinstance(send.message, Activation | Gradient)
        self.waiting[isinstance(send.message, Activation), send.message.step % self.batches] = send
        return self._leave()

    def taken(self) -> list[Effect]:
        """Note that a message has come to where it goes; return what may leave now."""
        self.on_their_way -= 1
        return self._leave()

    def open(self) -> list[Effect]:
        """Let messages leave from now on; return what leaves."""
        self.is_open = True
        return self._leave()

    def _leave(self) -> list[Effect]:
        leaving: list[Effect] = []
        while self.is_open and self.waiting and self.on_their_way < self.room:
            leaving.append(self.waiting.pop(next(iter(self.waiting))))
            self.on_their_way += 1
        return leaving
