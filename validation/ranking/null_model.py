"""What a ranking is to be measured by: the order that a one-line estimate gives, and what an order can show at all.

The null model is the estimate that scenarios are drawn by (estimate.py). The power is the tau that there would be if
each method's time had an independent error: errors of which tau knows nothing are those that turn no pair. Pure.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from edgebed.core import chance
from edgebed.studies.statistics import CONFIDENCE
from validation.ranking.rank_statistics import Error, Tau, error_of, pooled_tau

DEVIATIONS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.2)
"""Standard deviations of the logarithm of a time for which tau is computed."""
DRAWS = 2000
TIED = 1e-9
"""Difference of the logarithms of two estimates below which they are the same."""

Times = Mapping[str, Mapping[str, float]]
"""Seconds by scenario and method."""


class LivePair(NamedTuple):
    """Two methods of a scenario that the live seeds tell apart by their time."""

    scenario: str
    faster: str
    slower: str
    ratio: float
    """Live time of the slower over that of the faster."""


class NullModel(msgspec.Struct, frozen=True, kw_only=True):
    """The order and the times of the estimate, on the same pairs and places as those of virtual time."""

    tau: Tau
    error: Error
    """Sizes of its errors, estimated over mean live time, less one."""


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """Tau of the time if each method's time were the live one with an independent error."""

    deviation: float
    """Standard deviation of the error: of the logarithm of the time."""
    tau: float
    """The mean over draws."""
    low: float
    """What tau is at least, but for 2.5 % of the draws."""
    high: float
    """What tau is at most, but for 2.5 % of the draws."""


def null_model(live: Times, pairs: Sequence[LivePair], estimates: Times) -> NullModel | None:
    """Compare the estimates with live times; None where there is no estimate. What has none is left out."""
    errors = [
        [
            estimates[scenario][method] / time_s - 1
            for method, time_s in methods.items()
            if method in estimates[scenario]
        ]
        for scenario, methods in live.items()
        if scenario in estimates
    ]
    error = error_of(errors)
    if error is None:
        return None
    signs: dict[str, list[int]] = {}
    for pair in pairs:
        of = estimates.get(pair.scenario, {})
        if pair.faster in of and pair.slower in of:
            contrast = math.log(of[pair.slower] / of[pair.faster])
            signs.setdefault(pair.scenario, []).append(0 if abs(contrast) < TIED else int(math.copysign(1, contrast)))
    return NullModel(tau=pooled_tau(list(signs.values())), error=error)


def power_of(pairs: Sequence[LivePair]) -> tuple[Power, ...]:
    """Tau for each of DEVIATIONS; nothing without a pair. The draws are the same at every call."""
    if not pairs:
        return ()
    methods = sorted({(pair.scenario, name) for pair in pairs for name in (pair.faster, pair.slower)})
    columns = {method: column for column, method in enumerate(methods)}
    faster = [columns[pair.scenario, pair.faster] for pair in pairs]
    slower = [columns[pair.scenario, pair.slower] for pair in pairs]
    errors = chance.generator(0, "power", k=len(pairs)).standard_normal((DRAWS, len(methods)))
    apart = np.log([pair.ratio for pair in pairs])
    tail = (1 - CONFIDENCE) / 2
    found = []
    for deviation in DEVIATIONS:
        taus = np.sign(apart + deviation * (errors[:, slower] - errors[:, faster])).mean(axis=1)
        low, high = np.quantile(taus, (tail, 1 - tail)).tolist()
        found.append(Power(deviation=deviation, tau=float(taus.mean()), low=low, high=high))
    return tuple(found)
