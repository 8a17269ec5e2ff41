"""A trial as it was planned: what runs of training and runs of programs have alike."""

from dataclasses import dataclass

from edgebed.core.plan import Plan


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedTrial:
    """A plan, and what there is to be said of it before anything starts."""

    plan: Plan
    warnings: tuple[str, ...] = ()
    """What the scenario asks for and options have made impossible (contradictions.py)."""
