"""eSGD: the same coordinates as long as the loss falls, else others by how often they helped, and what has added up.

Tao, Li 2018, eSGD: communication efficient distributed deep learning on the edge, HotEdge, algorithms 1 and 2. At node
n in step t, with k coordinates:

    t = 1            I drawn uniformly
    loss has fallen  I as before, new values; H[I] <- H[I] + 1
    else             I drawn without replacement, by weight H + 1
    i not in I       r_i <- 0.9 r_i + 0.1 g_i
    where |r_i| is above the mean of |g|, the largest first: r_i is sent, and set to 0, in place of the coordinate of I
    with the smallest H, whose gradient is left for later

What the paper leaves open is read as follows. The threshold is the mean of magnitudes; it prints that of the signed
values, which is about zero (`threshold: signed`). Losses are of consecutive mini-batches. H begins with zeros, so
weights are H + 1. At most k residuals go, so that the uplink stays at k. By its text the same coordinates are sent
again, with new values; its algorithm 1, line 6, has what was sent before, values and all (`again: values`), and draws,
threshold and residuals of the gradient of the step before (`step: before`), which lines 3, 10 and 12 name.

Shapes: n parameters; k = max(1, floor(n * fraction)).
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.compression.top_k import largest
from edgebed.algorithms.compressor import FixedShare, Floats, Pieces, StepContext, sent
from edgebed.algorithms.shares import check_share
from edgebed.algorithms.update import ModelUpdate, as_dtype

Positions = NDArray[np.int64]
NOTHING: Floats = np.zeros(0, np.float32)
SHORTEST = np.float32(1e-20)
"""Least length of a wait, so that no quotient overflows."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Coordinates that helped before are sent, and what has added up elsewhere."""

    name: Literal["esgd"] = "esgd"
    fraction: float = 0.5
    """Share of the entries that is sent, in (0, 1]; the paper's drop ratio is 1 less this."""
    decay: float = 0.9
    """beta, what is left of a residual from one step to the next."""
    threshold: Literal["magnitude", "signed"] = "magnitude"
    """Mean that a residual has to be above: of the gradient's magnitudes, or of its signed values as printed."""
    scope: Literal["model", "tensor"] = "model"
    """Whether that mean is of the whole model or of each tensor."""
    reuse: bool = True
    """Whether the same coordinates are sent again after the loss has fallen."""
    weights: Literal["loss-fell", "sent", "none"] = "loss-fell"
    """When H grows: for what is sent again because the loss has fallen, for all that is sent, or never."""
    residual: bool = True
    """Whether what is not sent is remembered in residuals."""
    clear: bool = True
    """Whether a residual is reset when it is sent."""
    again: Literal["coordinates", "values"] = "coordinates"
    """What is sent again after the loss has fallen: the same coordinates with new values, or the values, too."""
    step: Literal["now", "before"] = "now"
    """The step whose gradient is drawn from and left for later: this one, or the one before."""
    values: Literal["float32", "float16"] = "float32"
    """How a value travels."""

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)
        if not 0.0 <= self.decay < 1.0:
            raise ValueError(f"decay: {self.decay:g} is not from 0 to below 1")


class Memory(NamedTuple):
    """What a node remembers from the steps before; lost with the node."""

    chosen: Positions
    """I, (k,) increasing positions of the coordinates that were sent in the step before."""
    weights: Floats
    """H, (n,) weights of the coordinates."""
    residual: Floats
    """r, (n,) residuals."""
    loss: float
    values: Floats = NOTHING
    """(k,) what was sent of `chosen`; (0,) where values are not sent again."""
    gradient: Floats = NOTHING
    """(n,) the gradient of this step; (0,) where that of the step before has no part."""


