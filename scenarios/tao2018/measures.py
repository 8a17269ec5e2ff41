"""What is measured for Tao, Li 2018 alone."""

from collections.abc import Mapping

import numpy as np

from edgebed.studies.papers.measure import Measure
from edgebed.studies.papers.measuring import of_summary, times
from edgebed.studies.trial_result import FinishedTrial

PARAMETERS = 211_690
EVALUATIONS_MIN = 3
"""Number of evaluations that a spread of the changes between them needs."""


def unsteadiness(cell: str) -> Measure:
    """A measure: the standard deviation of the changes of the loss between evaluations in the second half of a run.

    A loss that falls at a steady rate has none. In the first half it falls too fast for that. None with fewer than
    three evaluations in that half.
    """

    def measure(trials: Mapping[str, FinishedTrial]) -> float | None:
        loss = trials[cell].evaluations.measured["loss"]
        second_half = loss[len(loss) // 2 :]
        return float(np.diff(second_half).std()) if len(second_half) >= EVALUATIONS_MIN else None

    return measure


def sent_share(cell: str) -> Measure:
    """A measure: the share of the entries that a worker pushes, on average over a run, in per cent."""
    return times(of_summary(cell, "entries_mean"), 100 / PARAMETERS)
