"""A whole run in numbers, as its `summary.json` has them."""

import msgspec

from edgebed.journal.program_summary import ProgramSummary
from edgebed.journal.summary import TrialSummary


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run, as in `summary.json`."""

    scenario: str
    question: str
    runtime: str
    seed: int
    exit_code: int
    result: str = ""
    """The outcome: met, not met, completed (nothing was expected), diverged, accounting does not close, interrupted, no
    result, or running."""
    conditions: str = ""
    """The verdict on the trial whose conditions fared worst: degraded, unknown, modelled or trusted; empty where no
    trial has trained. Of a run in progress, the verdict until now."""
    causes: tuple[str, ...] = ()
    """Why conditions are degraded, e.g. host CPU."""
    badge: str = ""
    """Result and conditions on one line; for a run in progress `running`, with the conditions until now if any."""
    text: str = ""
    """The result in a sentence or two."""
    trials: tuple[TrialSummary, ...]
    programs: tuple[ProgramSummary, ...] = ()
    """The trials whose nodes run programs of the user's; then there are no others."""
    not_begun: tuple[str, ...] = ()
    """Trials that were planned and did not begin."""
    notes: tuple[str, ...] = ()
    """What the controller wants a reader to know, e.g. that caps are not held."""
