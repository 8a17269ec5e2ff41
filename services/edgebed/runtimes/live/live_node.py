"""The live shell: hosts one heart in real time, with real sockets and real computation.

    data socket ----> |                 | ----> data socket
    management  ----> | heart.handle()  | ----> management (reports of records, every fifth of a second)
    clock, work ----> |                 | ----> clock, work

The shell decides nothing. It serves every runtime whose nodes are processes of their own, in containers or not.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
import zmq

from edgebed.core import records
from edgebed.core.plan import LINK_ACTIONS, Injection, NodePlan
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.resources import InterfaceBytes
from edgebed.emulation.tcp import IncomingCount
from edgebed.metrics.discovery import Visits
from edgebed.metrics.exporter import NodeMetrics
from edgebed.roles.events import (
    AtPoint,
    Await,
    Compute,
    Computed,
    Connected,
    Disconnected,
    Effect,
    EndNode,
    Event,
    Expose,
    Heart,
    Journal,
    MessageReceived,
    Observe,
    Send,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.roles.work import GradientResult, JobRunner
from edgebed.runtimes import timestamps, tracing
from edgebed.runtimes.live import awaiting
from edgebed.runtimes.live.awaiting import Awaiting
from edgebed.runtimes.live.data_endpoints import patience_s
from edgebed.runtimes.live.data_ends import DataEnds
from edgebed.runtimes.live.endpoint import DealerEndpoint, RouterEndpoint
from edgebed.runtimes.live.filling import NO_CAP
from edgebed.runtimes.live.group_commit import GroupCommit
from edgebed.runtimes.live.meters import TransfersMeter
from edgebed.runtimes.live.paced_link import PacedLink
from edgebed.runtimes.live.rate_limit import RateLimiter
from edgebed.runtimes.live.timers import Timers, sharpen_sleep
from edgebed.runtimes.server_log import ServerLog
from edgebed.runtimes.timestamps import Leaving
from edgebed.runtimes.traffic import OBSERVE_S, TrafficCount
from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.errors import RemoteWireError

REPORT_S = 0.2
REPORT_RECORDS_MAX = 4096  # a header stays far below what a socket takes
CONTROLLER_LOST_S = 15.0  # without a connection to the controller a node ends by itself


@dataclass
class Times:
    """How a worker spent its time, in seconds since it started."""

    steps: int = 0
    compute_s: float = 0.0
    encode_s: float = 0.0
    wait_s: float = 0.0
    pause_s: float = 0.0
    absorbed_s: float = 0.0
    """Seconds of waiting for a core without effect on pacing: the node would have rested for as long."""
    computed_at_s: float = 0.0
    busy_until_s: float = 0.0
    """When the last job was done: while one is, messages that come are not seen."""
    sent_at_s: float = 0.0

    def record(self) -> records.Phases:
        """The times as a record of the journal."""
        return records.Phases(
            steps=self.steps,
            compute_s=round(self.compute_s, 6),
            encode_s=round(self.encode_s, 6),
            wait_s=round(self.wait_s, 6),
            pause_s=round(self.pause_s, 6),
        )


class Meter(Protocol):
    """Measures something once a second."""

    def read(self, now: float, began_s: float | None) -> Iterable[records.Record]:
        """Records to be journaled; `now` in seconds of the trial, `began_s` when training began, None before that."""
        ...

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note a fault of the node's link, so long after training began."""
        ...


