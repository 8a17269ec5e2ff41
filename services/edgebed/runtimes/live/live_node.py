"""The live shell: hosts one heart in real time, with real sockets and real computation.

    shell/connections.py --> |                 | --> shell/connections.py: the data network, through the link
    management           --> | heart.handle()  | --> management, shell/reporter.py: records, every fifth of a second
    timers               --> |                 | --> shell/device.py: work, and shell/meanwhile.py beside it

The shell decides nothing. It serves every runtime whose nodes are processes of their own, in containers or not. Parts
of it count what passes (shell/metering.py) and know how the trial stands (shell/lifetime.py).
"""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import zmq

from edgebed.core import records
from edgebed.core.actions import LINK_ACTIONS
from edgebed.core.plan import TrainingNode, WorkerPlan
from edgebed.core.planned.fault import Injection
from edgebed.roles.events import (
    AtPoint,
    Await,
    Compute,
    Computed,
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
from edgebed.runtimes.live.endpoint import DealerEndpoint
from edgebed.runtimes.live.group_commit import GroupCommit
from edgebed.runtimes.live.heartbeat import CONTROLLER_LOST_S
from edgebed.runtimes.live.shell.connections import Connections
from edgebed.runtimes.live.shell.device import NodeDevice
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.shell.meanwhile import Meanwhile
from edgebed.runtimes.live.shell.metering import Metering
from edgebed.runtimes.live.shell.reporter import Reporter
from edgebed.runtimes.live.timers import Timers, sharpen_sleep
from edgebed.runtimes.server_log import ServerLog
from edgebed.runtimes.traffic import OBSERVE_S
from edgebed.wire import messages
from edgebed.wire.errors import RemoteWireError

REPORT_S = 0.2
LOOKS = 4
"""Looks, while a worker computes, in the time after which it says that it works."""


@dataclass
class LiveNode:
    """A node's shell. `run` returns when the heart or the controller says stop."""

    plan: TrainingNode
    heart: Heart
    life: Lifetime
    device: NodeDevice
    management: DealerEndpoint
    reporter: Reporter
    metering: Metering
    connections: Connections
    log: ServerLog | None = None
    """Server: its log."""
    commits: GroupCommit | None = None
    """Server: holds back what it says until the disk has the log."""
    timers: Timers[Event] = field(default_factory=Timers)
    events: deque[Event] = field(default_factory=deque)
    next_observe_s: float = 0.0
    """When the node is to be looked at next."""
    next_report_s: float = 0.0
    """When its records are to be reported next."""

    def __post_init__(self) -> None:
        self.working_s = self.plan.working_s if isinstance(self.plan, WorkerPlan) else None
        every_s = min(OBSERVE_S, math.inf if self.working_s is None else self.working_s / LOOKS)
        self.meanwhile = Meanwhile(self._see_to_due_meanwhile, None if self.plan.role == "server" else every_s)

    def run(self) -> str:
        """Host the heart until it is told to stop; return the reason."""
        with self.meanwhile:
            return self._serve()

    def _serve(self) -> str:
        if self.connections.link.passage:
            sharpen_sleep()
        poller = zmq.Poller()
        poller.register(self.management.socket, zmq.POLLIN)
        if self.commits:
            poller.register(self.commits, zmq.POLLIN)
        while self.life.stop is None:
            self._drain(self._wait(poller, self._tell()))
        if self.commits:
            self.commits.commit()
        self._release()
        self._tell_all()
        return self.life.stop.reason

    def _tell(self) -> float:
        """Look at the node and report, each when it is due; return when one is due again."""
        now = self.life.now()
        if now >= self.next_observe_s:
            if self.management.lost_for_s(now) > CONTROLLER_LOST_S:
                self._end("the controller is gone")
            self._observe()
            self.next_observe_s = now + OBSERVE_S
        if self.reporter.unreported and (self.reporter.urgent or now >= self.next_report_s):
            self.reporter.report()
            self.next_report_s = now + REPORT_S
        return min(self.next_observe_s, self.next_report_s) if self.reporter.unreported else self.next_observe_s

    def _tell_all(self) -> None:
        self._observe()
        self.reporter.report()

    def _wait(self, poller: zmq.Poller, until_s: float) -> set[Any]:
        """Wait for a message, for room for one that waits to leave, or for the next time at which something is due."""
        for socket, is_taken in self.connections.sockets.items():
            poller.register(socket, zmq.POLLIN if is_taken else 0)
        full = [end for end in (self.management, *self.connections.data.dealers.values()) if end.outbox]
        for endpoint in full:
            poller.register(endpoint.socket, zmq.POLLIN | zmq.POLLOUT)
        next_s = min(self.timers.next_s, self.connections.next_s)
        timeout_s = max(0.0, min(until_s, next_s) - self.life.now())
        if next_s < math.inf and timeout_s < 0.001:
            time.sleep(timeout_s)  # ZeroMQ waits for whole milliseconds, and a short pause is to be short
            timeout_s = 0.0
        ready = poller.poll(int(timeout_s * 1000) if next_s < math.inf else math.ceil(timeout_s * 1000))
        for endpoint in full:
            endpoint.flush()
            poller.register(endpoint.socket, zmq.POLLIN)
        return {socket for socket, _ in ready}

    def _drain(self, ready: set[Any]) -> None:
        """Handle what has come: management first, so that a busy server still hears the controller."""
        if self.management.socket in ready:
            self.hear()
        if not ready.isdisjoint(self.connections.sockets):
            for event in self.connections.receive():
                self._take_in(event)
        self._release()
        self._see_to_due()
        for point in self.connections.reached():
            self._handle(AtPoint(point))

    def _see_to_due(self) -> float:
        """Handle what is due of link and timers; return the seconds until something is due again."""
        for event in self.connections.due():
            self._take_in(event)
        looked_s = self.life.now()  # what becomes due meanwhile waits until the sockets have been looked at, too
        for due in self.timers.due(lambda: looked_s):
            self._handle(due)
        return min(self.timers.next_s, self.connections.next_s) - self.life.now()

    def _see_to_due_meanwhile(self) -> float:
        """Handle what is due while a job goes on, but of the heart only what it may say; see `_see_to_due`."""
        for event in self.management.receive():
            self._handle_management(event, self.events.append)
        if self.life.stop:
            self._tell_all()  # the controller may not wait until the job is done
            return OBSERVE_S
        next_s = self._tell()
        due_s = math.inf if self.working_s is None else self._see_to_due()
        return min(due_s, next_s - self.life.now())

    def _release(self) -> None:
        """Carry out what need not wait for the disk any more."""
        for effect in self.commits.released() if self.commits else ():
            self._carry_out(effect)

    # --- the controller -----------------------------------------------------------------------------------------

    def hear(self) -> None:
        """Handle messages of the controller."""
        for event in self.management.receive():
            self._handle_management(event, self._handle)

    def _handle_management(self, event: MessageReceived, heart: Callable[[Event], None]) -> None:
        """Do what the controller asks for; `heart` is given what the node's heart has to decide."""
        message = event.message
        if isinstance(message, messages.Stop):
            self.life.stop = message
        elif isinstance(message, messages.Refuse):
            self._end(f"refused by the controller ({message.code}): {message.reason}")
        elif isinstance(message, messages.Inject):
            self.inject(message.injection)
        elif isinstance(message, messages.Errors):
            self.life.errors_s.update(message.nodes)
        elif isinstance(message, messages.Journaled):
            if self.log:
                self.log.has_told(message.durable)
        else:
            if isinstance(message, messages.Start):
                self._start(message)
            heart(event)

    def _start(self, start: messages.Start) -> None:
        """Start for the first time, or again because a node is elsewhere now."""
        if self.life.began_s is None:
            self.life.began_s = start.began_s
            self.next_observe_s = 0.0  # what is measured counts from now on
            self.connections.link.began(start.began_s)
        self.connections.move(dict(start.addresses))

    def inject(self, injection: Injection) -> None:
        """Apply a fault: do the part of it that is the node's own, and note what is asked for from now on."""
        if injection.action in LINK_ACTIONS:
            self.metering.inject(injection)
            self.connections.inject(injection)
        elif injection.node == self.plan.node and injection.action == "cpus":
            self.device.cap(injection.cpus)
        elif injection.node == self.plan.node and injection.action == "memory":
            self.reporter.report()
            self.reporter.journal(records.Note(text=self.device.fill_memory()))

    def _end(self, reason: str) -> None:
        self.life.stop = messages.Stop(sender=self.plan.node, reason=reason)

    # --- the heart ----------------------------------------------------------------------------------------------

    def _take_in(self, event: Event) -> None:
        """Handle what came over a connection; what cannot be understood is dropped."""
        try:
            self._handle(event)
        except RemoteWireError as error:
            assert isinstance(event, MessageReceived), event
            self.reporter.complain(f"from {event.peer!r}: {error}")

    def _handle(self, event: Event) -> None:
        self.events.append(event)
        while self.events and self.life.stop is None:
            for effect in self.heart.handle(self.events.popleft(), self.life.now()):
                if self.log:
                    self.log.note(self.life.now(), effect)
                if not (self.commits and self.commits.hold(effect)):
                    self._carry_out(effect)
            if self.log:
                self.log.turn()

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._send(effect)
        elif isinstance(effect, Journal):
            self.reporter.journal(effect.record)
        elif isinstance(effect, Compute):
            self._compute(effect)
        elif isinstance(effect, Wake):
            self.timers.add(effect.at_s, Woken(effect.token))
        elif isinstance(effect, Await):
            self.connections.await_(effect.point)
        elif isinstance(effect, EndNode):
            self._end(effect.reason)
        elif self.log:
            self.log.take(effect)

    def _send(self, effect: Send) -> None:
        if effect.to == "controller":
            self.reporter.report()
            self.management.send(effect.message, effect.frames)
            return
        if isinstance(effect.message, messages.Backup):
            self.reporter.report()  # records behind it are reported first
        now = self.life.now()
        self.device.times.sent(effect.message, now)
        self.connections.send(effect, now)

    def _compute(self, effect: Compute) -> None:
        result, delay_s = self.device.compute(effect, self.life.now, self.meanwhile.lending)
        if delay_s > 0.0 or self.plan.shard:  # a shard that never waits would never look at its sockets
            self.timers.add(self.device.times.busy_until_s + delay_s, Computed(result))
        else:
            self.events.append(Computed(result))

    def _observe(self) -> None:
        """Journal what has to be polled of the node and of its heart."""
        self.metering.observe()
        for effect in self.heart.handle(Observe(), self.life.now()):
            if isinstance(effect, Expose):
                self.reporter.metrics.shard_queues(effect.queues)
            elif isinstance(effect, Journal):
                self.reporter.journal_change(effect.record)
        self.connections.end_if_dead()