class Compression(FixedShare):
    """eSGD's compression; coordinates, their weights and residuals are its memory."""

    config: Config

    @property
    def copies(self) -> float:
        """Weights and residuals, old and new, and the draw; far more residuals pass a threshold that is about zero."""
        before = 2.0 if self.config.step == "before" else 0.0
        return before + (7.8 if self.config.threshold == "signed" else 6.6)

    def compress(self, vector: Floats, memory: Memory | None, context: StepContext) -> tuple[Pieces, Memory]:
        """(n,) gradient -> (k,) of its entries and of the residuals."""
        rng = context.draws()
        if memory is None:
            chosen = np.sort(rng.choice(self.size, self.count, replace=False))
            zeros = np.zeros(self.size, np.float32)
            return self._pushed(vector, chosen, vector, self._grown(zeros, chosen, fell=False), zeros, context.loss)
        gradient = memory.gradient if self.config.step == "before" else vector
        reused = context.loss < memory.loss and self.config.reuse
        chosen = memory.chosen if reused else self._drawn(memory.weights, rng)
        of_gradient, values, residual = chosen, gradient, memory.residual
        if reused and self.config.again == "values":
            values = gradient.copy()
            values[chosen] = memory.values
        if self.config.residual:
            chosen, values, residual = self._with_residuals(gradient, values, chosen, memory.weights, residual)
        helped = chosen if self.config.weights == "sent" else of_gradient
        weights = self._grown(memory.weights, helped, fell=reused)
        return self._pushed(vector, chosen, values, weights, residual, context.loss)

    def _pushed(
        self, vector: Floats, chosen: Positions, values: Floats, weights: Floats, residual: Floats, loss: float
    ) -> tuple[Pieces, Memory]:
        """Return what is sent of (n,) values, and what is remembered of this step."""
        picked = values.take(chosen)
        memory = Memory(
            chosen=chosen,
            weights=weights,
            residual=residual,
            loss=loss,
            values=picked if self.config.again == "values" else NOTHING,
            gradient=vector.copy() if self.config.step == "before" else NOTHING,
        )
        return sent(ModelUpdate(self.size, chosen, as_dtype(picked, self.config.values))), memory

    def _drawn(self, weights: Floats, rng: np.random.Generator) -> Positions:
        """Draw coordinates without replacement, by weight w = H + 1: the first to come where each comes with rate w.

        Efraimidis, Spirakis 2006, Weighted random sampling with a reservoir, Information Processing Letters 97(5).
        """
        waits = rng.standard_exponential(self.size, dtype=np.float32)
        np.maximum(waits, SHORTEST, out=waits)
        return largest((weights + np.float32(1)) / waits, self.count)

    def _grown(self, weights: Floats, chosen: Positions, *, fell: bool) -> Floats:
        if self.config.weights == "none" or (self.config.weights == "loss-fell" and not fell):
            return weights
        grown = weights.copy()
        grown[chosen] += 1.0
        return grown

    def _with_residuals(
        self, gradient: Floats, values: Floats, chosen: Positions, weights: Floats, residual: Floats
    ) -> tuple[Positions, Floats, Floats]:
        """Return coordinates and (n,) values to send, the least of them replaced by residuals, and what is left."""
        is_chosen = np.zeros(self.size, bool)
        is_chosen[chosen] = True
        beta = np.float32(self.config.decay)
        averaged = beta * residual + (np.float32(1.0) - beta) * gradient
        left = np.where(is_chosen, residual, averaged)
        above = np.flatnonzero(~is_chosen & (np.abs(left) > self._thresholds(gradient)))
        instead = above[largest(np.abs(left[above]), len(chosen))]
        displaced = chosen[largest(weights.max() - weights[chosen], len(instead))]
        values = values.copy()
        values[instead] = left[instead]
        left[displaced] = averaged[displaced]
        if self.config.clear:
            left[instead] = 0.0
        is_chosen[displaced] = False
        is_chosen[instead] = True
        return np.flatnonzero(is_chosen), values, left

    def _thresholds(self, gradient: Floats) -> Floats | np.float32:
        """Return what a residual has to be above: one number for all, or (n,)."""
        values = np.abs(gradient) if self.config.threshold == "magnitude" else gradient
        if self.config.scope == "model":
            return np.float32(values.mean())
        means = [values[span].mean() if span.stop > span.start else 0.0 for span in self.spans]
        return np.repeat(np.array(means, np.float32), self.sizes)
