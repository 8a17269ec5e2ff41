"""How far two curves of accuracies lie apart."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edgebed.studies.papers.measure import Measure, Trials


def mean_distance(cell: str, other: str) -> Measure:
    """A measure: the mean distance of two cells' accuracies over their evaluations, in points; None: without any."""
    return _distance(cell, other, np.mean)


def largest_distance(cell: str, other: str) -> Measure:
    """A measure: the largest distance of two cells' accuracies at an evaluation, in points; None: without any."""
    return _distance(cell, other, np.max)


def _distance(cell: str, other: str, of: Callable[[NDArray[np.float64]], np.float64]) -> Measure:
    """A measure of the distances at the versions that both evaluated, but for that of the first weights."""

    def measure(trials: Trials) -> float | None:
        one, two = trials[cell].evaluations, trials[other].evaluations
        versions, own, its = np.intersect1d(one.version, two.version, return_indices=True)
        apart = 100 * np.abs(np.subtract(one.values[own], two.values[its], dtype=float))[versions > 0]
        return float(of(apart)) if len(apart) else None

    return measure
