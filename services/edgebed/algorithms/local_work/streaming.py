"""Local steps that go on while a fragment of the model, in its turn, is on its way to the server and back.

Douillard, Donchev, Rush, Kale, Charles, Garrett, Teston, Lacey, McIlroy, Shen, Ramé, Szlam, Ranzato, Barham 2025,
Streaming DiLoCo with overlapping communication, arXiv:2501.18512, algorithm 2; as torchft has it in `local_sgd.py`.

    y <- H / n - tau local steps ;  sent: x_f - y_f ;  y <- tau local steps ;  y_f <- (1 - alpha) x_f + alpha y_f

x is the server's model, y the worker's own, f the fragment whose turn it is by the steps that made x, so that all
workers of a round agree. A fragment is a span of the flat vector, and spans are as equal as can be. Another fragment
that came down changed, as after a join anew, is merged alike; a worker without memory, or whose own model is not
finite, begins with the server's. Differs from the paper: fragments are spans, and not layers.

Shapes: n parameters, b examples in a mini-batch.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from edgebed.algorithms.compressor import Floats, StepContext
from edgebed.algorithms.local_work import base, local_steps


@dataclass(frozen=True, kw_only=True)
class Config(local_steps.Config):
    """Steps on the worker's own model, of which a fragment at a time is exchanged, while the steps go on."""

    name: Literal["streaming"] = "streaming"  # type: ignore[assignment] # of a part of its own
    steps: int = 500
    """H, mini-batches in which each fragment is exchanged once."""
    fragments: int = 2
    """n, spans that the model is cut into; `steps` is a multiple of it."""
    overlap: int = 0
    """tau, mini-batches that a worker goes on with while a fragment travels; fewer than `steps / fragments`."""
    mixing: float = 0.0
    """alpha, from 0 to 1: how much of the worker's own values a fragment keeps when the server's has come."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fragments < 1:
            raise ValueError(f"fragments: {self.fragments} is below 1")
        if self.steps % self.fragments:
            raise ValueError(f"fragments: {self.fragments} do not divide the {self.steps} steps of a round")
        if not 0 <= self.overlap < self.steps // self.fragments:
            most = self.steps // self.fragments - 1
            raise ValueError(f"overlap: {self.overlap} is not from 0 to {most}, below the steps between two pushes")
        if not 0.0 <= self.mixing <= 1.0:
            raise ValueError(f"mixing: {self.mixing:g} is not from 0 to 1")
        if self.proximal:
            raise ValueError("proximal: the copy is the worker's own, and held to no other; leave it out")
        if self.counted_in == "pushes":
            raise ValueError("counted_in: a push is a fragment's; count in steps or epochs")


class Own(NamedTuple):
    """What a worker remembers."""

    own: Floats
    """(n,) the worker's own model."""
    known: Floats
    """(n,) the server's model that it was sent last."""
    turn: int
    """The fragment that it pushed last."""
    kept: Any
    """What the optimizer remembers, if it does."""


def merged(known: Floats, own: Floats, alpha: float) -> Floats:
    """(k,) entries from the server's to the worker's own, the way that torch's `lerp` rounds."""
    if alpha < 0.5:
        return known + np.float32(alpha) * (own - known)
    return own - (own - known) * np.float32(1.0 - alpha)


class LocalWork(local_steps.LocalWork):
    """The worker's own model is remembered, and merged with what comes."""

    config: Config

    def batches(self, examples: int, batch_size: int) -> int:
        """Return the mini-batches between two pushes."""
        return self.config.steps // self.config.fragments

    @property
    def ahead(self) -> int:
        """Return how many of them are gone through while a push travels."""
        return self.config.overlap

    def spans(self, size: int) -> list[slice]:
        """Return where each fragment lies; they are as equal as can be."""
        ends = [size * k // self.config.fragments for k in range(self.config.fragments + 1)]
        return [slice(start, end) for start, end in itertools.pairwise(ends)]

    @property
    def copies(self) -> float:
        """The worker's own model, and the server's of before."""
        return super().copies + 2.05

    def run(
        self,
        gradient: base.Gradient,
        vectors: Mapping[str, Floats],
        batches: Sequence[base.Batch],
        memory: Own | None,
        at: StepContext,
    ) -> base.Done:
        """Return how far the own model is from the server's, and the mean loss of the steps up to the push."""
        known = vectors[base.MODEL]
        own, kept = self._begins(known, memory)
        done = super().run(gradient, {base.MODEL: own}, batches, kept, at)
        own = np.subtract(own, done.vectors[base.MODEL])
        turn = at.rounds % self.config.fragments
        return base.one(known - own, done.measures["loss"], Own(own, known, turn, done.memory))

    def go_on(self, gradient: base.Gradient, batches: Sequence[base.Batch], memory: Own, at: StepContext) -> Own:
        """Return what is remembered after the steps that are made while the push travels."""
        done = super().run(gradient, {base.MODEL: memory.own}, batches, memory.kept, at)
        return memory._replace(own=np.subtract(memory.own, done.vectors[base.MODEL]), kept=done.memory)

    def _begins(self, known: Floats, memory: Own | None) -> tuple[Floats, Any]:
        """Return the own model that the next steps begin with, and what the optimizer remembers."""
        if memory is None or not np.isfinite(memory.own).all():
            return known, None
        own = memory.own.copy()
        for number, span in enumerate(self.spans(len(known))):
            if number == memory.turn or not np.array_equal(known[span], memory.known[span]):
                own[span] = merged(known[span], own[span], self.config.mixing) if self.config.mixing else known[span]
        return own, memory.kept
