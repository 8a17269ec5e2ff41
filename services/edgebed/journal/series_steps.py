"""The steps of layer shards, history by history: what is in the final model, and what was rolled back.

A shard may learn of every k-th mini-batch alone; its step stands for the k - 1 that follow as well, and a step of the
last shard completes as many updates of the model.

A step survives if no later history began before it. A shard that is killed may lose its last records; a
backup, or a step from which all resumed, which the server reports, proves that its steps were made.

Shapes: S steps that a shard made.
"""

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.core.recorded.reach import Reach
from edgebed.journal.folds import Fold, Timeline, on


class ModelStep(NamedTuple):
    """An update of the model: the last shard made a step, and the others made theirs."""

    t: float
    shard: str
    step: int
    loss: float


class ShardSteps(NamedTuple):
    """The steps of one shard that are in the model, in order."""

    t: NDArray[np.float64]
    """When the shard reported each step; for a step that only a backup proves, when the backup was made."""
    step: NDArray[np.int64]


class ModuleLosses(NamedTuple):
    """Losses of a module, what it could not predict, over the steps that are in the model, in order."""

    t: NDArray[np.float64]
    step: NDArray[np.int64]
    loss: NDArray[np.float64]


class Steps(Fold):
    """Collects what shards and their server report; times are seconds since training began."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.timeline = timeline
        self.columns: dict[str, tuple[array[float], array[int], array[int]]] = {}
        """Times, steps and histories, by shard."""
        self.every: dict[str, int] = {}
        """Mini-batches from one step to the next, by shard."""
        self.lags: tuple[array[int], array[int], array[int]] = (array("q"), array("q"), array("q"))
        """For each pair that a module learnt from: the step, its history, and how many steps apart the two were."""
        self.reach = Reach()
        self.made = 0
        """Number of updates of the model that any step has completed."""
        self.losses: dict[tuple[int, int], float] = {}
        """The model's loss by history and step, where a shard has it."""
        self.taught: dict[tuple[str, bool], tuple[array[float], array[int], array[int], array[float]]] = {}
        """Times, steps, histories and losses of each shard's module, for gradients or inputs."""
        self.last = ""
        """The shard with the end of the model."""
        self.resumed: list[tuple[float, records.Resumed]] = []
        self.backed_up: list[tuple[float, records.BackedUp]] = []

    @on(records.Step)
    def _step(self, t: float, node: str, record: records.Step) -> None:
        """Add a shard's step. ValueError where the step cannot follow what was reported."""
        self._reach(max(record.step, record.made))
        times, steps, histories = self.columns.setdefault(node, (array("d"), array("q"), array("q")))
        times.append(self.timeline.since_began(t))
        steps.append(record.step)
        histories.append(record.history)
        self.every[node] = record.every
        self.made = max(self.made, record.made)
        for lag in (record.gradient_lag, record.input_lag):
            if lag is not None:
                for column, value in zip(self.lags, (record.step, record.history, abs(lag)), strict=True):
                    column.append(value)
        if record.made:
            self.last = node
            self.losses[record.history, record.step] = math.nan if record.loss is None else record.loss

    @on(records.BackedUp)
    def _backed_up(self, t: float, _: str, record: records.BackedUp) -> None:
        """Add a backup of the server. ValueError as in `_step`."""
        self._reach(record.step)
        self.backed_up.append((self.timeline.since_began(t), record))

    @on(records.Resumed)
    def _resumed(self, t: float, _: str, record: records.Resumed) -> None:
        self.resumed.append((self.timeline.since_began(t), record))

    @on(records.Taught)
    def _taught(self, t: float, _: str, record: records.Taught) -> None:
        empty = (array("d"), array("q"), array("q"), array("d"))
        times, steps, histories, losses = self.taught.setdefault((record.shard, record.inputs), empty)
        times.append(self.timeline.since_began(t))
        steps.append(record.step)
        histories.append(record.history)
        losses.append(record.loss)

    def _reach(self, step: int) -> None:
        """Note that so many steps have been made: each is counted, so a record may not stand for any number of them."""
        if objection := self.reach.objection(step):
            raise ValueError(objection)
        self.reach.note(step)

    def module_losses(self, *, inputs: bool) -> dict[str, ModuleLosses]:
        """Losses of the modules that predict inputs, or else gradients, by their shard."""
        found = {}
        for (shard, is_of_inputs), columns in sorted(self.taught.items()):
            if is_of_inputs == inputs:
                t, step, history, loss = (np.array(column) for column in columns)
                kept = np.flatnonzero(step < self._limits(history))
                kept = kept[np.argsort(step[kept], kind="stable")]
                found[shard] = ModuleLosses(t[kept], step[kept], loss[kept])
        return found

    def surviving(self) -> dict[str, ShardSteps]:
        """(S,) steps of each shard that are in the model, in order; each is there as often as it was learnt."""
        found = {}
        for node in self.columns:
            times, steps, _ = self._kept(node)
            unsaid = self._unsaid(steps, self.every[node])
            t = np.concatenate([times, np.array([self._witnessed_t(step) for step in unsaid.tolist()])])
            step = np.concatenate([steps, unsaid])
            order = np.argsort(step, kind="stable")
            found[node] = ShardSteps(t[order], step[order])
        return found

    def surviving_lags(self) -> NDArray[np.int64]:
        """(P,) how many steps the pairs were apart that modules learnt from, in either direction."""
        steps, histories, lags = (np.array(column, dtype=np.int64) for column in self.lags)
        return lags[steps < self._limits(histories)]

    def count(self) -> int:
        """Number of steps that all shards together made, with those that are in no model."""
        unsaid = (self._unsaid(self._kept(node)[1], self.every[node]) for node in self.columns)
        return sum(len(steps) for _, steps, _ in self.columns.values()) + sum(map(len, unsaid))

    def updates(self) -> list[ModelStep]:
        """The updates that made the model, in order."""
        if not self.last:
            return []
        times, steps, histories = self._kept(self.last)
        made = [
            ModelStep(t, self.last, step, self.losses.get((history, step), math.nan))
            for t, step, history in zip(times.tolist(), steps.tolist(), histories.tolist(), strict=True)
        ]
        every = self.every[self.last]
        unsaid = self._unsaid(steps, every).tolist()
        made += [ModelStep(self._witnessed_t(step), self.last, step, math.nan) for step in unsaid]
        made.sort(key=lambda each: each.step)
        end = max(self.made, self._proven())
        return [each._replace(step=step) for each in made for step in range(each.step, min(each.step + every, end))]

    def diverged(self) -> ModelStep | None:
        """The first step in the model whose loss is not finite, among those that the last shard reported."""
        told = (
            ModelStep(t, self.last, step, self.losses.get((history, step), 0.0))
            for t, step, history in zip(*map(np.ndarray.tolist, self._kept(self.last)), strict=True)
        )
        return min((made for made in told if not math.isfinite(made.loss)), key=lambda made: made.step, default=None)

    def are_kept(self, told: Sequence[records.Diverged]) -> NDArray[np.bool_]:
        """For each report, whether the step that it is about was not rolled back."""
        steps, histories = (np.array([getattr(each, name) for each in told]) for name in ("step", "history"))
        kept: NDArray[np.bool_] = steps < self._limits(histories)
        return kept

    def _kept(self, node: str) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """A shard's reported steps that survive: times, steps, histories."""
        times, steps, histories = (np.array(column) for column in self.columns[node])
        survives = steps < self._limits(histories)
        return times[survives], steps[survives], histories[survives]

    def _limits(self, histories: NDArray[np.int64]) -> NDArray[np.float64]:
        """For each of these histories, the first step that a later history began before."""
        resumed = np.array(sorted((record.history, record.step) for _, record in self.resumed)).reshape(-1, 2)
        lowest = np.minimum.accumulate(np.append(resumed[:, 1], np.inf)[::-1])[::-1]
        return lowest[np.searchsorted(resumed[:, 0], histories, side="right")]

    def _unsaid(self, steps: NDArray[np.int64], every: int) -> NDArray[np.int64]:
        """Steps that a backup proves and the shard had no time to report."""
        return np.setdiff1d(np.arange(0, self._proven(), every), steps)

    def _proven(self) -> int:
        return max((record.step for _, record in self.backed_up), default=0)

    def _witnessed_t(self, step: int) -> float:
        return min(t for t, record in self.backed_up if record.step > step)
