"""The connection between two nodes in virtual time: it stalls while the link of either is cut.

Messages on their way then come later, or are lost: emulation/outage.py says which, and when TCP tries again. Where
something else ends the connection, a node's death or a host that is elsewhere now, all that has not quite left is lost,
too.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from edgebed.core.planned.fault import Point
from edgebed.emulation.model.flows import Course
from edgebed.emulation.model.lane import Lane, lane_between
from edgebed.emulation.model.link_model import LinkModel
from edgebed.emulation.outage import Outage
from edgebed.roles.events import AtPoint, MessageReceived, Send
from edgebed.runtimes import tracing
from edgebed.runtimes.simulation.simulated_lanes import Departure, SimulatedLanes
from edgebed.runtimes.simulation.simulated_node import SimulatedIncarnation
from edgebed.wire import messages

THE_TRIAL_ENDED = "the trial ended"


class Passed(msgspec.Struct, frozen=True, gc=False):
    """A message whose last byte has passed the links, while a fault has it wait to have left."""

    departure: Departure
    first_s: float
    """When the message's first byte left."""
    connection: "SimulatedConnection"


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A message whose last byte has left its sender, until its receiver handles it."""

    event: MessageReceived
    connection: "SimulatedConnection"


class PendingSend(msgspec.Struct, frozen=True, gc=False):
    """A message that is sent as soon as the link is healed."""

    effect: Send
    target: SimulatedIncarnation
    connection: "SimulatedConnection"


OnItsWay = Departure | Passed | Arrival | PendingSend


class LostMessages:
    """Messages that were lost. No node in the trial knows all of them."""

    def __init__(self) -> None:
        self.pushes: dict[tuple[str, int, int], str] = {}
        """Why each lost push was lost, by worker, incarnation and step."""
        self.others: Counter[str] = Counter()
        """Number of other lost messages by kind."""
        self.has_ended = False
        """Whether the nodes have been told to stop: what is on its way from then on is lost for no other reason."""

    def note(self, message: messages.AnyMessage, why: str) -> None:
        """Note that a message was lost, and why."""
        if isinstance(message, messages.Push):
            known = message.sender, message.incarnation, message.step
            self.pushes[known] = THE_TRIAL_ENDED if self.has_ended else why
        else:
            self.others[tracing.kind_of(message)] += 1


class Renewed(msgspec.Struct, frozen=True, gc=False):
    """The event that the client makes a new connection in place of one that died."""

    connection: "SimulatedConnection"


class Retried(msgspec.Struct, frozen=True, gc=False):
    """The event that TCP tries again on a link that is healed."""

    connection: "SimulatedConnection"


class SimulatedConnection:
    """A connection between a client and its host; the next incarnation of either uses the same object."""

    def __init__(
        self,
        lanes: SimulatedLanes,
        losses: LostMessages,
        ends: tuple[LinkModel | None, LinkModel | None],
        passage: LinkModel | None,
    ) -> None:
        """`ends`: what holds the links of client and host. `passage`: the client's, if no other connection uses it."""
        self.agenda = lanes.agenda
        self.lanes = lanes
        self.losses = losses
        self.passage = passage
        (up, down), (host_up, host_down) = (
            ((end.uplink,), (end.downlink,)) if end and end.limits else ((), ()) for end in ends
        )
        self.ways: tuple[tuple[Lane, ...], tuple[Lane, ...]] = (*up, *host_down), (*host_up, *down)
        """Lanes to the host, and to the client, of the links of both."""
        self.there: Course[Departure] = Course(*self.ways)
        self.back: Course[Departure] = Course(*reversed(self.ways))
        """What passes the links to the host, and to the client."""
        self.client: SimulatedIncarnation | None = None
        self.host: SimulatedIncarnation | None = None
        self.cut_links: set[tuple[str, str]] = set()
        """The ends of the connection whose links are cut, as (node, ""); (node, other) where it is the way between."""
        self.outage = Outage()
        self.is_broken = True
        """Whether there is no connection at present."""
        self.standing: list[tuple[float, SimulatedIncarnation, OnItsWay]] = []
        """While the connection is cut, all that is on its way: (seconds left, owner, event)."""

    def make(self, client: SimulatedIncarnation, host: SimulatedIncarnation | None) -> None:
        """Connect the client with this host; nothing of a previous connection remains."""
        self.lose("the server was elsewhere")
        self._forget_tries()
        if not self.cut_links:
            self.outage.end(self.agenda.now)
        self.client, self.host = client, host
        self.is_broken = host is None or host.ended

    def renew(self) -> bool:
        """Replace a connection that died; return whether there is one: after the host's end there is none."""
        self.is_broken = self.host is None or self.host.ended
        return not self.is_broken

    def add(self, at_s: float, incarnation: SimulatedIncarnation, message: OnItsWay) -> None:
        """Add an event of a message on its way, at that time, or as much later as the connection stalls."""
        if self.outage.is_cut:
            self.outage.stall(self.agenda.now)
            self.standing.append((max(0.0, at_s - self.agenda.now), incarnation, message))
        else:
            self.agenda.add(at_s, incarnation, message)

    def cut(self, node: str, peer: str = "") -> None:
        """Let nothing pass that node's link from now on, or nothing between the two."""
        self.cut_links.add((node, peer))
        self._forget_tries()
        if self.outage.is_cut:
            return
        self.standing = self.agenda.take(self)
        self.lanes.stop(self.there)
        self.lanes.stop(self.back)
        self.outage.cut(self.agenda.now, stalls=bool(self.standing or self.there.flows or self.back.flows))

    def narrow(self, rate_bit_s: int | None) -> None:
        """Let no more than a rate pass in each direction, from now on, or as much as the links of both let through."""
        there, back = ((lane_between(rate_bit_s), *way) if rate_bit_s or not way else way for way in self.ways)
        for course, lanes in ((self.there, (there, back)), (self.back, (back, there))):
            if not self.outage.is_cut:
                self.lanes.stop(course)
            course.reroute(*lanes)
            if not self.outage.is_cut:
                self.lanes.resume(course)

    def _forget_tries(self) -> None:
        """Let nothing be tried again by a connection that is another one, or cut again."""
        self.agenda.take(self, lambda _, event: isinstance(event, Renewed | Retried))

    def heal(self, node: str, peer: str = "") -> None:
        """Undo the cut of that node's link, or that between the two."""
        self.cut_links.discard((node, peer))
        if self.cut_links or not self.outage.is_cut:
            return
        now, client = self.agenda.now, self.client
        goes_on_s, renewed_s = self.outage.goes_on_s(now), self.outage.renewed_s(now)
        if goes_on_s == math.inf:
            self.is_broken = True
            self.lose("its connection died")
            self.outage.end(now)
        elif self.is_broken or client is None or goes_on_s <= now:
            self.go_on()
        else:
            self.agenda.add(goes_on_s, client, Retried(self))
        if self.is_broken and client:
            self.agenda.add(renewed_s, client, Renewed(self))

    def go_on(self) -> None:
        """Let pass again what waits, as much later as nothing passed; nothing where nothing waits."""
        if not self.outage.is_cut:
            return
        resume(self.outage, self.passage, self.agenda.now)
        for left_s, incarnation, message in self.standing:
            self.agenda.add(self.agenda.now + left_s, incarnation, message)
        self.standing = []
        self.lanes.resume(self.there)
        self.lanes.resume(self.back)

    def end(self, ended: SimulatedIncarnation) -> None:
        """Break the connection, as one of its ends is gone."""
        self.is_broken = True
        self.lose("a node ended", ended)
        if not self.cut_links:
            self.go_on()

    def lose(self, why: str, ended: SimulatedIncarnation | None = None) -> None:
        """Lose all that is on its way; with `ended`, what has quite left that end still arrives."""

        def is_lost(incarnation: SimulatedIncarnation, message: OnItsWay) -> bool:
            return ended is None or not isinstance(message, Arrival) or incarnation is ended

        lost = self.agenda.take(
            self, lambda incarnation, event: isinstance(event, OnItsWay) and is_lost(incarnation, event)
        )
        lost += [entry for entry in self.standing if is_lost(entry[1], entry[2])]
        self.standing = [entry for entry in self.standing if not is_lost(entry[1], entry[2])]
        if client := self.client:
            lost += [(0.0, client, message) for message in self._given_up(client, is_lost)]
        for _, _, message in lost:
            self.losses.note(message_of(message), why)
        for course in (self.there, self.back):
            for departure in self.lanes.clear(course):
                self.losses.note(departure.effect.message, why)
        if self.passage:
            self.passage.clear(self.agenda.now)

    def _given_up(
        self, client: SimulatedIncarnation, is_lost: Callable[[SimulatedIncarnation, OnItsWay], bool]
    ) -> Iterator[OnItsWay]:
        """Give up what faults hold of what is lost; yield what no course has."""
        for point in [point for point, (_, message) in client.on_hold.items() if is_lost(client, message)]:
            _, message = client.on_hold.pop(point)
            if isinstance(message, Departure):  # the point may be still to come
                self.agenda.take(client, functools.partial(_tells_of, point))
            else:
                yield message


def _tells_of(point: Point, _owner: SimulatedIncarnation, event: Any) -> bool:
    return isinstance(event, AtPoint) and event.point == point


def message_of(on_its_way: OnItsWay) -> messages.AnyMessage:
    """The message of an event on its way."""
    if isinstance(on_its_way, Arrival):
        return on_its_way.event.message
    return (on_its_way.departure if isinstance(on_its_way, Passed) else on_its_way).effect.message


def resume(outage: Outage, passage: LinkModel | None, now: float) -> None:
    """Let messages pass a link again: what was in its delay line at the cut is as much later."""
    since_s, later_s = outage.since_s, outage.end(now)
    if passage and since_s is not None:
        passage.stand_still(since_s, later_s)
