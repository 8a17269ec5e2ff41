"""Whether leaving out live trials whose conditions did not hold changes what is compared; pure.

Such a trial is run again. Its time stands beside that of the trial of the same method and seed that counts: where the
two are alike, nothing is hidden by leaving it out.
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from validation.ranking.rank_statistics import HIGH_SHARE


class DrawnAgain(msgspec.Struct, frozen=True, kw_only=True):
    """The live trials whose conditions did not hold, by their time."""

    trials: int
    without_time: int
    """Trials of these that did not make their updates, or of which no time is kept."""
    without_other: int
    """Trials with a time of which no trial of the same method and seed counts."""
    compared: int
    ratio: float | None = None
    """Median of their time over that of the trial that counts."""
    size_p95: float | None = None
    """What 95 % of these ratios differ from 1 by at most."""


def drawn_again_of(times_s: Iterable[tuple[float | None, float | None]]) -> DrawnAgain:
    """Compare times, that of each trial that does not count and that of the one that does; None where there is none."""
    trials = list(times_s)
    timed = [(time_s, counted_s) for time_s, counted_s in trials if time_s is not None]
    ratios = np.array([time_s / counted_s for time_s, counted_s in timed if counted_s is not None])
    found = DrawnAgain(
        trials=len(trials),
        without_time=len(trials) - len(timed),
        without_other=len(timed) - len(ratios),
        compared=len(ratios),
    )
    if not len(ratios):
        return found
    return msgspec.structs.replace(
        found, ratio=float(np.median(ratios)), size_p95=float(np.quantile(np.abs(ratios - 1), HIGH_SHARE))
    )
