"""What nodes told of themselves, beside what was seen of them from outside over the same time."""

from typing import NamedTuple

from edgebed.core import records
from edgebed.journal.folds import Fold, on


class Sighting(NamedTuple):
    """A node in one of its incarnations, as it was seen."""

    last: records.Seen
    """The last line of it."""
    seen: records.Seen | None = None
    """The last line that covers the time of an account of the node's own."""
    told: records.Usage | None = None
    """The node's own account of the time that `seen` covers."""


class Sightings(Fold):
    """Joins the controller's lines to those of nodes that they were made for: of the same node and time."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, dict[int, Sighting]] = {}
        self._told: dict[str, records.Usage] = {}

    @on(records.Usage)
    def _usage(self, _: float, node: str, record: records.Usage) -> None:
        self._told[node] = record

    @on(records.Seen)
    def _seen(self, _: float, __: str, record: records.Seen) -> None:
        lives, told = self.found.setdefault(record.name, {}), self._told.get(record.name)
        if told is not None and told.time_s == record.time_s:
            lives[record.incarnation] = Sighting(record, record, told)
        else:
            before = lives.get(record.incarnation, Sighting(record))
            lives[record.incarnation] = before._replace(last=record)

    def by_node(self) -> dict[str, tuple[Sighting, ...]]:
        """A sighting for each incarnation of each node that was seen."""
        return {node: tuple(lives.values()) for node, lives in self.found.items()}
