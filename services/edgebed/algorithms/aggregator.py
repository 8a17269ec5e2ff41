"""What the parameter server asks of an aggregation, and what a method that waits for nobody answers.

    expected            who is about to take part
    joined, left        who takes part; nobody else is ever waited for
    late, push          a push is refused as late, or taken: applied at once, or held until others have come
    expire              no more of them may be waited for
    pulled              a worker is being sent the model
    forgotten           a worker has forgotten what it remembered of its pushes

What is applied is always everything that was held, in one step; `version` grows by the number of those pushes.

All attributes outlast the server (roles/server/snapshot.py): in its log with everything that it knows of workers, in a
checkpoint without what `session` names. They are there from `__init__` on, and are plain values, arrays and collections
of such.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.schedule import Schedule, Scheduled, passes
from edgebed.algorithms.update import Applied, ModelUpdate


class PushInfo(NamedTuple):
    """What a push says besides its update."""

    examples: int = 1
    """Examples that the worker has."""
    loss: float = 0.0
    """Mean loss of the mini-batches that the update comes from."""
    steps: int = 1
    """Mini-batches that the update is of."""
    beside: tuple[ModelUpdate, ...] = ()
    """What came with the update, of each vector beside the model."""


NO_INFO = PushInfo()
"""Values for where nothing more is known of a push."""


class Aggregator:
    """The model and the rule by which pushes change it. Owns and writes `theta`; hand out copies.

    `in_rounds`, `together` and `holds` tell others what they have to know of it before there is a model: how many
    updates a trial may end beyond the one asked for, and how much memory the server needs.
    """

    transient: ClassVar[tuple[str, ...]] = ("config", "is_buffer", "epochs_a_push", "num_workers")
    """Attributes that are given anew to whoever is made anew, and are stored nowhere."""
    session: ClassVar[tuple[str, ...]] = ()
    """Attributes of who takes part and what is held. A server that begins with a checkpoint has them as when they were
    new: all workers join again, and held pushes are lost. Those of the classes that it is made from count as well."""

    in_rounds: ClassVar[bool] = False
    """Whether workers wait for each other, so that what they have is the same model."""

    vectors: ClassVar[tuple[str, ...]] = ("theta",)
    """Attributes that travel: the model, and (n,) vectors beside it that go down with it. What comes up of the others
    is in `PushInfo.beside`, in this order; a change of any counts as one of the model."""

    goes_with: ClassVar[str] = ""
    """Name of the one local work whose pushes it knows; empty: it knows those of each that goes with all."""
    wants_plain_steps: ClassVar[bool] = False
    """Whether pushes must be sums of gradients, as of `local_steps.plain_objection`."""

    is_buffer: NDArray[np.bool_] | None = None
    """(n,) where the vector holds buffers, which are no parameters; None: nowhere."""
    epochs_a_push = 0.0
    """Passes through all data that a push stands for."""
    num_workers = 1
    """N, workers in the scenario."""
    deadline_s: float | None = None
    """Seconds that a push may be held: `expire` is called so long after the first held one; None: as long as it
    takes."""

    def __init__(self, config: Scheduled, theta: NDArray[np.float32], version: int = 0) -> None:
        """`theta` (n,) is the model of `version`: 0, or that of a checkpoint."""
        self.config: Any = config
        self.theta = theta
        self.version = version
        self.schedule = Schedule(config)

    @classmethod
    def together(cls, config: Any, workers: int) -> int:
        """The largest number of pushes that it applies in one step; of one that does not say it, one of each worker."""
        return max(1, workers)

    @classmethod
    def holds(cls, config: Any, workers: int, share: float | None) -> float:
        """How often the model, as float32, is in what it keeps beside it and in what a step makes, at most.

        `share` of the entries is in a push as chosen ones, or None for all. A push that has just come does not count.
        One that does not say it is taken to keep a model for each worker.
        """
        return float(workers)

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step."""
        return self.schedule.rate(self.epoch, self.num_held * self.epochs_a_push)

    @property
    def num_held(self) -> int:
        """Pushes that the next step is made of; a method that holds none takes one at a time."""
        return 1

    @property
    def epoch(self) -> float:
        """Passes through all data so far."""
        return passes(self.version, self.epochs_a_push)

    @property
    def row(self) -> NDArray[np.float32]:
        """(v n,) the vectors that travel, one after another; the model itself where there is no other."""
        found = [getattr(self, name) for name in self.vectors]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def move(
        self, indices: NDArray[np.int64] | None, values: NDArray[Any], divisor: float | NDArray[np.int32] = 1.0
    ) -> None:
        """Move the model: theta <- theta - alpha / divisor values, at some entries or at all."""
        step = self.rates(indices, divisor) * values
        if indices is None:
            self.theta -= step
        else:
            self.theta[indices] -= step

    def rates(
        self, indices: NDArray[np.int64] | None, divisor: float | NDArray[np.int32] = 1.0
    ) -> np.float32 | NDArray[np.float32]:
        """Return alpha / divisor; in buffers 1 / divisor, so that their changes are averaged."""
        alpha: Any = self.learning_rate
        if self.is_buffer is not None:
            alpha = np.where(self.is_buffer if indices is None else self.is_buffer.take(indices), 1.0, alpha)
        rates: np.float32 | NDArray[np.float32] = np.divide(alpha, divisor).astype(np.float32)
        return rates

    def expected(self, worker: str) -> None:
        """Note that `worker` was asked to begin, and will join or be reported as having left."""

    def joined(self, worker: str) -> Applied | None:
        """Note that `worker` takes part from now on; if it did before, that was an earlier incarnation or join.

        Return who continues because nobody waits for what it was before.
        """
        return None

    def left(self, worker: str) -> Applied | None:
        """Release the state of `worker`, which has left; return what was applied because nobody waits for it now."""
        return None

    def pulled(self, worker: str) -> None:
        """Note that `worker` is being sent the present model."""

    def forgotten(self, worker: str) -> None:
        """Drop what is kept of the pushes of `worker`: it has forgotten what it remembered of them itself.

        So it is of parts that say `forgets_lost`, whenever the worker joins, and when a push of it was refused.
        """

    def late(self, base: int) -> bool:
        """Whether a push computed at version `base` comes too late to be applied."""
        return False

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied | None:
        """Take `update`, computed at version `base` by a worker that takes part; None: it is held, and waits."""
        raise AssertionError(f"{type(self).__name__} does not say what it does with a push")

    def expire(self) -> Applied | None:
        """Apply the pushes that are held, if any."""
        return None
