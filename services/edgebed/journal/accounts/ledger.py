"""The accounting of a trial: what became of all updates that workers, or steps that layer shards, have begun."""

from collections import Counter
from collections.abc import Sequence

import msgspec

PROBLEMS_MAX = 5
"""Number of problems that are listed; the others are counted."""
COUNTS = (
    "begun", "applied", "lost_in_flight", "lost_with_worker", "lost_with_server", "rolled_back", "unfinished",
    "unexplained",
)  # fmt: skip


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """Updates, or steps, of one incarnation of a worker, or of several; `begun` is the sum of all other counts."""

    worker: str = ""
    incarnation: int = 0
    begun: int = 0
    """Updates that the worker reported as begun, that the server has seen, or that are assumed."""
    applied: int = 0
    """Updates that are in the final model."""
    refused: dict[str, int] = {}
    """Updates that the server refused, by code."""
    lost_in_flight: int = 0
    """Updates pushed and never received, whose worker joined anew."""
    lost_with_worker: int = 0
    """Updates in progress, or on their way, when the worker died or was frozen for good."""
    lost_with_server: int = 0
    """Updates not in what the next server was restored to, or received by a server that died."""
    rolled_back: int = 0
    """Steps in a history that the server gave up: all shards resumed from a backup before them."""
    unfinished: int = 0
    """Updates in progress when the trial ended, or the journal broke off; steps also made, and too late for the final
    model."""
    unexplained: int = 0
    """Updates that are missing, and nothing in the journal says why."""

    @property
    def lost(self) -> int:
        """Updates lost in whatever way."""
        return self.lost_in_flight + self.lost_with_worker + self.lost_with_server + self.rolled_back


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """The accounting of a trial."""

    closes: bool
    """Whether everything is accounted for and all checks hold."""
    problems: tuple[str, ...] = ()
    """Why the accounting does not close."""
    total: Ledger
    lives: tuple[Ledger, ...] = ()
    """A ledger for each worker and incarnation."""


def closed(lives: Sequence[Ledger], problems: Counter[str]) -> Accounting:
    """The accounting with these ledgers and problems."""
    found = [text if count == 1 else f"{text} ({count:,} times)" for text, count in problems.items()]
    more = len(found) - PROBLEMS_MAX
    rest = (f"and {more} more",) if more > 0 else ()
    return Accounting(
        closes=not found, problems=(*found[:PROBLEMS_MAX], *rest), total=_total(lives), lives=tuple(lives)
    )


def _total(lives: Sequence[Ledger]) -> Ledger:
    refused: Counter[str] = Counter()
    for life in lives:
        refused.update(life.refused)
    sums = {name: sum(getattr(life, name) for life in lives) for name in COUNTS}
    return Ledger(**sums, refused=dict(sorted(refused.items())))
