"""Deep gradient compression: the largest entries of what has added up, with momentum where it belongs.

Lin, Han, Mao, Wang, Dally 2018, Deep gradient compression: reducing the communication bandwidth for distributed
training, ICLR, algorithm 1 and section 3; what it leaves open as in the authors' code. At each worker, for each tensor:

    g <- g min(1, N^-1/2 C / ||g||)     clipping, before anything is added up; N workers
    u <- m u + g ;  v <- v + u          momentum correction (Nesterov: u <- m (u + g) ; v <- v + u + g)
    send v where |v| is among the largest; there v <- 0, and u <- 0 (momentum factor masking)

More is sent in the first epochs. Tensors that are not compressed are sent whole, with ordinary momentum, which is the
mean's own if every worker is heard in each round. The server adds no momentum. Differs from the paper: the largest are
found exactly, which is no slower here; `selection: sampled` finds them as there, by a sample.

Shapes: n parameters in t tensors; of a compressed one of d entries max(1, floor(d * fraction)) travel.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compression.top_k import largest
from edgebed.algorithms.compressor import Compressor, Floats, Form, Pieces, Shapes, StepContext, sent
from edgebed.algorithms.shares import check_share
from edgebed.algorithms.update import ModelUpdate, as_dtype

SAMPLE = 0.01
"""Share of a tensor's entries that places a threshold, at least as many as give two chosen ones."""
TOO_FEW, TOO_MANY = 0.8, 1.3
"""Bounds on the share of the wanted entries that pass: with fewer the threshold falls, of more the largest are chosen
exactly."""
TRIES = 10


@dataclass(frozen=True, kw_only=True)
class Config:
    """The largest entries of what has added up are sent, with momentum at the worker."""

    name: Literal["dgc"] = "dgc"
    fraction: float = 0.001
    """Share of a tensor's entries that is sent after the first epochs, in (0, 1]."""
    warm_up: list[float] = field(default_factory=lambda: [0.25, 0.0625, 0.015625, 0.004])
    """Shares in the first epochs, one each."""
    momentum: float = 0.9
    """m, what is left of the velocity from one step to the next."""
    nesterov: bool = False
    """Nesterov's momentum, as in the authors' code for images."""
    masking: bool = True
    """Whether the velocity of an entry is reset when it is sent: else old momentum goes where it no longer belongs."""
    clip: float | None = None
    """C, to which the norm of the gradients' sum is clipped; none if left out, as the authors do for images."""
    whole: Literal["vectors", "all-but-convolutions", "nothing"] = "vectors"
    """Tensors that are sent whole: biases and what else has one dimension (the authors' code); dense layers too
    (Edgify 2019); or none (the paper)."""
    selection: Literal["exact", "sampled"] = "exact"
    """How the largest entries are found."""
    values: Literal["float32", "float16"] = "float32"
    """How a value travels."""

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)
        for share in self.warm_up:
            check_share("warm_up", share)
        if not 0.0 <= self.momentum < 1.0:
            raise ValueError(f"momentum: {self.momentum:g} is not from 0 to below 1")
        if self.clip is not None and not self.clip > 0.0:
            raise ValueError(f"clip: {self.clip:g} is not above 0; leave it out to clip nothing")

    def check_downlink(self) -> None:
        """Raise ValueError where more would be sent than is lacking."""
        if self.nesterov and self.momentum:
            raise ValueError("nesterov: it sends more than workers lack; leave it out of a downlink")


class Memory(NamedTuple):
    """What a worker remembers from the steps before; lost with the worker."""

    velocity: Floats
    """u, (n,) velocity."""
    added_up: Floats
    """v, (n,) sum of what has yet to be sent."""


