"""A rule of the verdict about evaluations: what was due to be measured, and was not.

Watching is no condition of the experiment, so that nothing is degraded by it; but curves and targets lack what is not
measured.
"""

from collections.abc import Iterator

from edgebed.journal.verdict.findings import Finding, Observed, Rule


def skipped(trial: Observed) -> Iterator[Finding]:
    """Evaluations that were skipped."""
    if trial.skipped:
        yield Finding(f"evaluations: {trial.skipped}", is_fault=False)


EVALUATION_RULES: tuple[Rule, ...] = (skipped,)
