"""`flap`: a link is cut and healed again and again, as that of a device at the edge of its network's range."""

from collections.abc import Iterator
from itertools import count
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from edgebed.core import units
from edgebed.core.planned.fault import FaultStep
from edgebed.scenario.faults.settings.between import BetweenTwo, OneOrTwo
from edgebed.scenario.faults.settings.entry import NO_LINK, step
from edgebed.scenario.faults.settings.triggers import Triggered
from edgebed.scenario.section import Duration

SHORTEST_S = 0.25
"""Shortest time between changes: what one may take where the kernel holds the link; faster ones would not be what was
asked."""


def _long_enough(duration_s: float) -> float:
    if duration_s < SHORTEST_S:
        shortest = units.format_duration(SHORTEST_S)
        raise ValueError(f"{units.format_duration(duration_s)} is below {shortest}, which a change may take itself")
    return duration_s


class Flap(BetweenTwo, Triggered):
    """A link is cut and healed again and again; it begins with a cut, and in the end the link carries."""

    kind: ClassVar[str] = "flap"
    example: ClassVar[str] = "{ flap: edge-0, at: 30s, for: 20s, up: 3s, down: 1s }"
    not_for = MappingProxyType({"evaluator": NO_LINK})

    flap: OneOrTwo
    """Node(s) whose link flaps; or `{ between: [home-1, home-2] }`, as in `cut`."""
    duration: Duration = Field(alias="for")
    """How long the link flaps."""
    down: Annotated[Duration, AfterValidator(_long_enough)] = 1.0
    """How long the link is cut each time."""
    up: Annotated[Duration, AfterValidator(_long_enough)] = 1.0
    """How long the link carries in between."""

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return the steps: the link is cut and healed by turns; a last cut ends with the whole."""
        return tuple(self._turns(node))

    def _turns(self, node: str) -> Iterator[FaultStep]:
        for k in count():
            cut_s = round(k * (self.down + self.up), 6)
            if cut_s >= self.duration:
                return
            yield step(cut_s, node, "cut")
            yield step(min(round(cut_s + self.down, 6), self.duration), node, "heal")
