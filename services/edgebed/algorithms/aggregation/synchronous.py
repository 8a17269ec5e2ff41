"""Synchronous parameter server: the mean of a round's updates is applied in one step, at a barrier.

Chen, Pan, Monga, Bengio, Jozefowicz 2016, Revisiting distributed synchronous SGD, arXiv:1604.00981: the mean of the
first N updates, where N + b workers run; what comes later is dropped. Differs from the paper: N is a share of those
who take part at that moment, and a deadline may end a round with fewer.

Theta (n,) the model; g_1 … g_m the updates of a round, all computed at Theta.

    Theta <- Theta - alpha (w_1 g_1 + … + w_m g_m)

Each w is 1 / m; or the worker's share of the examples that those who have pushed have (`weights: examples`), as McMahan
et al. 2017, Communication-efficient learning of deep networks from decentralized data, AISTATS, weight models: n_k / n.
One without examples has no weight, and a round of such workers leaves the model and the velocity as they are. With
`momentum` the server keeps a velocity of these sums, and steps along it: Hsu, Qi, Brown 2019, Measuring the effects of
non-identical data distribution for federated visual classification, arXiv:1909.06335 (FedAvgM). With an `optimizer` it
steps by that: Reddi et al. 2021, Adaptive federated optimization, ICLR, algorithm 2 (FedAdagrad, FedYogi, FedAdam),
which does not correct means for where they begin, and has an epsilon of 1e-3. Differs from the paper: means of
squares begin at zero, not at epsilon^2 or more.

Where updates are sparse, `mean: senders` takes the mean of each entry over those who sent it, and `clip: median` scales
an update down whose norm is above the median of the round's: Sarfi et al. 2025, SparseLoCo, arXiv:2508.15706, and its
authors' code. One who has pushed twice in a round counts as one there, with the sum of both.

A round ends as soon as every worker that takes part has pushed, or a `quorum` of them, or by `deadline_s`. Those that
begin together take part from the beginning, whoever joins first. One that has left is not waited for; what it pushed
counts. One that joins in the middle of a round is waited for from then on; if it has pushed in this round before, both
its updates count. The sum is taken in the order of the workers' names, so the model does not depend on who was first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.aggregator import NO_INFO, PushInfo
from edgebed.algorithms.descent import check_moments
from edgebed.algorithms.schedule import Scheduled
from edgebed.algorithms.shares import check_share
from edgebed.algorithms.stepped import Stepped, SteppedAggregator, copies_of
from edgebed.algorithms.update import Applied, ModelUpdate, total


@dataclass(frozen=True, kw_only=True)
class Config(Stepped, Scheduled):
    """The mean of a round's updates is applied in one step; a worker late for a round is sent the model again."""

    name: Literal["synchronous"] = "synchronous"
    quorum: float = 1.0
    """The share of those who take part, in (0, 1], whose updates end a round; below 1 it leaves the slowest out."""
    deadline_s: float | None = None
    """Seconds after its first update that a round ends, whoever is missing; none: it waits for its quorum."""
    weights: Literal["equal", "examples"] = "equal"
    """Whether updates count alike, or by how many examples their workers have."""
    mean: Literal["all", "senders"] = "all"
    """Workers that an entry's mean is over: all who have pushed in the round, or those of them who sent that entry."""
    clip: Literal["none", "median"] = "none"
    """Whether an update with a larger norm is scaled down to the median norm of the round's updates."""

    entries: Literal["all", "sent"] = "all"
    """Entries that a round steps: all, along the velocity where nothing was sent; or those that somebody sent."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("quorum", self.quorum)
        if self.deadline_s is not None and not 0.0 < self.deadline_s < math.inf:
            raise ValueError(f"deadline_s: {self.deadline_s} is not a time above 0; leave it out to have none")
        if self.mean == "senders" and self.weights == "examples":
            raise ValueError("mean: senders of an entry count alike; set weights: equal beside it")
        if self.entries == "sent" and self.corrected and self.optimizer in ("adam", "yogi"):
            raise ValueError("entries: how often one was stepped is not counted; set corrected: false beside sent")
        check_moments(self)


class Aggregation(SteppedAggregator):
    """The round that is open: who takes part, what has come."""

    in_rounds = True
    session: ClassVar[tuple[str, ...]] = ("members", "waiting", "sums", "pushes", "weight")

    config: Config

    @classmethod
    def holds(cls, config: Config, workers: int, share: float | None) -> float:
        """A round's sum and step, and its chosen entries with positions of 8 bytes; dense updates are as they came.

        What its optimizer remembers comes to that.
        """
        chosen = 3.0 * (share or 0.0) * workers
        clipped = (1.0 if share is None else share) * workers * (config.clip == "median")
        return 2.0 + chosen + clipped + 2.0 * (config.mean == "senders") + copies_of(config)

    def __init__(self, config: Config, theta: NDArray[np.float32], version: int = 0) -> None:
        super().__init__(config, theta, version)
        self.deadline_s = config.deadline_s
        self.members: set[str] = set()
        self.waiting: dict[str, None] = {}
        """Members that have pushed in this round, in order."""
        self.sums: dict[str, ModelUpdate] = {}
        """Pushes of this round by worker, including workers that have left."""
        self.pushes = 0
        self.weight = 0.0
        """Weight of all updates of this round."""

    @property
    def num_held(self) -> int:
        """Pushes received in this round."""
        return max(1, self.pushes)

    def expected(self, worker: str) -> None:
        """Let the round wait for `worker`."""
        self.members.add(worker)

    def joined(self, worker: str) -> None:
        """Let the round wait for `worker`, also if it has pushed in an earlier join."""
        self.members.add(worker)
        self.waiting.pop(worker, None)

    def left(self, worker: str) -> Applied | None:
        """End the round if it waited for nobody but `worker`."""
        self.members.discard(worker)
        self.waiting.pop(worker, None)
        return self._end_if_complete()

    def late(self, base: int) -> bool:
        """Whether the round of a push computed at version `base` is over."""
        return base < self.version

    def push(self, worker: str, update: ModelUpdate, base: int, info: PushInfo = NO_INFO) -> Applied | None:
        """Hold `update` until the round ends, which may be now."""
        self.weight += self.weight_of(info)
        if self.config.weights == "examples":
            with np.errstate(over="ignore", invalid="ignore"):
                weighted = np.float32(info.examples) * update.values
            update = update._replace(values=weighted if info.examples else np.zeros_like(weighted))
        known = self.sums.get(worker)
        self.sums[worker] = update if known is None else total([known, update])
        self.pushes += 1
        self.waiting[worker] = None
        return self._end_if_complete()

    def weight_of(self, info: PushInfo) -> int:
        """How much a push counts in its round."""
        return info.examples if self.config.weights == "examples" else 1

    @property
    def divisor(self) -> float:
        """By what the sum of a round's updates, each as often as it weighs, is divided."""
        return self.weight

    def expire(self) -> Applied | None:
        """End the round with the pushes that have come."""
        return self._end() if self.pushes else None

    def _end_if_complete(self) -> Applied | None:
        # rounded: 0.55 * 100 is a little more than 55
        needed = round(self.config.quorum * len(self.members), 9)
        return self.expire() if len(self.waiting) >= needed else None

    def _end(self) -> Applied:
        with np.errstate(over="ignore", invalid="ignore"):  # training that diverges is a result, and seen in its loss
            updates = [self.sums[worker] for worker in sorted(self.sums)]
            if self.config.clip == "median":
                updates = _clipped(updates)
            whole, indices, values = total(updates)
            divisor = self.divisor if self.weight else 1.0
            if self.config.mean == "senders" and indices is not None:
                values, divisor = values / _senders(updates, whole)[indices], divisor / (self.weight or 1.0)
            indices = self.descend(indices, values, divisor) if self.weight else np.zeros(0, np.int64)
        self.version += self.pushes
        applied = Applied(tuple(self.waiting), indices)
        self.waiting, self.sums, self.pushes, self.weight = {}, {}, 0, 0.0
        return applied


def _clipped(updates: Sequence[ModelUpdate]) -> list[ModelUpdate]:
    """Return the updates with no norm above the median of all."""
    norms = [float(np.linalg.norm(each.values)) for each in updates]
    most = float(np.median(norms))
    return [
        each._replace(values=np.float32(most / norm) * each.values) if norm > most else each
        for each, norm in zip(updates, norms, strict=True)
    ]


def _senders(updates: Sequence[ModelUpdate], size: int) -> NDArray[np.float32]:
    """(n,) how many of the updates have each entry."""
    found = np.zeros(size, np.float32)
    for each in updates:
        found[slice(None) if each.indices is None else each.indices] += 1.0
    return found
