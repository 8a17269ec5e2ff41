"""What is kept by the number of its batch: the newest takes the place of what was there, so N entries are the most.

Tong et al. 2016, Layer-wise asynchronous training of neural networks with synthetic gradients, section 8.3.1: the
number of a batch is the step modulo N, the batches of an epoch.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from edgebed.roles.events import Effect, Send
from edgebed.wire.messages import Activation, Gradient

T = TypeVar("T")


class ByBatch(Generic[T]):
    """Steps and what is kept of them; a newer one has the turn of the one whose place it takes."""

    def __init__(self, batches: int) -> None:
        self.batches = batches
        self.kept: dict[int, tuple[int, T]] = {}
        """By batch, in order of its turn: the step, and what there is."""

    def __len__(self) -> int:
        """What is kept now."""
        return len(self.kept)

    def put(self, step: int, item: T) -> None:
        """Keep it, unless something newer of its batch is there."""
        known = self.kept.get(step % self.batches)
        if known is None or known[0] < step:
            self.kept[step % self.batches] = step, item

    def pop_first(self, fits: Callable[[int], bool]) -> tuple[int, T] | None:
        """The step and what was kept of it, of the first batch in order that `fits`; it is gone then."""
        for batch in self.kept:
            if fits(batch):
                return self.kept.pop(batch)
        return None


class Outbox:
    """What a neighbour is to be sent: so many messages are on their way at a time, the others wait here, by batch.

    A sender that nobody holds up would else fill its own memory, or the network's, where the link is slower than it.
    """

    def __init__(self, batches: int, room: int, *, is_open: bool) -> None:
        """Nothing leaves before it `is_open`."""
        self.batches = batches
        self.room = room
        self.is_open = is_open
        self.waiting: dict[tuple[bool, int], Send] = {}
        """By whether it goes up, and by batch; in order of its turn."""
        self.on_their_way = 0

    def put(self, send: Send) -> list[Effect]:
        """What may leave now that this is there."""
        assert isinstance(send.message, Activation | Gradient)
        self.waiting[isinstance(send.message, Activation), send.message.step % self.batches] = send
        return self._leave()

    def taken(self) -> list[Effect]:
        """One has come to where it goes."""
        self.on_their_way -= 1
        return self._leave()

    def open(self) -> list[Effect]:
        """From now on."""
        self.is_open = True
        return self._leave()

    def _leave(self) -> list[Effect]:
        leaving: list[Effect] = []
        while self.is_open and self.waiting and self.on_their_way < self.room:
            leaving.append(self.waiting.pop(next(iter(self.waiting))))
            self.on_their_way += 1
        return leaving
