"""Messages between nodes in virtual time: what holds them, and where faults wait for them.

    send ---> uplink ---> the last byte has left ---> downlink ---> there
        during-push |   | after-push    during-pull |

The evaluator uses the management network, which knows neither links nor faults. A message is lost that has not quite
left a node which ends, that is on its way over a connection which dies, or that its receiver does not live to handle.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from edgebed.emulation.outage import Outage
from edgebed.emulation.passage import passage_of
from edgebed.roles import records
from edgebed.roles.events import AtPoint, Disconnected, Received, Send
from edgebed.runtimes import crossing, tracing
from edgebed.runtimes.agenda import Agenda
from edgebed.runtimes.simulated_connection import Arrival, Connection, Departure, Losses, Waiting, resume
from edgebed.runtimes.simulated_node import Life
from edgebed.runtimes.traffic import TrafficCount
from edgebed.scenario.plan import Injection, Plan, Point
from edgebed.wire import frames as codec
from edgebed.wire import messages

EVALUATOR = "evaluator"


class Network:
    """The links and connections of one trial. It calls no heart: what has arrived is on the agenda."""

    def __init__(
        self,
        plan: Plan,
        agenda: Agenda[Life],
        lives: Mapping[str, Life],
        journal: Callable[[str, records.Record], None],
    ) -> None:
        """`lives`: the present life of each node, kept by the caller."""
        self.agenda = agenda
        self.lives = lives
        self.journal = journal
        self.traces = plan.nodes[0].trace
        self.passages = {
            node.node: passage for node in plan.nodes if (passage := passage_of(node, "model", "line")) is not None
        }
        """What holds a node's messages; nothing where its link is as fast as the machine."""
        self.losses = Losses()
        pairs = plan.pairs()
        uses = Counter(name for pair in pairs for name in pair)
        hosts = {host for _, host in pairs}
        self.outages = {name: Outage() for name, count in uses.items() if count > 1 or name in hosts}
        """Of nodes whose links several connections may use."""
        self.connections = {
            pair: Connection(agenda, self.losses, None if pair[0] in self.outages else self.passages.get(pair[0]))
            for pair in pairs
        }
        """By who connects and whom it connects to."""
        self.used: dict[str, list[Connection]] = {name: [] for name in uses}
        """Those of each node."""
        for pair, connection in self.connections.items():
            for name in pair:
                self.used[name].append(connection)
        self.hosts = {node.node: node.hosts for node in plan.nodes if node.role != "evaluator"}
        self.traffic = {node.node: TrafficCount() for node in plan.nodes if node.counts_traffic}

    def start(self, life: Life, began_s: float) -> None:
        """A node hears that training began then: its link changes with time from there; it connects."""
        if passage := self.passages.get(life.name):
            passage.began(began_s)
        for host in self.hosts.get(life.name, ()):
            self.connections[life.name, host].make(life, self.lives.get(host))

    # --- a message's way ----------------------------------------------------------------------------------------

    def send(self, life: Life, effect: Send) -> None:
        """From node to node: the message leaves as its sender's link allows."""
        if EVALUATOR in (life.name, effect.to):
            self._tell(life, effect)
            return
        made = self.connections.get((life.name, effect.to))
        connection = made or self.connections[effect.to, life.name]
        target = connection.host if made else connection.client
        if connection.is_broken or target is None or life not in (connection.client, connection.host):
            self.losses.note(effect.message, "there was no connection")
        elif connection.outage.is_cut:
            connection.add(self.agenda.now, life, Waiting(effect, target, connection))
        else:
            self.leave(life, Waiting(effect, target, connection))

    def _tell(self, life: Life, effect: Send) -> None:
        """Over the management network, in no time."""
        target = self.lives.get(effect.to)
        if target is None:
            self.losses.note(effect.message, "nobody was there")
            return
        received = self._carry(life, effect, self.agenda.now)
        self._trace_received(target, received)
        self.agenda.add(self.agenda.now, target, received)

    def leave(self, life: Life, sent: Waiting) -> None:
        """The link is there: bytes begin to leave when it is their turn."""
        first_s = gone_s = self.agenda.now
        if passage := self.passages.get(life.name):
            first_s, gone_s = passage.leave(first_s, crossing.payload_bytes(sent.effect))
        departure = Departure(sent.effect, sent.target, sent.connection, first_s)
        if "during-push" in life.awaited:
            self._hold(life, "during-push", first_s, gone_s, departure)
        elif passage:
            sent.connection.add(gone_s, life, departure)
        else:
            self.left(life, departure)

    def left(self, life: Life, departure: Departure) -> None:
        """The last byte has left: the message is the real bytes, and arrives as its receiver's link allows."""
        first_s, due_s, target = departure.first_s, self.agenda.now, departure.target
        received = self._carry(life, departure.effect, first_s)
        if traffic := self.traffic.get(life.name):
            traffic.sent(received.message, received.bytes)
        if "after-push" in life.awaited:
            self.agenda.add(due_s, life, AtPoint("after-push"))
        begins_s = due_s
        if passage := self.passages.get(target.name):
            due_s, begins_s = passage.arrive(first_s, due_s, received.bytes), passage.begins_s(first_s)
        arrival = Arrival(received, departure.connection)
        if "during-pull" in target.awaited - target.on_hold.keys() and isinstance(received.message, messages.Model):
            self._hold(target, "during-pull", begins_s, due_s, arrival)
        else:
            departure.connection.add(due_s, target, arrival)

    def arrived(self, life: Life, arrival: Arrival) -> Received:
        """The message is there: counted and traced."""
        if traffic := self.traffic.get(life.name):
            traffic.received(arrival.event.peer, arrival.event.message, arrival.event.bytes)
        self._trace_received(life, arrival.event)
        return arrival.event

    def _carry(self, life: Life, effect: Send, first_s: float) -> Received:
        """The message as its receiver decodes it."""
        buffers = codec.encode(crossing.stamp(effect.message, first_s), effect.frames)
        size = codec.size_bytes(buffers)
        message, frames = codec.decode(buffers, "data")
        if self.traces:
            self.journal(life.name, tracing.sent(effect.to, message, size))
        return Received(life.name, message, frames, size)

    def _trace_received(self, life: Life, event: Received) -> None:
        if self.traces:
            self.journal(life.name, tracing.received(event.peer, event.message, event.bytes))

    # --- where faults wait --------------------------------------------------------------------------------------

    def _hold(self, worker: Life, point: Point, at_s: float, due_s: float, message: Departure | Arrival) -> None:
        """A fault waits for this message: it goes on when the worker does."""
        worker.on_hold[point] = due_s, message
        self.agenda.add(min(at_s, due_s), worker, AtPoint(point))

    def proceed(self, worker: Life) -> None:
        """The worker goes on, and with it what was held up."""
        for point in sorted(worker.told & worker.on_hold.keys()):
            due_s, message = worker.on_hold.pop(point)
            message.connection.add(due_s, worker, message)
        worker.told.clear()

    # --- faults of links, and ends of nodes ---------------------------------------------------------------------

    def cut(self, node: str) -> None:
        """From now on nothing passes its link."""
        if node in self.outages:
            self.outages[node].cut(self.agenda.now)
        for connection in self.used.get(node, ()):
            connection.cut(node)

    def heal(self, node: str) -> None:
        """Its link is as it was before the cut."""
        if node in self.outages:
            resume(self.outages[node], self.passages.get(node), self.agenda.now)
        for connection in self.used.get(node, ()):
            connection.heal(node)

    def change(self, injection: Injection) -> str:
        """A link's rates or latency are changed; why that is impossible, empty if it is not."""
        passage = self.passages.get(injection.node)
        if passage is None:
            return "its link was not limited when the trial began, and no fault of the scenario changes it"
        passage.inject(self.agenda.now, injection)
        return ""

    def end(self, life: Life) -> None:
        """A node has ended; whom it had connected to sees that, behind what had left before."""
        now = self.agenda.now
        for connection in self.used.get(life.name, ()):
            if life is connection.client and not connection.is_broken and not connection.outage.is_cut:
                assert connection.host is not None
                passage = self.passages.get(connection.host.name)
                due_s = passage.arrive(now, now, 0) if passage else now
                self.agenda.add(due_s, connection.host, Disconnected(life.name))
            if life in (connection.client, connection.host):
                connection.end(life)
        if life.name in self.passages:
            self.passages[life.name].clear(now)
