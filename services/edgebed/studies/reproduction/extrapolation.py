"""What a measure of a run shorter than the paper's may come to in a training as long as the paper's: a bound.

Learning slows down: over the logarithm of the updates, a model gets better ever less once it has begun to level off. So
each doubling of the updates that is still to come is taken to change a measure no more than the last one that was run
did, m(all) - m(half). Of d doublings to come, what it comes to then lies between m(all) and m(all) + d (m(all) -
m(half)). There is no bound where the last doubling raised the accuracies more than the one before, for then they have
not begun to level off. Nor is there one where a learning rate falls after shares of a run's own updates: half of such a
run is not a run of half the length.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import msgspec

from edgebed.journal.summary import TrialSummary
from edgebed.studies.papers.measure import Measure
from edgebed.studies.statistics import ConfidenceInterval, interval
from edgebed.studies.trial_result import FinishedTrial

NOT_MEASURED: dict[str, Any] = {
    name: None for name, declared in get_type_hints(TrialSummary).items() if type(None) in get_args(declared)
}
"""The numbers of a summary that may be missing, all missing."""
EVALUATIONS_MIN = 2
"""Number of evaluations besides that of the initial weights that the beginning of a run needs."""


def beginning(trial: FinishedTrial, share: float) -> FinishedTrial | None:
    """A trial as it was after a share of its updates; None with too few evaluations until then.

    Of its summary what is measured last is those of that moment; a measure that reads others has no value there.
    """
    updates = int(trial.summary.updates * share)
    kept = trial.evaluations.version <= updates
    if kept.sum() <= EVALUATIONS_MIN:
        return None
    evaluations = trial.evaluations.at(kept)
    summary = msgspec.structs.replace(
        trial.summary,
        **NOT_MEASURED
        | {
            "updates": updates,
            "evaluations": len(evaluations),
            "best": evaluations.best(),
            "final": evaluations.last(),
            "last": evaluations.last(),
        },
    )
    return replace(trial, summary=summary, evaluations=evaluations)


def lengthened(measure: Measure, trials: Mapping[str, FinishedTrial], share: float) -> float | None:
    """The other end of what the measure may come to; None where half of the runs tells nothing.

    `share` is that of the paper's updates that was run, in (0, 1].
    """
    halves = {cell: beginning(trial, 1 / 2) for cell, trial in trials.items()}
    whole = measure(trials)
    if whole is None or any(half is None for half in halves.values()):
        return None
    half = measure({cell: half for cell, half in halves.items() if half is not None})
    return None if half is None else whole + math.log2(1 / share) * (whole - half)


def has_levelled(seeds: Iterable[Mapping[str, FinishedTrial]]) -> bool:
    """Whether the last doubling of the updates raised no cell's best value more than the one before.

    The means over `seeds` decide, of which each has the trials by cell.
    """
    rises: dict[str, list[tuple[float, float]]] = {}
    for trials in seeds:
        for cell, trial in trials.items():
            quarter, half = beginning(trial, 1 / 4), beginning(trial, 1 / 2)
            if quarter is None or half is None:
                return False
            first, second, third = (float(each.evaluations.values.max()) for each in (quarter, half, trial))
            rises.setdefault(cell, []).append((second - first, third - second))
    return all(sum(last for _, last in each) <= sum(before for before, _ in each) for each in rises.values())


def over_lengths(values: Sequence[float | None], lengthened: Sequence[float | None]) -> ConfidenceInterval | None:
    """What holds the mean over seeds at every length from the one that was run to the paper's; None if it is not known.

    Both are by seed. Between its two ends each value moves in a line, so that the interval over seeds is widest at one.
    """
    run, later = ([value for value in each if value is not None] for each in (values, lengthened))
    if not values or min(len(run), len(later)) < len(values):
        return None
    both = interval(run), interval(later)
    lows, highs = ([getattr(each, end) for each in both] for end in ("low", "high"))
    if None in lows:
        return None
    return ConfidenceInterval(mean=both[1].mean, low=min(lows), high=max(highs), seeds=len(values))
