"""Measures of a trial for comparisons: moving averages, and what it took to reach an accuracy.

Shapes: E evaluations.
"""

import msgspec
import numpy as np

from edgebed.journal.series import Evaluations, Floats

LADDER = (*(percent / 100 for percent in (*range(10, 90, 5), *range(90, 100))), 0.995, 0.999)
"""Accuracies that are tried where the user names none, as fractions."""
ROUNDING = 1e-9
"""Tolerance for the rounding error of a mean of accuracies; far below the share of one example."""


class CostToAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """What had passed when an accuracy was first measured."""

    updates: int
    time_s: float
    """Seconds since training started."""
    ingress_bytes: int
    """Bytes up: payload of the pushes that made that version."""
    since: float
    """Share of these updates that came after the previous evaluation; within them the moment is not known."""
    egress_bytes: int | None = None
    """Bytes down: payload of the models sent for it. None here and below: not known."""
    traffic_bytes: int | None = None
    """Bytes up and down together."""


def moving_average(values: Floats, window: int) -> Floats:
    """(E,) means of each value and the `window` - 1 before it, of fewer at the beginning."""
    if window < 1:
        raise ValueError(f"a moving average over {window} values")
    first = [values[: end + 1].mean() for end in range(min(window - 1, len(values)))]
    whole = np.lib.stride_tricks.sliding_window_view(values, window).mean(axis=1) if len(values) >= window else []
    return np.concatenate([np.zeros(0), first, whole])


def best_accuracy(evaluations: Evaluations, window: int = 1) -> float | None:
    """The highest moving average of the accuracy, over whole windows (over all, if fewer); None without any."""
    averages = moving_average(evaluations.accuracy, window)
    return float(averages[_first_whole(averages, window) :].max()) if len(averages) else None


def reach(evaluations: Evaluations, accuracy: float, window: int = 1) -> CostToAccuracy | None:
    """What it took until the moving average over a whole window was `accuracy`; None if it never was.

    So an accuracy is reached exactly if `best_accuracy` of the same window is that high.
    """
    averages = moving_average(evaluations.accuracy, window)
    first_whole = _first_whole(averages, window)
    there = np.flatnonzero(averages[first_whole:] >= accuracy - ROUNDING)
    if not len(there):
        return None
    first = first_whole + int(there[0])
    is_known = np.isfinite(evaluations.egress_bytes[first])
    updates = int(evaluations.version[first])
    before = int(evaluations.version[first - 1]) if first else updates
    return CostToAccuracy(
        updates=updates,
        time_s=float(evaluations.t[first]),
        ingress_bytes=int(evaluations.ingress_bytes[first]),
        egress_bytes=int(evaluations.egress_bytes[first]) if is_known else None,
        traffic_bytes=int(evaluations.traffic_bytes[first]) if is_known else None,
        since=(updates - before) / updates if updates else 0.0,
    )


def _first_whole(averages: Floats, window: int) -> int:
    """Index of the first average over a whole window; of the last one, if there are fewer values."""
    return max(0, min(window, len(averages)) - 1)
