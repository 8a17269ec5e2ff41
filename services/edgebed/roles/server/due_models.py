"""Models that are due to be measured, until the evaluator asks for what comes after them.

    update ---> a version that is due ---> [ 20 | 30 | 40 ] ---> the evaluator, which may be slower than training

An evaluator that does not keep up works off what is here, so that which versions are measured does not depend on how
busy the machine is. There is room for so many models as planning counts in the server's memory; where they are more,
the oldest is given up, and its evaluation is skipped (journal/accounts/skipped_evaluations.py counts it). What the
evaluator was sent stays here until it asks for a later version: an answer that was lost with a connection can be given
again. Nothing waits for an evaluator that was started anew: it asks from version 0 on, and measures the model that
there is.
"""

from collections import deque
from collections.abc import Sequence

from edgebed.wire.messages import Model
from edgebed.wire.tensors import Buffer

ROOM_BYTES = 16 * 2**20
MODELS_MIN = 2
"""Models that there is room for, however large they are: the one that is being measured, and the next."""


def room_for(model_bytes: int) -> int:
    """How many models of so many bytes may wait."""
    return max(MODELS_MIN, ROOM_BYTES // max(1, model_bytes))


class DueModels:
    """The models that wait, in order of versions."""

    def __init__(self, every: int | None, model_bytes: int) -> None:
        """Every so many updates a version is due; None: no version is."""
        self.every = every
        self.waiting: deque[tuple[Model, Sequence[Buffer]]] = deque(maxlen=room_for(model_bytes))

    def is_due(self, before: int, version: int) -> bool:
        """Whether a version is the first at or beyond a multiple of the interval; `before`: the version before it."""
        return self.every is not None and before // self.every < version // self.every

    def add(self, model: Model, frames: Sequence[Buffer]) -> None:
        """Let a model wait that is due, if any is; its frames are not written afterwards."""
        if self.every is not None:
            self.waiting.append((model, frames))

    def next(self, at_version: int) -> tuple[Model, Sequence[Buffer]] | None:
        """Return the oldest model of this version or a later one, and forget those before; None: there is none.

        Of version 0 there is no later one: whoever asks for that when it is gone has been started anew.
        """
        if at_version == 0 and self.waiting and self.waiting[0][0].version > 0:
            self.waiting.clear()
        while self.waiting and self.waiting[0][0].version < at_version:
            self.waiting.popleft()
        return self.waiting[0] if self.waiting else None

    def give_up(self, after_version: int) -> None:
        """Forget the models of later versions, which are made again."""
        while self.waiting and self.waiting[-1][0].version > after_version:
            self.waiting.pop()
