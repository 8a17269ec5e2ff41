"""What nodes told of themselves, beside what was seen of them from outside over the same time."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from edgebed.core import records
from edgebed.core.recorded.measured import first_of_each
from edgebed.journal.folds import Fold, on

ADDED = (
    "above_s", "differed", "frozen_s", "frozen_cpu_s", "frozen_looks", "frozen_running", "cut_s", "cut_bytes",
)  # fmt: skip
"""Fields of `Seen` that each controller counts from its start."""


class Watch(NamedTuple):
    """A node as one controller saw it, which counts over all of its incarnations."""

    last: records.Seen
    """The last line of this controller."""
    lasted_s: float
    """Seconds for which it looked at the node."""


class Sighting(NamedTuple):
    """A node in one of its incarnations, as it was seen."""

    last: records.Seen
    """The last line of it; of the last incarnation with what all controllers found of the node."""
    seen: records.Seen | None = None
    """The last line that covers the time of an account of the node's own."""
    reported: records.Usage | None = None
    """The node's own account of the time that `seen` covers."""
    watches: tuple[Watch, ...] = ()
    """The node as each controller of the trial saw it; only of the last incarnation."""


class Sightings(Fold):
    """Joins the controller's lines to those of nodes that they were made for: of the same node and time.

    A controller that goes on with a trial begins to count anew, so what those before it found is added.
    """

    def __init__(self) -> None:
        super().__init__()
        self.since_t = 0.0
        """When the present controller began to look."""
        self.watches: dict[str, dict[float, Watch]] = {}
        """Each node as the controllers saw it, by when each began to look."""
        self.found: dict[str, dict[int, Sighting]] = {}
        self._told: dict[str, records.Usage] = {}

    @on(records.Usage)
    def _usage(self, _: float, node: str, record: records.Usage) -> None:
        self._told[node] = record

    @on(records.Trial, records.Continued)
    def _began(self, t: float, _: str, __: records.Trial | records.Continued) -> None:
        self.since_t = t

    @on(records.Seen)
    def _seen(self, t: float, _: str, record: records.Seen) -> None:
        self.watches.setdefault(record.name, {})[self.since_t] = Watch(record, t - self.since_t)
        lives, told = self.found.setdefault(record.name, {}), self._told.get(record.name)
        if told is not None and told.time_s == record.time_s:
            lives[record.incarnation] = Sighting(record, record, told)
        else:
            before = lives.get(record.incarnation, Sighting(record))
            lives[record.incarnation] = before._replace(last=record)

    def by_node(self) -> dict[str, tuple[Sighting, ...]]:
        """A sighting for each incarnation of each node that was seen."""
        by_node = {}
        for node, found in self.found.items():
            *lives, last = found.values()
            watches = tuple(self.watches[node].values())
            by_node[node] = (*lives, last._replace(last=_together(watches), watches=watches))
        return by_node


def _together(watches: Sequence[Watch]) -> records.Seen:
    """The last line of a node, with what all controllers found of it."""
    lines = [watch.last for watch in watches]
    held = [line for line in lines if line.cpus_above is not None]
    lowest = min(held, key=lambda line: line.cpus_above or 0.0) if held else lines[-1]
    return msgspec.structs.replace(
        lines[-1],
        above=lowest.above,
        cpus_above=lowest.cpus_above,
        differences=tuple(first_of_each(text for line in lines for text in line.differences).values()),
        **{name: sum(getattr(line, name) for line in lines) for name in ADDED},
    )
