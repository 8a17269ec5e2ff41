"""How the time of a shard, or of the node that has all gradient modules, divides: into work of each kind, and waiting.

A heart does one thing at a time and hears of every change, so its own events tell all of it, in virtual time as in real
time. Nothing counts before its first history begins, nor after its last step.
"""

from typing import Literal

import msgspec

from edgebed.core.records import ShardPhases
from edgebed.roles.layerwise.shard_work import (
    ForwardJob,
    HostTeachJob,
    LearnJob,
    PredictJob,
    RestoreJob,
    ShardJob,
    StateJob,
    TeachInputsJob,
    TeachJob,
)

Phase = Literal["forward", "learn", "teach", "copy", "inputs", "answers"]
OF_JOB: dict[type[ShardJob], Phase] = {
    ForwardJob: "forward",
    LearnJob: "learn",
    TeachJob: "teach",
    TeachInputsJob: "teach",
    PredictJob: "forward",
    HostTeachJob: "teach",
    StateJob: "copy",
    RestoreJob: "copy",
}


class PhaseClock:
    """Sums of the time in each phase; times are seconds of the trial."""

    def __init__(self) -> None:
        self.spent = ShardPhases()
        self.phase: Phase | None = None
        """Phase since the last turn; None: nothing that counts."""
        self.since_s = 0.0

    def turn(self, now: float, phase: Phase | None) -> None:
        """Begin this phase now."""
        self.spent = self.until(now)
        self.phase, self.since_s = phase, now

    def until(self, now: float) -> ShardPhases:
        """Return all time until now."""
        if self.phase is None:
            return self.spent
        name = f"{self.phase}_s"
        return msgspec.structs.replace(self.spent, **{name: getattr(self.spent, name) + max(0.0, now - self.since_s)})
