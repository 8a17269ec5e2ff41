"""The rule of the verdict about staleness: a fleet of k workers without faults has a mean of k - 1, at any speeds.

Where each push is applied and answered at once, every update but a worker's own lies between two of its pushes, and
makes the later one staler by one: so each update counts k - 1 times. What came after a worker's last push has not been
counted yet, and is added. The beginning makes up the difference that is allowed: who began late missed some.

A push that was refused as not finite is answered, too, and counts. One that was refused as that of a worker that had
been given up does not: so where a part of the fleet does not take part, the mean is too low.
"""

from collections.abc import Iterator

from edgebed.core.plan import ServerPlan
from edgebed.journal.verdict.findings import Finding, Observed, Rule

PUSHES_MIN = 20
"""Pushes of each worker from which on the law is looked at."""
DIFFERENCE_MAX = 0.1
"""Share by which the mean may differ."""


def staleness(trial: Observed) -> Iterator[Finding]:
    """A mean staleness that no fleet without faults has."""
    server = trial.server.plan
    aggregation = server.method.parts.get("aggregation") if isinstance(server, ServerPlan) else None
    if aggregation is None or aggregation.name != "asynchronous" or _is_disturbed(trial):
        return
    names = [node.name for node in trial.workers]
    seen = [trial.pushes[name] for name in names if name in trial.pushes]
    if len(names) < 2 or len(seen) < len(names) or min(each.count for each in seen) < PUSHES_MIN:
        return
    updates, expected = sum(each.applied for each in seen), len(names) - 1
    last = max(each.version for each in seen)
    mean = sum(each.stale + last - each.version for each in seen) / updates
    if abs(mean - expected) <= DIFFERENCE_MAX * expected:
        return
    worst = max(names, key=lambda name: trial.pushes[name].refused.total() / trial.pushes[name].count)
    pushes = trial.pushes[worst]
    refused = (
        f"; of {pushes.count:,} pushes of {worst} {pushes.refused.total():,} were refused" if pushes.refused else ""
    )
    codes = f" ({', '.join(sorted(pushes.refused))})" if pushes.refused else ""
    yield Finding(
        f"staleness: its mean is {mean:.2f}, and that of {len(names)} workers without faults is {expected}{refused}"
        f"{codes}; see the logs (edgebed logs)"
    )


def _is_disturbed(trial: Observed) -> bool:
    """Whether a fault was asked for, somebody died, or the server began anew."""
    return bool(trial.plan.faults or trial.faults or trial.lost or trial.was_restored)


STALENESS_RULES: tuple[Rule, ...] = (staleness,)
