"""Evaluations that were due and were not made. Computed from the plan and the series; pure.

A version is due to be measured where it is the first at or beyond a multiple of the interval: a round goes by several
updates at once, and there is no model between. One is skipped where the evaluator was so long away, or so much slower
than training, that the server had no more room for the models that waited (roles/server/due_models.py), or where these
were lost with a server that has no log.
"""

import numpy as np

from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import count_text, first_text, seconds_text
from edgebed.journal.series import Series

NAMED_MAX = 6
"""Versions that are named."""
WHY = "the evaluator was away, or did not keep up, or the server lost what waited for it"


def skipped_versions(plan: TrainingPlan, series: Series) -> tuple[int, ...]:
    """Versions up to the last measured one that were due, and were not measured; none where times are due."""
    every, updates, measured = plan.evaluator.evaluate_every_updates, series.updates, series.evaluations.version
    if every is None or not len(updates) or not len(measured):
        return ()
    models = np.unique(np.append(updates.base + updates.staleness, updates.version[-1]))  # before each, after the last
    due = models[np.diff(models // every, prepend=-1) > 0]
    return tuple(int(version) for version in np.setdiff1d(due[due <= measured.max()], measured))


def skipped_times(plan: TrainingPlan, series: Series) -> int:
    """How many evaluations at times were not made, by their number; 0 where versions are due, or workers measure."""
    every_s = plan.evaluator.evaluate_every_s
    if every_s is None or any(worker.by_client for worker in plan.workers()):
        return 0
    return max(0, int(series.trained_s / every_s) - len(series.evaluations))


def skipped_text(plan: TrainingPlan, series: Series) -> str:
    """How many evaluations were skipped, and which; empty if none was."""
    versions, times = skipped_versions(plan, series), skipped_times(plan, series)
    if times:
        return f"{times:,} of the evaluations every {seconds_text(plan.evaluator.evaluate_every_s)} skipped: {WHY}"
    if not versions:
        return ""
    named = first_text([f"{version:,}" for version in versions], NAMED_MAX)
    of = "update" if len(versions) == 1 else "updates"
    return f"{count_text(len(versions), 'evaluation')} skipped, of {of} {named}: {WHY}"
