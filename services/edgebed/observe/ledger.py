"""The books of a trial, closed: what became of all updates that workers, or steps that layer shards, have begun."""

from collections import Counter
from collections.abc import Sequence

import msgspec

PROBLEMS_MAX = 5
"""Problems that are told apart; the rest is counted."""
COUNTS = (
    "begun", "applied", "lost_in_flight", "lost_with_worker", "lost_with_server", "rolled_back", "unfinished",
    "unexplained",
)  # fmt: skip


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """The updates, or steps, of a worker's life, or of several together; `begun` is the sum of all others."""

    worker: str = ""
    incarnation: int = 0
    begun: int = 0
    """Those that the worker says it has begun to compute, those that the server has seen, and those assumed."""
    applied: int = 0
    """They are in the final model."""
    refused: dict[str, int] = {}
    """By code."""
    lost_in_flight: int = 0
    """Pushed, never received, and the worker joined anew."""
    lost_with_worker: int = 0
    """In progress, or on its way, when the worker died or was frozen for good."""
    lost_with_server: int = 0
    """Not in what the next server was restored to, or received by a server that died."""
    rolled_back: int = 0
    """Steps in a history that the server gave up: all shards went on from a backup before them."""
    unfinished: int = 0
    """In progress when the trial ended, or the journal broke off; steps also made, and too late for the final model."""
    unexplained: int = 0
    """Missing, and nothing in the journal says why."""

    @property
    def lost(self) -> int:
        """Lost in whatever way."""
        return self.lost_in_flight + self.lost_with_worker + self.lost_with_server + self.rolled_back


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """The books of a trial."""

    closes: bool
    """Whether everything is accounted for and all checks hold."""
    problems: tuple[str, ...] = ()
    """Why not."""
    total: Ledger
    lives: tuple[Ledger, ...]
    """By worker and incarnation."""


def closed(lives: Sequence[Ledger], problems: Counter[str]) -> Accounting:
    """The books with these entries, and what is wrong with them."""
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
