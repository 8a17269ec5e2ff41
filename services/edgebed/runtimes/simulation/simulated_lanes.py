"""What passes limited links in virtual time: the agenda has the next time at which something is over.

Rates are computed once for all that begins and ends at a time: at a turn that comes after what happens then.
"""

import math
from typing import TYPE_CHECKING

import msgspec

from edgebed.emulation.model.flows import Course, Flow, Flows
from edgebed.emulation.model.lane import Lane
from edgebed.roles.events import Send
from edgebed.runtimes.simulation.agenda import Agenda
from edgebed.runtimes.simulation.simulated_node import SimulatedIncarnation

if TYPE_CHECKING:
    from edgebed.runtimes.simulation.simulated_connection import SimulatedConnection


class Departure(msgspec.Struct, frozen=True, gc=False):
    """A message that is sent, until its last byte has left."""

    effect: Send
    sender: SimulatedIncarnation
    target: SimulatedIncarnation
    connection: "SimulatedConnection"


class Turn(msgspec.Struct, frozen=True, gc=False):
    """The event that something on the links may be over, or that rates are to be computed anew."""

    at_s: float


class SimulatedLanes:
    """The limited links of one trial, with all that passes them."""

    def __init__(self, agenda: Agenda[SimulatedIncarnation]) -> None:
        self.agenda = agenda
        self.flows: Flows[Departure] = Flows()
        self.owner = SimulatedIncarnation("links")
        """Owner of turns; none of the nodes."""
        self.due_s = math.inf
        """When the next turn is; others that are on the agenda come to nothing."""

    def begin(self, flow: Flow[Departure]) -> bool:
        """Let a message begin to pass; return whether it is through at once."""
        if self.flows.begin(flow, self.agenda.now):
            return True
        self._turn(self.agenda.now)
        return False

    def stop(self, course: Course[Departure]) -> None:
        """Let nothing pass a course for a while."""
        if course.flows:
            self.flows.leave(course.flows[0], self.agenda.now)
            self._turn(self.agenda.now)

    def resume(self, course: Course[Departure]) -> None:
        """Let pass again what a course has."""
        if course.flows:
            self.flows.join(course.flows[0], self.agenda.now)
            self._turn(self.agenda.now)

    def clear(self, course: Course[Departure]) -> list[Departure]:
        """Take what has not passed out of a course, and return it in order."""
        self.stop(course)
        lost = [flow.subject for flow in course.flows]
        course.flows.clear()
        return lost

    def change(self, lanes: tuple[Lane, ...]) -> None:
        """Note that a link is another one from now on."""
        self.flows.change(lanes)
        if self.flows.loose:
            self._turn(self.agenda.now)

    def over(self, turn: Turn) -> list[Flow[Departure]]:
        """Return what has passed by this turn; where nothing has, rates are as they are to be from now on."""
        if turn.at_s != self.due_s:
            return []
        self.due_s = math.inf
        passed = self.flows.over(self.agenda.now)
        if passed:
            self._turn(self.agenda.now)
        else:
            self.flows.settle(self.agenda.now)
            self._turn(self.flows.next_s)
        return passed

    def _turn(self, at_s: float) -> None:
        if at_s < self.due_s:
            self.due_s = at_s
            self.agenda.add(at_s, self.owner, Turn(at_s))
