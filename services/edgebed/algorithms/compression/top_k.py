"""Top-k selection: the entries of largest magnitude are sent, the others discarded or remembered.

`scope: tensor` is the selection of AdaComp: Hardy, Le Merrer, Sericola 2017, Distributed deep learning on edge-devices:
feasibility via adaptive compression, IEEE NCA, section IV.b: a fraction c of the largest gradients per matrix V_l and
vector beta_l. `scope: model` is the selection of Shokri, Shmatikov 2015, Privacy-preserving deep learning, ACM CCS: the
largest across the whole model. Neither keeps what was not sent. With `residual` it is added the next time: Stich,
Cordonnier, Jaggi 2018, Sparsified SGD with memory, NeurIPS, in units of the gradient and not of the step, which is the
same as long as the learning rate does not change. What is known as top-k with memory, or with error feedback, is
`{ name: top-k, fraction: 0.1, scope: model, residual: true }`.

Shapes: n parameters in tensors of lengths `sizes`; per group k = max(1, floor(length * fraction)).
Equal magnitudes at the boundary: the one at the lower position is kept, so the result depends on the values alone.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compressor import Compressor, Floats, Form, Pieces, Shapes, StepContext, sent
from edgebed.algorithms.shares import check_share
from edgebed.algorithms.update import ModelUpdate, as_dtype, remainder

SAMPLE_STRIDE = 128  # so large that sample and candidates together are few: both have to be sorted
LARGE = 4_096  # below this length sorting everything costs no more than sampling
SMALLEST = np.finfo(np.float32).smallest_subnormal  # zeros are no candidates, however many there are


@dataclass(frozen=True, kw_only=True)
class Config:
    """The largest entries of the gradient are sent."""

    name: Literal["top-k"] = "top-k"
    fraction: float = 0.01
    """Share of the entries that is sent, in (0, 1]; smaller means fewer bytes and slower learning."""
    scope: Literal["tensor", "model"] = "tensor"
    """Select within each tensor (AdaComp) or across the whole model (Comp-ASGD)."""
    residual: bool = False
    """Whether what is not sent is remembered, and added the next time."""
    values: Literal["float32", "float16"] = "float32"
    """How a value travels; float16 saves two bytes an entry and rounds the gradient."""

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)


class Compression(Compressor):
    """Selection of the largest magnitudes; remembers the others, if anything."""

    config: Config

    def __init__(self, config: Config, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        groups = self.sizes if config.scope == "tensor" else [self.size]
        ends = np.cumsum(groups)
        self.groups = [
            (int(end) - length, int(end), max(1, int(length * config.fraction)))
            for length, end in zip(groups, ends, strict=True)
        ]

    @property
    def forms(self) -> tuple[Form, ...]:
        """As many entries of the update at each step."""
        chosen = sum(min(k, end - start) for start, end, k in self.groups)
        return (Form("update", self.size, self.config.values, chosen),)

    @property
    def copies(self) -> float:
        """Magnitudes and what they are sorted by; what was left out, and what it was added to."""
        return 4.5 if self.config.residual else 2.5

    @property
    def share(self) -> float:
        """The share of all groups together."""
        return sum(min(k, end - start) for start, end, k in self.groups) / max(1, self.size)

    def compress(self, vector: Floats, memory: Floats | None, context: StepContext) -> tuple[Pieces, Floats | None]:
        """(n,) vector -> the (k,) entries of largest magnitude of each group."""
        whole = vector if memory is None else vector + memory
        update = self.choose(whole)
        return sent(update), remainder(whole, update) if self.config.residual else None

    def choose(self, vector: Floats) -> ModelUpdate:
        """Return the (k,) chosen entries of a (n,) vector."""
        magnitude = np.abs(vector)
        chosen = [largest(magnitude[start:end], k) for start, end, k in self.groups]
        indices = np.concatenate([within + start for within, (start, _, _) in zip(chosen, self.groups, strict=True)])
        return ModelUpdate(self.size, indices, as_dtype(vector.take(indices), self.config.values))


def largest(magnitude: Floats, k: int) -> NDArray[np.int64]:
    """Positions of the k largest values, none below zero, increasing; of equal values the lower position wins.

    Exact, in two stages for long inputs: a sample places a threshold that is too low on purpose, then the choice is
    made among the few candidates above it.
    """
    n = len(magnitude)
    if k >= n:
        return np.arange(n)
    if k == 0:
        return np.zeros(0, np.int64)
    if k == 1:
        return np.array([magnitude.argmax()])
    if n >= LARGE and k * 8 <= n:
        sample = np.sort(magnitude[::SAMPLE_STRIDE])
        rank = k // SAMPLE_STRIDE
        rank += 3 * int(rank**0.5) + 3  # three standard deviations below the expected rank: rarely too few candidates
        threshold = max(sample[len(sample) - rank], SMALLEST)
        candidates = np.flatnonzero(magnitude >= threshold)
        if len(candidates) >= k:
            values = magnitude.take(candidates)
            return candidates.take(_at_least(values, np.partition(values, len(values) - k)[len(values) - k], k))
        if threshold == SMALLEST and not np.isnan(magnitude.max()):  # the candidates are all that is not zero
            return _at_least(magnitude, np.float32(0.0), k)
    # numpy sorts with vector instructions; its partition crawls where many values are equal, as zeros are
    return _at_least(magnitude, np.sort(magnitude)[n - k], k)


def _at_least(magnitude: Floats, smallest: np.float32, k: int) -> NDArray[np.int64]:
    """Return the k positions, where `smallest` is the k-th largest value."""
    kept = np.flatnonzero(magnitude >= smallest)
    if len(kept) == k:
        return kept
    chosen = magnitude > smallest
    num_ties = k - int(np.count_nonzero(chosen))
    chosen[np.flatnonzero(magnitude == smallest)[:num_ties]] = True
    num_left = k - int(np.count_nonzero(chosen))
    if num_left > 0:  # only not-a-number entries are left over, which sort as the largest
        chosen[np.flatnonzero(np.isnan(magnitude))[:num_left]] = True
    return np.flatnonzero(chosen)