@dataclass
class LiveNode:
    """A node's shell. `run` returns when the heart or the controller says stop."""

    plan: NodePlan
    heart: Heart
    work: JobRunner | None
    management: DealerEndpoint
    data: DataEnds
    metrics: NodeMetrics
    epoch_ns: int
    link: PacedLink
    watch: RouterEndpoint | None = None
    """Server: the endpoint for the evaluator, on the management network; not counted as traffic."""
    pace_of: Callable[[NodePlan], float] = lambda _: 1.0
    """Share of the machine's speed that a node of that plan may use; its work is stretched by the inverse."""
    fill_memory: Callable[[], str] = lambda: NO_CAP
    """Fills memory until the process is killed; if that is impossible, returns why."""
    interface: InterfaceBytes | None = None
    """Server: the counters of the interface that carries the data network."""
    incoming: IncomingCount | None = None
    """Server: counters of what its data connections received."""
    events: deque[Event] = field(default_factory=deque)
    timers: Timers[Event] = field(default_factory=Timers)
    unreported: list[tuple[float, records.AnyRecord]] = field(default_factory=list)
    urgent: bool = False
    num_reported: int = 0
    flood: RateLimiter = field(default_factory=RateLimiter)
    times: Times = field(default_factory=Times)
    traffic: TrafficCount = field(default_factory=TrafficCount)
    observed: dict[type, records.Record] = field(default_factory=dict)
    """What the heart said last when it was looked at, by kind."""
    watchers: set[str] = field(default_factory=set)
    """Peers that connected over `watch`."""
    visits: Visits | None = None
    """Visits of Prometheus to this node's metrics."""
    meters: list[Meter] = field(default_factory=list)
    transfers: TransfersMeter | None = None
    """Measures each message that came; None where no link is asked for."""
    courses: dict[str, EffectiveLink] = field(default_factory=dict)
    """Timelines of a worker's link and its server's: how long the server may be silent follows from them."""
    patience_s: float = 0.0
    """Seconds for which the server may be silent, as computed at the last look."""
    began_s: float | None = None
    """When training began, in seconds of the trial; None before that."""
    stopped: str | None = None
    log: ServerLog | None = None
    """Server: its log."""
    linger_s: float = 0.0
    """Seconds for which Prometheus is waited for at the end, at most."""

    def __post_init__(self) -> None:
        self.planned = self.plan
        """The original plan; `plan` itself is what is asked for now: faults change it."""
        self.pace = self.pace_of(self.plan)
        self.awaiting = Awaiting(self.data.dealers["server"]) if self.plan.points else None
        self.commits: GroupCommit | None = None
        if self.log:
            self.unreported += self.log.begin_report()
            if self.plan.durability == "fsync":
                self.commits = GroupCommit(self.log)
                self.commits.start()
            if self.log.problem:
                self._note(records.Note(text=f"the server keeps no log: {self.log.problem}"))

    def now(self) -> float:
        """Seconds since the trial's launch."""
        return (time.monotonic_ns() - self.epoch_ns) * 1e-9

    def run(self) -> str:
        """Host the heart until it is told to stop; return the reason."""
        if self.link.passage:
            sharpen_sleep()
        poller = self._poller()
        next_report_s = next_observe_s = 0.0
        while self.stopped is None:
            for socket in self.data.sockets:
                poller.register(socket, 0 if self.link.is_closed else zmq.POLLIN)
            now = self.now()
            if now >= next_observe_s:
                if self.management.lost_for_s(now) > CONTROLLER_LOST_S:
                    return "the controller is gone"
                self._observe()
                next_observe_s = now + OBSERVE_S
            if self.unreported and (self.urgent or now >= next_report_s):
                self.report()
                next_report_s = now + REPORT_S
            due_s = min(next_observe_s, next_report_s) if self.unreported else next_observe_s
            self._drain(self._wait(poller, max(0.0, min(due_s, self._next_s(now)) - now)))
        if self.commits:
            self.commits.commit()
            self._release()
        self._observe()
        self.report()
        self._linger()
        return self.stopped

    def _poller(self) -> zmq.Poller:
        """All that something comes from but the data sockets, which a cut closes."""
        poller = zmq.Poller()
        for source in (self.management.socket, *self.data.monitors):
            poller.register(source, zmq.POLLIN)
        if self.watch:
            poller.register(self.watch.socket, zmq.POLLIN)
        if self.commits:
            poller.register(self.commits, zmq.POLLIN)
        return poller

    def _next_s(self, now: float) -> float:
        """When something is due next."""
        look_s = now + awaiting.POLL_S if self.awaiting and self.awaiting.points else math.inf
        return min(self.timers.next_s, self.link.next_s, look_s)

    def _linger(self) -> None:
        """Wait until Prometheus has read the last values, the controller says stop once more, or it is gone.

        A node that has not trained has no such values, and may have heard of the end too late to be waited for.
        """
        if not self.visits or not self.linger_s or self.began_s is None:
            return
        self.visits.expect_scrape()
        poller = zmq.Poller()
        poller.register(self.visits, zmq.POLLIN)
        poller.register(self.management.socket, zmq.POLLIN)
        until_s = self.now() + self.linger_s
        while (now := self.now()) < until_s and not self.management.lost_for_s(now):
            self.management.flush()
            ready = dict(poller.poll(math.ceil(1000 * min(OBSERVE_S, until_s - now))))
            told = [event.message for event in self.management.receive()]
            if self.visits.fileno() in ready or any(isinstance(message, messages.Stop) for message in told):
                return

    def _wait(self, poller: zmq.Poller, timeout_s: float) -> list[tuple[Any, int]]:
        """Wait for a message, for room for one that waits to leave, or for the next time at which something is due."""
        waiting = [end for end in (self.management, *self.data.dealers.values()) if end.outbox]
        for endpoint in waiting:
            poller.register(endpoint.socket, zmq.POLLIN | zmq.POLLOUT)
        is_timed = self._next_s(0.0) < math.inf
        if is_timed and timeout_s < 0.001:
            time.sleep(timeout_s)  # ZeroMQ waits for whole milliseconds, and a short pause is to be short
            timeout_s = 0.0
        ready = poller.poll(int(timeout_s * 1000) if is_timed else math.ceil(timeout_s * 1000))
        for endpoint in waiting:
            endpoint.flush()
            poller.register(endpoint.socket, zmq.POLLIN)
        return ready

    def _drain(self, ready: list[tuple[Any, int]]) -> None:
        """Handle what has come: management first, so that a busy server still hears the controller."""
        sockets = [socket for socket, _ in ready]
        if self.management.socket in sockets:
            self.hear()
        if self.watch and self.watch.socket in sockets:
            for event in self.watch.receive():
                self.watchers.add(event.peer)
                self._trace_received(event)
                self._handle(event)
        if not set(sockets).isdisjoint((*self.data.sockets, *self.data.monitors)):
            self._receive()
        if self.commits:
            self._release()
        self._pass_time()

    def _release(self) -> None:
        for effect in self.commits.released() if self.commits else ():
            self._carry_out(effect)

    def hear(self) -> None:
        """Handle messages of the controller."""
        for event in self.management.receive():
            self._handle_management(event)

    def _receive(self) -> None:
        waiting = [] if self.link.is_closed else list(self.data.receive())
        if self.plan.role == "server" and waiting:
            self.metrics.queue_length(len(waiting))
        for event in waiting:
            if self.link.arrive(event, self.now()):
                self._take_in(event)
        self._look_at_connections()

    def _pass_time(self) -> None:
        """Handle what is due, of whatever kind."""
        for passed in self.link.due(self.now):
            if isinstance(passed, Leaving):
                if self.transfers:
                    self.transfers.left(self.now(), passed)
                self._hand_over(passed.effect, passed.first_s)
            else:
                self._take_in(passed.event)
        looked_s = self.now()  # what becomes due meanwhile waits until the sockets have been looked at, too
        for due in self.timers.due(lambda: looked_s):
            self._handle(due)
        for point in self.awaiting.reached(self.now()) if self.awaiting else ():
            self._handle(AtPoint(point))

    def _handle_management(self, event: MessageReceived) -> None:
        message = event.message
        if isinstance(message, messages.Stop):
            self.stopped, self.linger_s = message.reason, message.linger_s
        elif isinstance(message, messages.Refuse):
            self.stopped = f"refused by the controller ({message.code}): {message.reason}"
        elif isinstance(message, messages.Inject):
            self.inject(message.injection)
        elif isinstance(message, messages.Journaled):
            if self.log:
                self.log.has_told(message.durable)
        else:
            if isinstance(message, messages.Start):
                self._start(message)
            self._handle(event)

    def _start(self, start: messages.Start) -> None:
        """Start for the first time, or again because a node is elsewhere now: what was on its way to it is lost."""
        if self.began_s is None:
            self.began_s = start.began_s
            self.link.began(start.began_s)
        if self.data.move(dict(start.addresses)):
            self.link.lose(self.now())

    def inject(self, injection: Injection) -> None:
        """Apply a fault: do the part of it that is the node's own, and note what is asked for from now on."""
        now = self.now()
        is_own = injection.node == self.plan.node
        if injection.action in LINK_ACTIONS:
            time_s = -math.inf if self.began_s is None else now - self.began_s
            for meter in self.meters:
                meter.inject(time_s, injection)
            if injection.node in self.courses:
                self.courses[injection.node].inject(time_s, injection)
            if is_own and self.link.inject(injection, now):
                self._end_connections()
        elif is_own and injection.action == "cpus":
            cpus = self.planned.cpus if injection.cpus is None else injection.cpus
            self.plan = msgspec.structs.replace(self.plan, cpus=cpus)
            self.pace = self.pace_of(self.plan)
        elif is_own and injection.action == "memory":
            self.report()
            self._journal(records.Note(text=self.fill_memory()))

    # --- connections --------------------------------------------------------------------------------------------

    def _look_at_connections(self) -> None:
        """Find connections that have broken, and that are back; what came over one is handled before its end."""
        for peer in self.data.broken():
            self._handle(Disconnected(peer))
        self._look_at_connection()
        if self.data.take_back():
            self._handle(Connected())

    def _look_at_connection(self) -> None:
        if self.data.look():
            self.link.lose(self.now())

    def _end_connections(self) -> None:
        """End connections that are dead after a long cut: what was on its way in either direction is lost."""
        self.data.end()

    def _end_if_dead(self) -> None:
        if self.data.dealers:
            time_s = -math.inf if self.began_s is None else self.now() - self.began_s
            asked_s = patience_s(*(effective.at(time_s) for effective in self.courses.values()))
            self.patience_s = max(asked_s, self.patience_s - OBSERVE_S)  # messages sent more slowly may still be coming
            self.data.end_if_dead(self.patience_s)

    def _handle(self, event: Event) -> None:
        self.events.append(event)
        while self.events and self.stopped is None:
            for effect in self.heart.handle(self.events.popleft(), self.now()):
                if not (self.commits and self.commits.hold(effect)):
                    self._carry_out(effect)
            if self.log:
                self.log.turn()

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._send(effect)
        elif isinstance(effect, Journal):
            self._journal(effect.record)
        elif isinstance(effect, Compute):
            self._compute(effect)
        elif isinstance(effect, Wake):
            self.timers.add(effect.at_s, Woken(effect.token))
        elif isinstance(effect, Await) and self.awaiting:
            self.awaiting.await_(effect.point)
        elif isinstance(effect, EndNode):
            self.stopped = effect.reason
        elif self.log:
            self.log.take(effect)

    # --- messages -----------------------------------------------------------------------------------------------

    def _send(self, effect: Send) -> None:
        if effect.to == "controller":
            self.report()
            self.management.send(effect.message, effect.frames)
            return
        if isinstance(effect.message, messages.Backup):
            self.report()  # records behind it are reported first
        now = self.now()
        if isinstance(effect.message, messages.Push):
            self.times.pause_s += now - self.times.computed_at_s
        self.times.sent_at_s = now
        if self.watch and effect.to in self.watchers:
            sent_bytes = self.watch.send(effect.to, timestamps.stamp(effect.message, now), effect.frames)
            self._trace_sent(effect, sent_bytes)
            return
        self._look_at_connection()  # a request made only now is not lost with a broken connection
        self.data.ask(effect.to)
        if self.awaiting:
            self.awaiting.ask()
        if self.link.leave(effect, now):
            self._hand_over(effect, now)
        elif self.awaiting:
            self.awaiting.leaving(*self.link.leaving_s)

    def _hand_over(self, effect: Send, first_s: float) -> None:
        """Give a message to the data network: nothing delays it any more."""
        message = timestamps.stamp(effect.message, first_s)
        if self.awaiting:
            self.awaiting.handed_over(codec.encode(message, effect.frames))
        sent_bytes = self.data.send(effect.to, message, effect.frames)
        self.traffic.sent(message, sent_bytes)
        if self.transfers and self.plan.counts_messages and self.plan.role != "server" and not self.link.passage:
            self.transfers.sent(first_s, self.data.target(effect.to), sent_bytes)
        self.metrics.count_bytes("egress", tracing.kind_of(message), sent_bytes)
        self._trace_sent(effect, sent_bytes)

    def _trace_sent(self, effect: Send, sent_bytes: int) -> None:
        if self.plan.trace and sent_bytes:
            self._journal(tracing.sent(effect.to, effect.message, sent_bytes))

    def _take_in(self, event: MessageReceived) -> None:
        """Handle a message that has arrived."""
        self.data.answered(event.peer)
        self._received(event)
        try:
            self._handle(event)
        except RemoteWireError as error:
            self.complain(f"from {event.peer!r}: {error}")

    def _received(self, event: MessageReceived) -> None:
        self.traffic.received(self.data.source(event), event.message, event.bytes)
        if self.transfers:
            source = self.data.source(event)
            self.transfers.received(self.now(), event.message, event.bytes, source, self.times.busy_until_s)
        self.metrics.count_bytes("ingress", tracing.kind_of(event.message), event.bytes)
        if isinstance(event.message, messages.Model):
            self.times.wait_s += self.now() - self.times.sent_at_s
        self._trace_received(event)

    def _trace_received(self, event: MessageReceived) -> None:
        if self.plan.trace:
            self._journal(tracing.received(event.message.sender, event.message, event.bytes))

    def complain(self, reason: str, network: str = "data") -> None:
        """Journal that a message was dropped."""
        self._journal(records.Dropped(socket=network, reason=reason))

    # --- work ---------------------------------------------------------------------------------------------------

    def _compute(self, effect: Compute) -> None:
        assert self.work is not None
        started_s, started_cpu_s = time.perf_counter(), time.thread_time()
        result = self.work.run(effect.job)
        took_s, cpu_s = time.perf_counter() - started_s, time.thread_time() - started_cpu_s
        now = self.times.busy_until_s = self.now()
        if isinstance(result, GradientResult):
            self.times.steps += 1
            self.times.compute_s += result.compute_s
            self.times.encode_s += result.encode_s
            self.times.computed_at_s = now
        # waiting for a core is no work: only what was computed is stretched, and the wait counts as part of the stretch
        stretch_s = max(0.0, cpu_s / self.pace - took_s) if self.pace < 1.0 else 0.0
        self.times.absorbed_s += max(0.0, min(took_s, cpu_s / self.pace) - cpu_s)
        delay_s = stretch_s + effect.pause_s
        if delay_s > 0.0 or self.plan.shard:  # a shard that never waits would never look at its sockets
            self.timers.add(now + delay_s, Computed(result))
        else:
            self.events.append(Computed(result))

    # --- records ------------------------------------------------------------------------------------------------

    def _journal(self, record: records.Record) -> None:
        if isinstance(record, (records.Dropped, records.Refused)) and not self.flood.admit(record):
            return
        self._note(record)

    def _note(self, record: records.Record) -> None:
        self.metrics.observe(record)
        t = round(self.now(), 6)
        self.unreported.append((t, record))  # type: ignore[arg-type]
        if self.log:
            self.log.note(t, record)
        self.urgent = self.urgent or isinstance(record, (records.Evaluated, records.Finished))

    def report(self) -> None:
        """Send the controller what is there to be journaled."""
        self.urgent = False
        while self.unreported:
            part, self.unreported = self.unreported[:REPORT_RECORDS_MAX], self.unreported[REPORT_RECORDS_MAX:]
            durable = self.log.number(part) if self.log else None
            report = messages.Report(
                sender=self.plan.node, first=self.num_reported, records=tuple(part), durable=durable
            )
            self.num_reported += len(part)
            self.management.send(report, ())

    def _observe(self) -> None:
        """Journal what has to be polled: time spent, bytes that crossed the interface, messages that were delayed."""
        for held in self.flood.release():
            self._note(held)
        for meter in self.meters:
            for record in meter.read(self.now(), self.began_s):
                self._journal(record)
        if self.plan.counts_traffic:
            by_kind = self.plan.counts_messages
            for record in self.traffic.account(self.interface, self.incoming, by_kind=by_kind):
                self._journal(record)
        if self.plan.role == "worker" and self.times.steps:
            self._journal(self.times.record())
        for effect in self.heart.handle(Observe(), self.now()):
            if isinstance(effect, Expose):
                self.metrics.shard_queues(effect.queues)
            elif isinstance(effect, Journal) and self.observed.get(type(effect.record)) != effect.record:
                self.observed[type(effect.record)] = effect.record
                self._journal(effect.record)
        self._end_if_dead()
