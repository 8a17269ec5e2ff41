"""Messages that are judged together: those of one way, or of several ways of a class that had few each. Pure.

Of a handful of messages little is known. Where workers push once or twice each, those of several are a handful.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import msgspec

from edgebed.journal.verdict.findings import Judged
from edgebed.journal.verdict.measured import SUMS, DirectionConditions

MESSAGES_MIN = 5
"""Number of messages below which little is known about a link."""

Member = tuple[Judged, DirectionConditions]
"""A node and its link in one direction."""


class Lot:
    """Messages of the ways of one class, in one direction; `MESSAGES_MIN` at least."""

    def __init__(self, members: Iterable[Member]) -> None:
        self.members = tuple(members)

    @property
    def nodes(self) -> list[Judged]:
        """The nodes whose links these are."""
        return [node for node, _ in self.members]

    @cached_property
    def way(self) -> DirectionConditions:
        """All together."""
        first, *others = [way for _, way in self.members]
        if not others:
            return first
        sums = {name: sum(getattr(way, name) for _, way in self.members) for name in SUMS}
        return msgspec.structs.replace(first, **sums)

    def sum(self, of: Callable[[Judged, DirectionConditions], float]) -> float:
        """The sum of what is known of each way."""
        return sum(of(node, way) for node, way in self.members)


def lots(
    nodes: Iterable[Judged], direction: str, is_judged: Callable[[Judged, DirectionConditions], bool] = lambda *_: True
) -> Iterator[Lot]:
    """Yield all messages of nodes of a class in one direction that are to be judged, if they are enough.

    A way with many messages is a lot by itself; of the others, as many as are needed are one.
    """
    ways = [(node, way) for node in nodes for way in node.ways(direction) if way.messages and is_judged(node, way)]
    left = sum(way.messages for _, way in ways)
    lot, count = list[Member](), 0
    for node, way in sorted(ways, key=lambda member: -member[1].messages):
        lot.append((node, way))
        count, left = count + way.messages, left - way.messages
        if count >= MESSAGES_MIN and (left >= MESSAGES_MIN or not left):
            yield Lot(lot)
            lot, count = [], 0
