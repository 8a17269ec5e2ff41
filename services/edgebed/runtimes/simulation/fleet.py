"""The nodes that exist now in virtual time, and their heartbeats."""

from edgebed.roles.events import HealthChecked, Heart
from edgebed.runtimes.simulation.agenda import Agenda
from edgebed.runtimes.simulation.simulated_node import SimulatedIncarnation


class Fleet(dict[str, SimulatedIncarnation]):
    """The present incarnation of each node that exists, by name."""

    def __init__(self, agenda: Agenda[SimulatedIncarnation]) -> None:
        super().__init__()
        self.agenda = agenda
        self.alive: frozenset[str] | None = None
        """Nodes that send heartbeats at present; None: to be determined again."""
        self.last_signs: set[str] = set()
        """Nodes that have sent their last heartbeat since the last check."""

    def equip(self, incarnation: SimulatedIncarnation, heart: Heart) -> None:
        """Give a node its heart; from here on it sends heartbeats."""
        incarnation.heart = heart
        self.alive = None

    def end(self, incarnation: SimulatedIncarnation) -> None:
        """Remove a node that has ended."""
        incarnation.ended = True
        self.alive = None
        del self[incarnation.name]

    def freeze(self, incarnation: SimulatedIncarnation) -> None:
        """Freeze a node: its heartbeats stop."""
        self.alive = None
        if not incarnation.is_frozen and incarnation.heart:
            self.last_signs.add(incarnation.name)
        incarnation.freeze(self.agenda)

    def thaw(self, incarnation: SimulatedIncarnation) -> None:
        """Thaw a node: its heartbeats come again."""
        self.alive = None
        incarnation.thaw(self.agenda)

    def check(self) -> HealthChecked:
        """The nodes whose heartbeats have come since the last check."""
        if self.alive is None:
            self.alive = frozenset(name for name, node in self.items() if node.heart and not node.is_frozen)
        if not self.last_signs:
            return HealthChecked(self.alive)
        last_signs, self.last_signs = self.last_signs, set()
        return HealthChecked(self.alive | last_signs)
