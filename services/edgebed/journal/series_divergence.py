"""Whether a trial diverged, and what was not finite first: from its losses and from its nodes' reports.

A trial diverged if a loss of an update that is in the final model is not finite, or one that was measured, or the
headline in the last evaluation: another measure, such as a correlation, may have no value before all is learnt. The
update at which it was decides what was first: there a node's own report comes before a loss, and a worker's before the
evaluator's.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from edgebed.core.quantities import not_finite_text
from edgebed.core.records import Diverged
from edgebed.journal.columns.evaluations import Evaluations
from edgebed.journal.columns.updates import Updates
from edgebed.journal.series_steps import Steps

RAN_TO_END = frozenset(("completed", "diverged"))
"""Outcomes of trials that ran to their end."""
EVALUATOR = "evaluator"
LOSS = "loss"
"""The measure that is the loss, by every objective that comes with edgebed."""
Told = Sequence[tuple[float, str, Diverged]]
"""Reports of nodes as (t, node, record), in the journal's order."""


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """The first thing that was not finite."""

    update: int
    """The update that it went into; for the evaluator, the version of the model that it measured."""
    node: str
    """The node that computed with it."""
    step: int
    """The node's own count of its updates, from 0; for a shard the mini-batch, for the evaluator the version."""
    what: str
    """What was not finite: parameter, buffer, loss, gradient, update; for a shard also inputs or outputs."""
    tensor: str = ""
    """The parameter or buffer in question, also where its gradient or update was not finite."""

    @property
    def text(self) -> str:
        """The divergence in words, e.g. `buffer mask at edge-0`."""
        return f"{not_finite_text(self.what, self.tensor)} at {self.node}"


class _Candidate(NamedTuple):
    """A possible first divergence; candidates are compared by all fields but the last."""

    update: int
    rank: int
    t: float
    divergence: Divergence


def divergence_of(
    told: Told, updates: Updates, workers: Sequence[str], evaluations: Evaluations, steps: Steps
) -> tuple[Divergence | None, bool]:
    """What was not finite first, and whether the trial diverged: all losses may be finite even so."""
    losses = [*_of_updates(updates, workers, steps), *_of_evaluations(evaluations)]
    said = [*_said(told, updates, workers, evaluations, steps)] if told else []  # most trials say nothing
    first = min([*losses, *said], key=lambda each: each[:3], default=None)
    return (first.divergence if first else None), bool(losses)


def _of_updates(updates: Updates, workers: Sequence[str], steps: Steps) -> Iterator[_Candidate]:
    """The first update whose loss is not finite; among shards' steps, of the losses that were reported."""
    if steps.last:
        made = steps.diverged()
        if made is not None:
            loss = Divergence(update=made.step + 1, node=made.shard, step=made.step, what="loss")
            yield _Candidate(loss.update, 1, made.t, loss)
        return
    for k in np.flatnonzero(~np.isfinite(updates.loss))[:1].tolist():
        node, step = workers[updates.worker[k]], int(updates.step[k])
        loss = Divergence(update=int(updates.version[k]), node=node, step=step, what="loss")
        yield _Candidate(loss.update, 1, float(updates.t[k]), loss)


def _of_evaluations(evaluations: Evaluations) -> Iterator[_Candidate]:
    """The first loss that is not finite, and the first headline after which none is finite again."""
    for name, values in (*evaluations.measured.items(), *evaluations.validation.items()):
        broken, finite = np.flatnonzero(~np.isfinite(values)), np.flatnonzero(np.isfinite(values))
        if name != LOSS:
            is_headline = name == evaluations.headline.name
            broken = broken[broken > finite.max(initial=-1)] if is_headline else broken[:0]
        for k in broken[:1].tolist():
            version = int(evaluations.version[k])
            first = Divergence(update=version, node=EVALUATOR, step=version, what=name)
            yield _Candidate(version, 3, float(evaluations.t[k]), first)


def _said(
    told: Told, updates: Updates, workers: Sequence[str], evaluations: Evaluations, steps: Steps
) -> Iterator[_Candidate]:
    """What nodes reported of updates and versions that led to the final model."""
    measured = set(evaluations.version.tolist())
    made = {} if steps.last else _made(told, updates, workers)
    for (t, node, record), is_kept in zip(told, steps.are_kept([record for _, _, record in told]), strict=True):
        rank, update = 0, made.get((node, record.incarnation, record.step))
        if node == EVALUATOR:
            rank, update = 2, record.step if record.step in measured else None
        elif steps.last:
            update = record.step + 1 if is_kept else None
        if update is not None:
            first = Divergence(update=update, node=node, step=record.step, what=record.what, tensor=record.tensor)
            yield _Candidate(update, rank, t, first)


def _made(told: Told, updates: Updates, workers: Sequence[str]) -> dict[tuple[str, int, int], int]:
    """The versions that reported pushes made, by worker, incarnation and step; in one pass."""
    wanted = {(node, record.incarnation, record.step) for _, node, record in told}
    nodes = (workers[place] for place in updates.worker.tolist())
    pushes = zip(nodes, updates.incarnation.tolist(), updates.step.tolist(), strict=True)
    found: dict[tuple[str, int, int], int] = {}
    for push, version in zip(pushes, updates.version.tolist(), strict=True):
        if push in wanted:
            found.setdefault(push, version)
    return found
