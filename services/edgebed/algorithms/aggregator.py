"""What the parameter server asks of an aggregation, and what a method that waits for nobody answers.

    expected            who is about to take part
    joined, left        who takes part; nobody else is ever waited for
    late, push          a push is refused as late, or taken: applied at once, or held until others have come
    expire              no more of them may be waited for
    pulled              a worker is being sent the model
    state, restore      what a server that is started anew needs besides the model

What is applied is always everything that was held, in one step; `version` grows by the number of those pushes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.schedule import Schedule, Scheduled, passes
from edgebed.algorithms.update import Applied, Update


class Told(NamedTuple):
    """What a push says besides its update."""

    examples: int = 1
    """That its worker has."""
    loss: float = 0.0
    """Mean loss of the mini-batches that it comes from."""


ALIKE = Told()
"""Where nothing more is known."""


class Aggregator:
    """The model and the rule by which pushes change it. Owns and writes `theta`; hand out copies."""

    kept: NDArray[np.bool_] | None = None
    """(n,) where the vector is no parameter, but what modules keep beside them; None: nowhere."""
    epochs_a_push = 0.0
    """Passes through all data that a push stands for."""
    deadline_s: float | None = None
    """How long a push may be held: `expire` is called so long after the first that is; None: as long as it takes."""

    def __init__(self, config: Scheduled, theta: NDArray[np.float32], version: int = 0) -> None:
        """`theta` (n,) is the model of `version`: 0, or that of a checkpoint."""
        self.config: Any = config
        self.theta = theta
        self.version = version
        self.schedule = Schedule(config)

    @property
    def learning_rate(self) -> float:
        """That of the step that is next."""
        return self.schedule.rate(self.epoch, self.num_held * self.epochs_a_push)

    @property
    def num_held(self) -> int:
        """Pushes that the step which is next is made of; a method that holds none takes one at a time."""
        return 1

    @property
    def epoch(self) -> float:
        """How often all data has been gone through."""
        return passes(self.version, self.epochs_a_push)

    def move(
        self, indices: NDArray[np.int64] | None, values: NDArray[Any], divisor: float | NDArray[np.int32] = 1.0
    ) -> None:
        """Theta <- Theta - alpha / divisor values, at some entries or at all."""
        step = self.rates(indices, divisor) * values
        if indices is None:
            self.theta -= step
        else:
            self.theta[indices] -= step

    def rates(
        self, indices: NDArray[np.int64] | None, divisor: float | NDArray[np.int32] = 1.0
    ) -> np.float32 | NDArray[np.float32]:
        """Alpha / divisor; 1 / divisor for what modules keep beside parameters, so that its changes are averaged."""
        alpha: Any = self.learning_rate
        if self.kept is not None:
            alpha = np.where(self.kept if indices is None else self.kept.take(indices), 1.0, alpha)
        rates: np.float32 | NDArray[np.float32] = np.divide(alpha, divisor).astype(np.float32)
        return rates

    def expected(self, worker: str) -> None:
        """`worker` was told to begin, and will join or be said to have left."""

    def joined(self, worker: str) -> Applied | None:
        """`worker` takes part from now on; if it did before, that was an earlier life or join of it.

        Who goes on because nobody waits for what it was before.
        """
        return None

    def left(self, worker: str) -> Applied | None:
        """`worker` takes part no more: its state is released. What was applied because nobody waits for it now."""
        return None

    def pulled(self, worker: str) -> None:
        """`worker` is being sent the model as it is now."""

    def late(self, base: int) -> bool:
        """Whether a push computed at version `base` can be applied no more."""
        return False

    def push(self, worker: str, update: Update, base: int, told: Told = ALIKE) -> Applied | None:
        """Take `update`, computed at version `base` by a worker that takes part; None: it is held, and waits."""
        raise AssertionError(f"{type(self).__name__} does not say what it does with a push")

    def expire(self) -> Applied | None:
        """Apply what is held, if anything is."""
        return None

    def state(self) -> NDArray[np.float64]:
        """(s,) what the steps to come depend on besides the model and its version; it is kept with a checkpoint.

        Who takes part and what is held are no part of it: all workers join anew, and what is held is lost.
        """
        return self.schedule.state()

    def restore(self, state: NDArray[np.float64]) -> None:
        """Go on from what `state` gave at the version that this began with."""
        self.schedule.restore(state)
