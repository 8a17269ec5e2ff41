"""Pushes that the server saw of each worker, applied and refused, and the updates that passed between them; pure."""

from collections import Counter

import msgspec

from edgebed.core import records
from edgebed.journal.accounts.update_accounts import ANSWERED
from edgebed.journal.folds import Fold, on

AFTER_THE_END = "finished"
"""Code of the refusal of a push that came when no more updates were applied."""


class WorkerPushes(msgspec.Struct):
    """Pushes of one worker, in all its incarnations."""

    applied: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    """Number of pushes that the server refused, by code; of those that came after the last update none."""
    version: int = 0
    """Version of the model after the last of these pushes."""
    stale: int = 0
    """Staleness of all pushes that were applied, or refused as not finite, together."""

    @property
    def count(self) -> int:
        """Number of pushes, applied or not."""
        return self.applied + self.refused.total()


class SeenPushes(Fold):
    """Collects them in the order in which the server saw them."""

    def __init__(self) -> None:
        super().__init__()
        self.of_workers: dict[str, WorkerPushes] = {}
        self.version = 0
        """Version of the model now."""

    @on(records.Update)
    def _update(self, _: float, __: str, record: records.Update) -> None:
        pushes = self.of_workers.setdefault(record.worker, WorkerPushes())
        pushes.applied += 1
        pushes.stale += record.staleness
        pushes.version = self.version = record.version

    @on(records.Refused)
    def _refused(self, _: float, __: str, record: records.Refused) -> None:
        if record.step < 0 or not record.worker or record.code == AFTER_THE_END:
            return
        pushes = self.of_workers.setdefault(record.worker, WorkerPushes())
        pushes.refused[record.code] += 1
        if record.code in ANSWERED:
            pushes.stale += self.version - pushes.version
        pushes.version = self.version

    @on(records.Restored)
    def _restored(self, _: float, __: str, record: records.Restored) -> None:
        self.version = record.version
