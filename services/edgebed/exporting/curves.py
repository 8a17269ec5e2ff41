"""The curves of a trial for viewers that draw a line a tag: as many points as these draw, and no more.

Shapes: U updates, P points of a curve.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.journal.series import Series

POINTS_MAX = 1000  # of one curve TensorBoard shows a thousand points
RATES_MAX = 100
RATE_UPDATES = 10
"""Least mean number of updates over which a rate is counted."""


class TrialCurve(NamedTuple):
    """One quantity over the updates applied."""

    name: str
    version: NDArray[np.int64]
    """(P,) number of updates applied by then."""
    t: NDArray[np.float64]
    """(P,) seconds since training started."""
    value: NDArray[np.float64]
    """(P,) values."""


def curves_of(series: Series) -> tuple[TrialCurve, ...]:
    """All curves of a trial. Layer-wise training has no pushes, so neither their bytes nor any staleness.

    Of what a user's programs tell, a version is how often a node had told it.
    """
    evaluations, updates = series.evaluations, series.updates
    found = [
        TrialCurve(f"{tag}/{name}", evaluations.version, evaluations.t, values)
        for tag, part in (("evaluation", evaluations.measured), ("validation", evaluations.validation))
        for name, values in part.items()
        if series.trial is None or not series.trial.runs_programs
    ]
    if len(updates):
        first, last = _windows(len(updates))
        version, t = updates.version[last], updates.t[last]
        count = last - first + 1
        found.append(TrialCurve("training/loss", version, t, np.add.reduceat(updates.loss, first) / count))
        if not series.shards.resumed:
            ingress = updates.ingress_bytes[last].astype(np.float64)
            found += [
                TrialCurve("training/ingress_bytes", version, t, ingress),
                TrialCurve("training/egress_bytes", version, t, updates.egress_bytes[last]),
                TrialCurve("training/traffic_bytes", version, t, updates.traffic_bytes[last]),
                TrialCurve("training/staleness", version, t, np.add.reduceat(updates.staleness, first) / count),
            ]
        found += _rates(series)
    for name, nodes in series.programs.measured.items():
        for node, told in nodes.items():
            last = _windows(len(told.t))[1]
            found.append(TrialCurve(f"told/{name}/{node}", last + 1, told.t[last], told.value[last]))
    return tuple(found)


def _windows(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(P,) the first and the last place of each of at most POINTS_MAX windows that hold all."""
    first = np.arange(0, count, math.ceil(count / POINTS_MAX))
    return first, np.append(first[1:], count) - 1


def _rates(series: Series) -> list[TrialCurve]:
    """Curves of updates a second, over equal times from the start of training to its end."""
    updates = series.updates
    end_s = max(series.trained_s, float(updates.t.max()))
    if end_s <= 0.0:
        return []
    counts, edges = np.histogram(updates.t, max(1, min(RATES_MAX, len(updates) // RATE_UPDATES)), (0.0, end_s))
    applied = np.cumsum(counts)
    version = np.concatenate([[0], updates.version])[applied]
    return [TrialCurve("training/updates_per_s", version, edges[1:], counts / np.diff(edges))]
