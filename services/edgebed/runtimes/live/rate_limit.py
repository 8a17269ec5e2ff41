"""Rate limit for records of bad messages: the first of each second are journaled, the others only counted."""

from dataclasses import dataclass, field

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
