"""Measures for Chen et al. 2019 that count steps in the length of the published ones."""

from collections.abc import Mapping

import numpy as np

from edgebed.studies.papers.measure import Measure
from edgebed.studies.trial_result import FinishedTrial

from .cells import PRINTED_RATE


def published_steps(trial: FinishedTrial) -> float:
    """Steps at the published rate that are as long as one of a trial."""
    rate = trial.plan.node("edge-0").method.parts["optimizer"].settings["learning_rate"]
    return float(rate) / PRINTED_RATE


def accuracy_within(cell: str, steps: int) -> Measure:
    """A measure: the last accuracy within so many steps of the published length, in per cent.

    Of a run that ended before it is the last one.
    """

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        trial = trials[cell]
        within = trial.evaluations.version * published_steps(trial) <= steps
        return 100 * float(trial.evaluations.values[np.flatnonzero(within)[-1]]) if within.any() else None

    return measure
