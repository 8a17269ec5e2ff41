"""Measures for Tong et al. 2016: how long devices work, how steadily accuracy rises.

A measure takes the trials of one seed, by cell.
"""

from collections.abc import Mapping

import numpy as np

from edgebed.studies.papers.measure import Measure
from edgebed.studies.trial_result import FinishedTrial

WAITING = ("inputs", "answers")
"""Phases in which a device waits for another."""


def last_over_first(cell: str) -> Measure:
    """A measure: the time that the last device works in a step over that of the first; None where it is not known."""

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        trial = trials[cell]
        devices = [node.node for node in trial.plan.workers()]
        first, last = _work_s(trial, devices[0]), _work_s(trial, devices[-1])
        return last / first if first and last else None

    return measure


def falls_over_rises(cell: str) -> Measure:
    """A measure: what the accuracy falls between evaluations, in all, over what it rises; None where it never rises.

    0 is a rise without any fall, 1 an accuracy that ends where it began.
    """

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        changes = np.diff(trials[cell].evaluations.values)
        rises, falls = float(changes[changes > 0].sum()), float(-changes[changes < 0].sum())
        return falls / rises if rises else None

    return measure


def _work_s(trial: FinishedTrial, device: str) -> float | None:
    """Seconds of a step in which a device does not wait."""
    shards = trial.summary.shards
    phases, rate = (shards.shard_phases.get(device), shards.shard_steps_per_s.get(device)) if shards else (None, None)
    if not phases or not rate:
        return None
    return sum(share for phase, share in phases.items() if phase not in WAITING) / rate
