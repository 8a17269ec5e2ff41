"""Rule of the verdict about the controller: it was there while nodes trained.

Without it nobody does faults, restarts nodes, or hears what they measure. Nodes in containers go on for up to a minute
after their controller has died, since the server learns from the data network alone; its log brings what they made.
"""

from collections.abc import Iterator

from edgebed.core.quantities import count_text, seconds_text
from edgebed.journal.verdict.findings import Finding, Observed, Rule

UNOBSERVED_MIN_S = 2.0
"""Seconds that count: twice what a controller has not heard yet of nodes that end with it."""


def unobserved(trial: Observed) -> Iterator[Finding]:
    """Training went on while there was no controller."""
    if trial.alone_s > UNOBSERVED_MIN_S:
        made = f"{trial.alone_updates:,} of {count_text(trial.updates, 'update')}"
        yield Finding(
            f"unobserved: {made}, in {seconds_text(trial.alone_s)}, were made without a controller: it had died, and "
            "nodes went on; what was asked of them in that time was not watched"
        )


CONTROLLER_RULES: tuple[Rule, ...] = (unobserved,)
