"""Messages between nodes in virtual time: what delays them, and where faults wait for them.

    send ---> latency ---> first byte … last byte, through both links at once ---> latency ---> there
              during-push |          | after-push                     during-pull |

The evaluator uses the management network, which has neither links nor faults. A message is lost if it has not quite
left a node which ends, is on its way over a connection which dies, or reaches a receiver that ends before handling it.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping

from edgebed.core import records
from edgebed.core.plan import TrainingPlan
from edgebed.core.planned.fault import Injection, Point
from edgebed.emulation.model.flows import Flow
from edgebed.emulation.model.link_model import link_model_of
from edgebed.emulation.outage import Outage
from edgebed.roles.events import AtPoint, Disconnected, MessageReceived, Send
from edgebed.runtimes import timestamps, tracing
from edgebed.runtimes.simulation.agenda import Agenda
from edgebed.runtimes.simulation.simulated_connection import (
    Arrival,
    LostMessages,
    Passed,
    PendingSend,
    SimulatedConnection,
    resume,
)
from edgebed.runtimes.simulation.simulated_lanes import Departure, SimulatedLanes, Turn
from edgebed.runtimes.simulation.simulated_node import SimulatedIncarnation
from edgebed.runtimes.traffic import TrafficCount
from edgebed.wire import frames as codec
from edgebed.wire import messages

EVALUATOR = "evaluator"


class SimulatedNetwork:
    """The links and connections of one trial. It calls no heart: events of arrival are on the agenda."""

    def __init__(
        self,
        plan: TrainingPlan,
        agenda: Agenda[SimulatedIncarnation],
        incarnations: Mapping[str, SimulatedIncarnation],
        journal: Callable[[str, records.Record], None],
    ) -> None:
        """`incarnations`: the present incarnation of each node, updated by the caller."""
        self.agenda = agenda
        self.incarnations = incarnations
        self.journal = journal
        self.traces = plan.nodes[0].trace
        self.passages = {
            node.node: passage for node in plan.nodes if (passage := link_model_of(node, "model", "line")) is not None
        }
        """Link models that delay nodes' messages; none where a link is as fast as the machine."""
        self.lanes = SimulatedLanes(agenda)
        self.losses = LostMessages()
        pairs = plan.pairs()
        uses = Counter(name for pair in pairs for name in pair)
        hosts = {host for _, host in pairs}
        self.outages = {name: Outage() for name, count in uses.items() if count > 1 or name in hosts}
        """Outages of nodes whose links several connections may use."""
        self.connections = {
            pair: SimulatedConnection(
                self.lanes,
                self.losses,
                (self.passages.get(pair[0]), self.passages.get(pair[1])),
                None if pair[0] in self.outages else self.passages.get(pair[0]),
            )
            for pair in pairs
        }
        """Connections by client and host."""
        self.used: dict[str, list[SimulatedConnection]] = {name: [] for name in uses}
        """Connections of each node."""
        for pair, connection in self.connections.items():
            for name in pair:
                self.used[name].append(connection)
        self.connects_to = {node.node: node.connects_to for node in plan.nodes if node.role != "evaluator"}
        self.traffic = {node.node: TrafficCount() for node in plan.nodes if node.counts_traffic}

    def start(self, incarnation: SimulatedIncarnation, began_s: float) -> None:
        """Start a node: its link changes with time from `began_s`; it connects."""
        if passage := self.passages.get(incarnation.name):
            passage.began(began_s)
            self.lanes.change(passage.lanes)
        for name in self.connects_to.get(incarnation.name, ()):
            self.connections[incarnation.name, name].make(incarnation, self._there(name))

    def _there(self, name: str) -> SimulatedIncarnation | None:
        """The node of that name, unless it is not there, or still starts."""
        incarnation = self.incarnations.get(name)
        return incarnation if incarnation and incarnation.heart else None

    # --- a message's way ----------------------------------------------------------------------------------------

    def send(self, incarnation: SimulatedIncarnation, effect: Send) -> None:
        """Send a message from node to node: it leaves as its sender's link allows."""
        if EVALUATOR in (incarnation.name, effect.to):
            self._tell(incarnation, effect)
            return
        made = self.connections.get((incarnation.name, effect.to))
        connection = made or self.connections[effect.to, incarnation.name]
        target = connection.host if made else connection.client
        if connection.is_broken or target is None or incarnation not in (connection.client, connection.host):
            self.losses.note(effect.message, "there was no connection")
        elif connection.outage.is_cut:
            connection.add(self.agenda.now, incarnation, PendingSend(effect, target, connection))
        else:
            self.leave(incarnation, PendingSend(effect, target, connection))

    def _tell(self, incarnation: SimulatedIncarnation, effect: Send) -> None:
        """Send a message over the management network, which takes no time."""
        target = self._there(effect.to)
        if target is None:
            self.losses.note(effect.message, "nobody was there")
            return
        received = self._carry(incarnation, effect, self.agenda.now)
        self._trace_received(target, received)
        self.agenda.add(self.agenda.now, target, received)

    def leave(self, incarnation: SimulatedIncarnation, sent: PendingSend) -> None:
        """Let a message begin to leave: it reaches the links after its sender's latency."""
        departure = Departure(sent.effect, incarnation, sent.target, sent.connection)
        passage = self.passages.get(incarnation.name)
        if passage and passage.delays:
            sent.connection.add(passage.leaves_s(self.agenda.now), incarnation, departure)
        else:
            self.enter(departure)

    def enter(self, departure: Departure) -> None:
        """Let a message pass the links, behind those that its connection has there."""
        connection = departure.connection
        course = connection.there if departure.target is connection.host else connection.back
        if not course.lanes and not course.back:
            self._begun(departure)
            self._passed(departure, self.agenda.now)
            return
        flow = course.add(timestamps.payload_bytes(departure.effect), departure)
        if flow is course.flows[0]:
            self._begin(flow)

    def _begin(self, first: Flow[Departure]) -> None:
        """Let a message pass, and all behind it that are through at once."""
        flow: Flow[Departure] | None = first
        while flow:
            is_through = self.lanes.begin(flow)
            self._begun(flow.subject)
            flow = self._pass(flow) if is_through else None

    def turn(self, turn: Turn) -> None:
        """Handle what has passed the links by now; what waited behind it begins."""
        for flow in self.lanes.over(turn):
            if behind := self._pass(flow):
                self._begin(behind)

    def _pass(self, flow: Flow[Departure]) -> Flow[Departure] | None:
        """Handle that a message has passed the links; return the one behind it."""
        waiting = flow.course.flows
        waiting.popleft()
        self._passed(flow.subject, flow.first_s)
        return waiting[0] if waiting else None

    def _begun(self, departure: Departure) -> None:
        """Handle that a message's first byte leaves: faults may wait for it, at either end."""
        sender, target = departure.sender, departure.target
        if "during-push" in sender.awaited:
            self._hold(sender, "during-push", self.agenda.now, departure)
        if "during-pull" in target.awaited - target.on_hold.keys() and isinstance(
            departure.effect.message, messages.Model
        ):
            passage = self.passages.get(target.name)
            begins_s = passage.begins_s(self.agenda.now) if passage else self.agenda.now
            self._hold(target, "during-pull", begins_s, departure)

    def _passed(self, departure: Departure, first_s: float) -> None:
        """Handle that a message's last byte has passed the links."""
        sender = departure.sender
        if sender.holds("during-push", departure):
            sender.on_hold["during-push"] = self.agenda.now, Passed(departure, first_s, departure.connection)
        else:
            self.left(departure, first_s)

    def left(self, departure: Departure, first_s: float) -> None:
        """Handle that a message's last byte has left: it arrives after its receiver's latency, in real bytes."""
        sender, target, due_s = departure.sender, departure.target, self.agenda.now
        received = self._carry(sender, departure.effect, first_s)
        if traffic := self.traffic.get(sender.name):
            traffic.sent(received.message, received.bytes)
        if "after-push" in sender.awaited:
            self.agenda.add(due_s, sender, AtPoint("after-push"))
        if passage := self.passages.get(target.name):
            due_s = passage.arrives_s(due_s)
        arrival = Arrival(received, departure.connection)
        if target.holds("during-pull", departure):
            target.on_hold["during-pull"] = due_s, arrival
        else:
            departure.connection.add(due_s, target, arrival)

    def arrived(self, incarnation: SimulatedIncarnation, arrival: Arrival) -> MessageReceived:
        """Count and trace a message that has arrived."""
        if traffic := self.traffic.get(incarnation.name):
            traffic.received(arrival.event.peer, arrival.event.message, arrival.event.bytes)
        self._trace_received(incarnation, arrival.event)
        return arrival.event

    def _carry(self, incarnation: SimulatedIncarnation, effect: Send, first_s: float) -> MessageReceived:
        """The message as its receiver decodes it."""
        buffers = codec.encode(timestamps.stamp(effect.message, first_s), effect.frames)
        size = codec.size_bytes(buffers)
        message, frames = codec.decode(buffers, "data")
        if self.traces:
            self.journal(incarnation.name, tracing.sent(effect.to, message, size))
        return MessageReceived(incarnation.name, message, frames, size)

    def _trace_received(self, incarnation: SimulatedIncarnation, event: MessageReceived) -> None:
        if self.traces:
            self.journal(incarnation.name, tracing.received(event.peer, event.message, event.bytes))

    def report(self, incarnation: SimulatedIncarnation) -> None:
        """Journal a node's traffic, if the node counts it."""
        traffic = self.traffic.get(incarnation.name)
        if traffic and incarnation.plan:
            for record in traffic.account(by_kind=incarnation.plan.counts_messages):
                self.journal(incarnation.name, record)

    # --- where faults wait --------------------------------------------------------------------------------------

    def _hold(self, worker: SimulatedIncarnation, point: Point, at_s: float, departure: Departure) -> None:
        """Hold a message that a fault waits for: it passes the links, and then waits until the worker continues."""
        worker.on_hold[point] = math.inf, departure
        self.agenda.add(at_s, worker, AtPoint(point))

    def proceed(self, worker: SimulatedIncarnation) -> None:
        """Let a worker continue, and with it the messages that were held."""
        for point in sorted(worker.told & worker.on_hold.keys()):
            due_s, message = worker.on_hold.pop(point)
            if not isinstance(message, Departure):  # that one has not passed the links yet
                message.connection.add(due_s, worker, message)
        worker.told.clear()

    # --- faults of links, and ends of nodes ---------------------------------------------------------------------

    def cut(self, node: str, peer: str = "") -> None:
        """Let nothing pass a node's link from now on, or nothing between two nodes."""
        if node in self.outages and not peer:
            self.outages[node].cut(self.agenda.now, stalls=False)
        for connection in self._between(node, peer):
            connection.cut(node, peer)

    def heal(self, node: str, peer: str = "") -> None:
        """Undo the cut of a node's link, or that between two nodes."""
        if node in self.outages and not peer:
            resume(self.outages[node], self.passages.get(node), self.agenda.now)
        for connection in self._between(node, peer):
            connection.heal(node, peer)

    def _between(self, node: str, peer: str) -> list[SimulatedConnection]:
        """Return a node's connections, of which one is with `peer`, if that is given."""
        if not peer:
            return self.used.get(node, [])
        return [self.connections[pair] for pair in ((node, peer), (peer, node)) if pair in self.connections]

    def change(self, injection: Injection) -> str:
        """Change a link's rates or latency, or the rate between two; return why that is impossible, empty if done."""
        if injection.peer:
            for connection in self._between(injection.node, injection.peer):
                connection.narrow(injection.change.uplink_bit_s if injection.change else None)
            return ""
        passage = self.passages.get(injection.node)
        if passage is None:
            return "its link was not limited when the trial began, and no fault of the scenario changes it"
        passage.inject(self.agenda.now, injection)
        self.lanes.change(passage.lanes)
        return ""

    def end(self, incarnation: SimulatedIncarnation) -> None:
        """Handle a node's end: nodes that it had connected to see that, behind what had left before."""
        now = self.agenda.now
        for connection in self.used.get(incarnation.name, ()):
            if incarnation is connection.client and not connection.is_broken and not connection.cut_links:
                assert connection.host is not None
                passage = self.passages.get(connection.host.name)
                due_s = passage.arrives_s(now) if passage else now
                self.agenda.add(due_s, connection.host, Disconnected(incarnation.name))
            if incarnation in (connection.client, connection.host):
                connection.end(incarnation)
        if incarnation.name in self.passages:
            self.passages[incarnation.name].clear(now)