class Compression(Compressor):
    """Deep gradient compression; momentum and what has yet to be sent are its memory."""

    config: Config

    def __init__(self, config: Config, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        largest_whole = {"vectors": 1, "all-but-convolutions": 3, "nothing": -1}[config.whole]
        self.is_whole = [len(shape) <= largest_whole for shape in self.shapes]

    @property
    def forms(self) -> tuple[Form, ...]:
        """Entries of the update, the most in the epoch that sends most; a sample may let some more pass."""
        config = self.config
        counts = self._counts(max(config.fraction, *config.warm_up, 0.0))
        more = TOO_MANY if config.selection == "sampled" else 1.0
        chosen = sum(min(size, int(more * count)) for size, count in zip(self.sizes, counts, strict=True))
        return (Form("update", self.size, config.values, chosen),)

    @property
    def copies(self) -> float:
        """Velocity and what has added up, old and new, and its magnitudes."""
        return 5.2

    @property
    def share(self) -> float:
        """The share of the epoch that sends most, with the tensors that are sent whole."""
        fraction = max(self.config.fraction, *self.config.warm_up, 0.0)
        return sum(self._counts(fraction)) / max(1, self.size)

    def compress(self, vector: Floats, memory: Memory | None, context: StepContext) -> tuple[Pieces, Memory]:
        """(n,) gradient -> the (k,) largest of what has added up."""
        config = self.config
        velocity, added_up = memory or Memory(np.zeros_like(vector), np.zeros_like(vector))
        gradient = self._clipped(vector, context.workers)
        m = np.float32(config.momentum)
        velocity = m * (velocity + gradient) if config.nesterov else m * velocity + gradient
        added_up = added_up + velocity + gradient if config.nesterov else added_up + velocity
        chosen = self._chosen(np.abs(added_up), context)
        update = ModelUpdate(self.size, chosen, as_dtype(added_up.take(chosen), config.values))
        added_up[chosen] = 0.0
        if config.masking:
            compressed = np.repeat(~np.array(self.is_whole, bool), self.sizes)
            velocity[chosen[compressed[chosen]]] = 0.0
        return sent(update), Memory(velocity, added_up)

    def _clipped(self, gradient: Floats, workers: int) -> Floats:
        if self.config.clip is None:
            return gradient
        norm = float(np.linalg.norm(gradient))
        limit = self.config.clip * workers**-0.5
        return gradient * np.float32(limit / norm) if norm > limit else gradient

    def _counts(self, fraction: float) -> list[int]:
        """Entries of each tensor that are sent."""
        return [
            size if is_whole else max(1, int(size * fraction))
            for size, is_whole in zip(self.sizes, self.is_whole, strict=True)
        ]

    def _chosen(self, magnitude: Floats, context: StepContext) -> NDArray[np.int64]:
        """Return the (k,) positions of the entries that are sent."""
        warm_up = self.config.warm_up
        fraction = warm_up[int(context.epoch)] if context.epoch < len(warm_up) else self.config.fraction
        rng = context.draws()
        chosen = []
        for span, size, count in zip(self.spans, self.sizes, self._counts(fraction), strict=True):
            if count >= size:
                within = np.arange(size)
            elif self.config.selection == "exact":
                within = largest(magnitude[span], count)
            else:
                within = by_sample(magnitude[span], count, rng)
            chosen.append(within + span.start)
        return np.concatenate(chosen) if chosen else np.zeros(0, np.int64)


def by_sample(magnitude: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return about `count` of the largest, by a threshold that a sample of every n-th entry places."""
    size = len(magnitude)
    stride = max(1, size // max(int(SAMPLE * size), 2 * size // count))
    sample = magnitude[int(rng.integers(stride)) :: stride]
    rank = max(1, round(count * len(sample) / size))
    threshold = np.partition(sample, len(sample) - rank)[len(sample) - rank]
    for _ in range(TRIES):
        passing = np.flatnonzero(magnitude >= threshold)
        if len(passing) >= TOO_FEW * count:
            break
        threshold *= TOO_FEW
    if len(passing) > TOO_MANY * count:
        return passing[largest(magnitude[passing], count)]
    return passing
