"""Arms compared client by client: what each does to the clients, over seeds, and whom it makes worse than the baseline.

A client's gain is that of its last value over the baseline's with the same seed, in the mean of the seeds that both
have; it is made worse where that is below zero. After fine-tuning, where both arms have it, is an arm of its own; so is
the version that validation chose, which is compared with the baseline's, or its last where that has no such version.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec
import numpy as np

from edgebed.core.measures.clients import STATISTICS
from edgebed.core.measures.task import TaskMeasure
from edgebed.journal.columns.clients import names_of
from edgebed.studies.arms import Arm
from edgebed.studies.statistics import ConfidenceInterval, interval

TUNED = "{}, fine-tuned"
CHOSEN = "{}, where validation was best"
NAMES = {"seen": "{}", "chosen": CHOSEN, "tuned": TUNED}
"""What the arm of each part of a summary is called."""


class ClientsOfArm(msgspec.Struct, frozen=True, kw_only=True):
    """What an arm does to the clients."""

    values: dict[str, float]
    """The last value of each client, by its name, the mean over the seeds that have it."""
    spreads: dict[str, ConfidenceInterval]
    """Each statistic over clients, by its name, over seeds."""
    gains: dict[str, float] = {}
    """By how much each client is better than under the baseline; empty for the baseline itself."""
    worse: float | None = None
    """Share of the clients that are worse; None: there is nothing to compare."""
    better: float | None = None


def compare_clients(arms: Sequence[Arm], base: Arm, headline: TaskMeasure) -> dict[str, ClientsOfArm]:
    """What each arm does to the clients, by its name; empty where nothing was measured client by client."""
    found: dict[str, ClientsOfArm] = {}
    for part, form in NAMES.items():
        baseline = _values(base, headline, part)
        if part == "chosen" and not baseline:
            baseline = _values(base, headline, "seen")
        for arm in arms:
            spreads = _spreads(arm, part, headline)
            if not spreads:
                continue
            values = _values(arm, headline, part)
            gains = {} if arm is base else _gains(values, baseline, headline)
            found[form.format(arm.name)] = ClientsOfArm(
                values=_means(values),
                spreads=spreads,
                gains=gains,
                worse=fmean(gain < 0 for gain in gains.values()) if gains else None,
                better=fmean(gain > 0 for gain in gains.values()) if gains else None,
            )
    return found


def _spreads(arm: Arm, part: str, headline: TaskMeasure) -> dict[str, ConfidenceInterval]:
    """Each statistic over the seeds that have it, if all have."""
    summaries = [member.trial.summary.clients for member in arm.members.values()]
    spreads = [getattr(each, part).get(headline.name) for each in summaries if each]
    if len(spreads) < len(summaries) or not all(spreads):
        return {}
    return {name: interval([getattr(spread, name) for spread in spreads]) for name in STATISTICS}


def _values(arm: Arm, headline: TaskMeasure, part: str) -> dict[tuple[int, str], float]:
    """The value of each client that a part of a summary tells of, by seed and name."""
    found: dict[tuple[int, str], float] = {}
    for seed, member in arm.members.items():
        clients = member.trial.series.clients
        values = clients.told(headline.name, part)
        for name, value in zip(names_of(member.trial.plan, clients.clients), values.tolist(), strict=True):
            if np.isfinite(value):
                found[seed, name] = value
    return found


def _gains(
    values: Mapping[tuple[int, str], float], baseline: Mapping[tuple[int, str], float], headline: TaskMeasure
) -> dict[str, float]:
    """The mean gain of each client over the seeds in which both arms have it."""
    return _means({
        key: float(headline.gain(value, baseline[key])) for key, value in values.items() if key in baseline
    })  # fmt: skip


def _means(values: Mapping[tuple[int, str], float]) -> dict[str, float]:
    """The mean of each client over the seeds that have it."""
    by_client: dict[str, list[float]] = {}
    for (_, name), value in values.items():
        by_client.setdefault(name, []).append(value)
    return {name: fmean(each) for name, each in by_client.items()}
