"""How a learning rate changes during training, of server, worker and shard alike.

    constant   alpha
    step       alpha times `decay_by` for each of `decay_at` that is over
    cosine     alpha (1 + cos(pi e / E)) / 2: Loshchilov, Hutter 2017, SGDR: stochastic gradient descent with warm
               restarts, ICLR, equation (5), without restarts
    per-epoch  alpha / (2 (floor(e) + 1)): Tao, Li 2018, eSGD, HotEdge, section 4.1, with alpha = 0.1
    plateau    alpha times `decay_by` whenever the mean training loss of an epoch has not been lower than the lowest, by
               a share of `threshold`, for more than `patience` epochs; as torch.optim's ReduceLROnPlateau

e is how often all data has been gone through, of a worker's own steps its own data, of a shard's how many steps it has
made; E is where it ends. All begin by rising to their value in a straight line, over `warm_up`: Goyal et al. 2017,
Accurate, large minibatch SGD, arXiv:1706.02677, 2.2.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A learning rate that may change with time alone."""

    may_rest: ClassVar[bool] = False
    """Whether the learning rate may be 0."""

    learning_rate: float = 0.1
    """alpha, the learning rate before any change."""
    schedule: Literal["constant", "step", "cosine", "per-epoch"] = "constant"
    """How the learning rate changes."""
    zero_at: float = 100.0
    """`cosine`: E, epochs until it is zero."""
    decay_at: list[float] = dataclasses.field(default_factory=list)
    """`step`: epochs after which the learning rate falls."""
    decay_by: float = 0.1
    """What the learning rate is multiplied by when it falls."""
    warm_up: float = 0.0
    """Epochs until the learning rate has risen from zero."""

    def __post_init__(self) -> None:
        """Raise ValueError, `field: what`, where a setting is outside its range."""
        if self.may_rest and not self.learning_rate >= 0.0:
            raise ValueError(f"learning_rate: {self.learning_rate:g} is below 0")
        for name in ("zero_at", "decay_by", *(() if self.may_rest else ("learning_rate",))):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name}: {getattr(self, name)} is not above 0")
        if not self.warm_up >= 0.0:
            raise ValueError(f"warm_up: {self.warm_up} is below 0")
        if any(each < 0.0 for each in self.decay_at):
            raise ValueError("decay_at: time is counted from 0")

    def at(self, time: float, step: float = 0.0, factor: float = 1.0) -> float:
        """Learning rate at a time, for a step that takes so much of it; `factor` is what it has come to otherwise."""
        if self.schedule == "step":
            factor = self.decay_by ** sum(time >= each for each in self.decay_at)
        elif self.schedule == "cosine":
            factor = (1.0 + math.cos(math.pi * min(1.0, time / self.zero_at))) / 2.0
        elif self.schedule == "per-epoch":
            factor = 1.0 / (2 * (int(time) + 1))
        if time + step < self.warm_up:
            factor *= (time + step) / self.warm_up
        return self.learning_rate * factor


@dataclass(frozen=True, kw_only=True)
class Scheduled(Rate):
    """A learning rate that may change with the loss as well."""

    schedule: Literal["constant", "step", "cosine", "per-epoch", "plateau"] = "constant"  # type: ignore[assignment] # more of them
    """How the learning rate changes."""
    patience: int = 10
    """`plateau`: epochs without a lower loss that are waited for."""
    threshold: float = 1e-4
    """`plateau`: the share by which a loss has to be lower."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("patience", "threshold"):
            if not getattr(self, name) >= 0.0:
                raise ValueError(f"{name}: {getattr(self, name)} is below 0")


def passes(pushes: int, epochs_a_push: float) -> float:
    """Return the passes through all data that `pushes` stand for: whole where they are, even 49 times a 49th."""
    return round(pushes * epochs_a_push, 9)


class Schedule:
    """The learning rate of a training in progress."""

    def __init__(self, config: Scheduled) -> None:
        self.config = config
        self.lowest = math.inf
        """Lowest mean loss of an epoch."""
        self.waited = 0
        """Epochs since the lowest loss."""
        self.factor = 1.0
        """Factor that `plateau` has come to."""
        self._epoch = 0
        self._sum = 0.0
        """Sum of the losses of this epoch."""
        self._count = 0

    def rate(self, epoch: float, step: float = 0.0) -> float:
        """Learning rate at `epoch`, for a step that takes `step` epochs."""
        return self.config.at(epoch, step, self.factor)

    def note(self, epoch: float, loss: float) -> None:
        """Note a push at `epoch`, with the mean loss of its mini-batches."""
        if self.config.schedule != "plateau":
            return
        if int(epoch) > self._epoch and self._count:
            self._end_epoch(self._sum / self._count)
            self._sum, self._count = 0.0, 0
        self._epoch = int(epoch)
        self._sum += loss
        self._count += 1

    def _end_epoch(self, loss: float) -> None:
        if loss < self.lowest * (1.0 - self.config.threshold):
            self.lowest, self.waited = loss, 0
            return
        self.waited += 1
        if self.waited > self.config.patience:
            self.factor *= self.config.decay_by
            self.waited = 0
