"""What nodes may have the controller write: a budget for each, and a rate limit for records of bad messages."""

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from edgebed.core.records import Dropped, Refused

TOLD_APART = 10
"""Records of one kind that are journaled in a second."""


@dataclass
class RateLimiter:
    """Lets a node's `Dropped` and `Refused` records through, or holds them back as a count."""

    told: dict[type, int] = field(default_factory=dict)
    held: dict[type, Dropped | Refused] = field(default_factory=dict)

    def admit(self, record: Dropped | Refused) -> bool:
        """Whether the record is to be journaled by itself, as every refused push of a known worker is."""
        if isinstance(record, Refused) and record.worker:
            return True
        kind = type(record)
        self.told[kind] = self.told.get(kind, 0) + 1
        if self.told[kind] <= TOLD_APART:
            return True
        before = self.held.get(kind)
        count = record.count + (before.count if before else 0)
        self.held[kind] = msgspec.structs.replace(record, count=count)
        return False

    def release(self) -> list[Dropped | Refused]:
        """The records held back in the last second, as one of each kind with its count and its last reason."""
        held = list(self.held.values())
        self.told, self.held = {}, {}
        return held


class Allowance(NamedTuple):
    """What a node may report in a second, and twenty times at once."""

    records: int
    bytes: int


ALLOWANCES = {"server": Allowance(50_000, 5_000_000)}
"""By role: a server reports every update."""
ALLOWANCE = Allowance(5_000, 500_000)
"""What any other node may report: several times what the fastest does that were seen."""
SAVED_S = 20.0
"""For how long what a node does not report can be saved up: it was frozen, or the controller was busy."""


@dataclass
class Budget:
    """What each node may still report, by its name."""

    left: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """When it was counted last, in seconds, and what was left then: seconds' worth of records, and of bytes."""

    @staticmethod
    def most(role: str, now: float) -> int:
        """The number of records that a node may have reported until `now`, in seconds since the launch."""
        return int(ALLOWANCES.get(role, ALLOWANCE).records * (SAVED_S + now))

    def spend(self, node: str, role: str, records: int, size: int, now: float) -> bool:
        """Whether a report of so many records and bytes is within the node's budget; then it is taken from it."""
        allowance = ALLOWANCES.get(role, ALLOWANCE)
        then, records_s, bytes_s = self.left.get(node, (now, SAVED_S, SAVED_S))
        records_s = min(SAVED_S, records_s + now - then) - records / allowance.records
        bytes_s = min(SAVED_S, bytes_s + now - then) - size / allowance.bytes
        if records_s < 0.0 or bytes_s < 0.0:
            return False
        self.left[node] = now, records_s, bytes_s
        return True
