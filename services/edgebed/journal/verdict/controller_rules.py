"""Rules of the verdict about the controller: it was there while nodes trained, and a resume lost nothing of that.

Without it nobody does faults, restarts nodes, or hears what they measure. Nodes in containers go on for up to a minute
after their controller has died, since the server learns from the data network alone; its log brings what they made.
Where there is no log, as in a simulation, a resume goes on from the last checkpoint, and what came after it is lost.
"""

from collections.abc import Iterator

from edgebed.core.quantities import count_text, seconds_text
from edgebed.journal.verdict.findings import Finding, Observed, Rule

REMADE_MAX = 0.02
"""Share of the updates that a resume may lose: beyond it times and bytes are others than without it."""
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


def remade(trial: Observed) -> Iterator[Finding]:
    """A resume lost updates that were made again: times and bytes have both, and faults are not done again."""
    if trial.remade_updates:
        yield Finding(
            f"resumed: {count_text(trial.remade_updates, 'update')}, made since the last checkpoint, were lost at a "
            "resume and made again: times and bytes have them twice, faults were done once; run it anew for figures",
            is_fault=trial.remade_updates > REMADE_MAX * trial.updates,
        )


CONTROLLER_RULES: tuple[Rule, ...] = (unobserved,)
