"""Keep a flood of bad messages out of the journal: the first of each second are told apart, the others only counted."""

from dataclasses import dataclass, field

import msgspec

from edgebed.roles.records import Dropped, Refused

TOLD_APART = 10
"""Records a second of one kind."""


@dataclass
class FloodGate:
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
        """A second is over: what was held back, as one record of each kind with its count and its last reason."""
        held = list(self.held.values())
        self.told, self.held = {}, {}
        return held
