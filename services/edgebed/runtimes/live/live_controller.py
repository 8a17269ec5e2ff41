"""The live shell of the controller: hosts its heart for the runtimes whose nodes are processes or containers.

The controller alone writes the run folder. Nodes come and go through a launcher; everything else comes over the
management network.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
import zmq

from edgebed.core import records
from edgebed.core.linux import allow_open_files
from edgebed.core.patience import threads_a_core
from edgebed.core.planned.fault import Injection
from edgebed.emulation.outside.lookout import Outside
from edgebed.emulation.outside.looks import Sight
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.journal import JournalWriter
from edgebed.roles.control.controller import Controller, Phase
from edgebed.roles.control.members import BUILDING
from edgebed.roles.control.name import NAME
from edgebed.roles.control.record_permissions import RecordPermissions, is_timely
from edgebed.roles.events import (
    ApplyInjection,
    CommandResult,
    Effect,
    EndNode,
    Event,
    HealthChecked,
    Injected,
    Interrupted,
    Journal,
    MessageReceived,
    NodeExited,
    NodeStarted,
    Send,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.roles.server.entries import is_durable
from edgebed.runtimes.checkpoint_fit import require_log
from edgebed.runtimes.live.authentication import Credentials, new_secret
from edgebed.runtimes.live.control import Control
from edgebed.runtimes.live.endpoint import RouterEndpoint
from edgebed.runtimes.live.heartbeat import HEARTBEAT
from edgebed.runtimes.live.message_limits import ConnectionLimiter, SocketLimits
from edgebed.runtimes.live.rate_limit import Budget, RateLimiter
from edgebed.runtimes.live.sockets import FILES_BESIDE, REPORT_BYTES_MAX, bind, management_socket
from edgebed.runtimes.live.timers import Timers
from edgebed.runtimes.trial_shell import Probe, TrialShell
from edgebed.runtimes.watch import SHOW_S, StatusFeed
from edgebed.wire import messages
from edgebed.wire.errors import RemoteWireError
from edgebed.wire.tensors import decode_dense

LAUNCHES_AT_ONCE = 16  # then messages of running nodes are handled again
LAUNCH_AGAIN_S = 0.02
LAST_WORDS_S = 0.1  # what a node sent before it ended is handled before its end is
RECEIVED_AT_ONCE = 1024  # messages
CONNECTIONS_A_NODE = 2  # one is for its heartbeats
UNREAD_A_NODE = 64
"""Messages that a node may leave unread for each that there is: a frozen one is told of all others."""
MESSAGE_BYTES = 256
"""What a message costs a node of its budget: the journal may have a line of it."""
CHECKPOINT_BYTES = 32
"""Most bytes of a checkpoint for each parameter: itself, and what an aggregation may remember of it."""


class Launcher(Protocol):
    """What a runtime must be able to do with nodes."""

    name: str
    notes: tuple[str, ...]
    host: str
    """The address at which nodes reach the controller: its management socket binds there."""

    def fileno(self) -> int:
        """A file descriptor that is readable when `poll_events` has events."""
        ...

    def launch(self, node: str, controller_address: str, secret: str) -> bool:
        """Start a node, which says hello to the controller by itself. Never blocks: False means try again later.

        Nobody but the node may read the `secret`: it is on no command line, in no file and in no log.
        """
        ...

    def inject(self, number: int, injection: Injection) -> None:
        """Have an action but `launch` done to a node; `Injected(number)` is among the happenings. Never blocks."""
        ...

    def cap(self, node: str) -> None:
        """Hold a node's CPU cap from now on: it is built; while it starts it has at least a core. Never blocks."""
        ...

    def poll_events(self) -> Iterator[NodeStarted | NodeExited | Injected]:
        """Events since the last call: nodes that started or ended, and how; called when `fileno` is readable."""
        ...

    def probe(self) -> Probe:
        """Begin to look how busy the nodes' hosts are; training begins. Never blocks."""
        ...

    def sight(self) -> Sight | None:
        """Where nodes can be seen from outside, for one thread; None: nowhere. Never blocks."""
        ...

    def began(self, monotonic_s: float) -> None:
        """Note when training began, on the controller's monotonic clock: links change with time from here on."""
        ...

    def clock_told(self, node: str, clock: records.Clock) -> None:
        """Note how the clock of a node, and so of its host, differs from the controller's."""
        ...

    def close(self) -> None:
        """Stop everything that still runs."""
        ...


@dataclass
class LiveController(TrialShell):
    """Hosts the controller's heart for one trial; `run` returns when the trial is over and every node is gone."""

    heart: Controller
    launcher: Launcher
    journal: JournalWriter
    checkpoints: CheckpointStore
    """Stores the models and backups that the server sends."""
    watch: StatusFeed
    control: Control | None = None
    """The socket for commands by hand."""
    secret: str = field(default_factory=new_secret, repr=False)
    """Known to the nodes of this trial alone: whoever has it is one of them."""
    timers: Timers[Event] = field(default_factory=Timers)
    reported: dict[str, int] = field(default_factory=dict)
    """Number of records that each connection of a node has reported."""
    lost: Counter[str] = field(default_factory=Counter)
    """Number of records of each node that were lost on the way, and have yet to be noted."""
    senders: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The node of each connection, and its incarnation, also for those that are over."""
    heartbeats: set[str] = field(default_factory=set)
    """Nodes whose heartbeat has come since the last check."""
    next_check_s: float = math.inf
    to_launch: deque[str] = field(default_factory=deque)
    asked: dict[str, int] = field(default_factory=dict)
    """Nodes to be launched again, with the number of the effect that asks for it."""
    launched: dict[str, int] = field(default_factory=dict)
    """Nodes that the launcher is about to start again, with the number of the effect that asks for it."""
    ending: set[str] = field(default_factory=set)
    """Nodes whose end is not handled yet."""
    durable: int = 0
    """Number of records that the journal has of what is in the server's log."""
    untold: str = ""
    """Connection of a server that has not heard of all that the journal has; empty: there is none."""
    flood: RateLimiter = field(default_factory=RateLimiter)
    budget: Budget = field(default_factory=Budget)
    interruptions: int = 0
    failed: str = ""
    """Why the trial failed; empty: it did not, or not yet."""
    has_begun: bool = False
    over: bool = False
    probe: Probe | None = None
    """Measures the hosts during training."""
    outside: Outside | None = None
    """What is seen of nodes from outside, from when the first one is built."""

    def __post_init__(self) -> None:
        """Look up what the plan asks for."""
        self.epoch_ns = self.heart.admission.epoch_ns
        past = self.heart.past
        self.permissions = RecordPermissions(self.heart.plan, past.updates if past else 0)
        self.is_synced = self.heart.plan.server.durability == "fsync"
        """Whether what the server hears is in the journal has to outlast a power cut."""

    def run(self) -> None:
        """Launch every node, host the heart until it stops, leave nothing running, however often the user asks."""
        nodes = len(self.heart.plan.nodes)
        allow_open_files(FILES_BESIDE + CONNECTIONS_A_NODE * nodes, f"a controller of {nodes:,} nodes")
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        guard: ConnectionLimiter | None = None
        with self._interruptible():
            try:
                room = UNREAD_A_NODE * (UNREAD_A_NODE + nodes)
                socket = management_socket(context, zmq.ROUTER, Credentials.of(self.secret), room=room)
                self.endpoint = RouterEndpoint(socket, "management", self._complain)
                address = bind(socket, self.launcher.host)
                guard = self._guard(address)
                for text in self.launcher.notes:
                    self._journal(records.Note(text=text))
                self._carry_out(self.heart.launch(self.now()))
                self._serve(socket, address)
            finally:
                if guard is not None:
                    guard.close()
                if self.probe:
                    self.probe.close()
                if self.outside:
                    self.outside.lookout.close()
                try:
                    self._close_launcher()
                finally:
                    context.destroy(linger=0)
        self.watch.interrupted |= self.interruptions > 0  # also while the launcher was closing

    def _guard(self, address: str) -> ConnectionLimiter:
        """Limit the socket: against too many connections, and against messages without an end.

        What layer shards have stored nobody bounds.
        """
        nodes, plan = frozenset(self.heart.members), self.heart.plan
        parameters = sum(tensor.size for tensor in plan.nodes[0].task.layout) if plan.pushes else math.inf
        largest = REPORT_BYTES_MAX + CHECKPOINT_BYTES * parameters
        self.endpoint.limits = SocketLimits.for_messages(
            address, largest, at_once=4, nodes=nodes, used=CONNECTIONS_A_NODE, is_patient=True
        )
        return ConnectionLimiter(self.endpoint.limits).start()

    def _serve(self, socket: zmq.Socket[bytes], address: str) -> None:
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(self.endpoint.monitor, zmq.POLLIN)
        poller.register(self.launcher.fileno(), zmq.POLLIN)
        if self.control:
            poller.register(self.control.fileno(), zmq.POLLIN)
        self.to_launch.extend(node.node for node in self.heart.plan.nodes)
        next_release_s = 0.0
        while not self.over:
            now = self.now()
            self.watch.tick(now)
            if now >= next_release_s:
                self._release()
                next_release_s = now + 1.0
            if self.heart.phase is Phase.ENDING:
                self.to_launch.clear()
            self._launch(address)
            self._journal_all(self.outside.take() if self.outside else ())
            due_s = min(now + (LAUNCH_AGAIN_S if self.to_launch else SHOW_S), self.timers.next_s, self.next_check_s)
            self._turn(dict(poller.poll(max(0, int((due_s - now) * 1000) + 1))))

    def _launch(self, address: str) -> None:
        """Start nodes that are to be started, each when the end of its last incarnation has been handled."""
        later = []
        for _ in range(min(LAUNCHES_AT_ONCE, len(self.to_launch))):
            node = self.to_launch.popleft()
            if node in self.ending or not self.launcher.launch(node, address, self.secret):
                later.append(node)
            elif node in self.asked:
                self.launched[node] = self.asked.pop(node)
        self.to_launch.extend(later)  # behind the others, which need not wait for them

    def _turn(self, ready: dict[Any, int]) -> None:
        """Handle what has come, what is due, and commands by hand."""
        received = 0
        self.endpoint.look()
        for event in self.endpoint.receive(limit=RECEIVED_AT_ONCE):
            received += 1
            try:
                self._received(event)
            except RemoteWireError as error:
                self._complain(f"from {event.peer!r}: {error}")
        if self.launcher.fileno() in ready:
            for happened in self.launcher.poll_events():
                self._happened(happened)
        for ordered in self.control.orders() if self.control else ():
            self._handle(ordered)
        for due in self.timers.due(self.now):
            is_start = isinstance(due, Woken) and self.heart.phase is Phase.LAUNCHED
            self._handle(msgspec.structs.replace(due, load=threads_a_core()) if is_start else due)
        if self.now() >= self.next_check_s and received < RECEIVED_AT_ONCE:  # no heartbeat waits to be read
            self._check()
        if self.interruptions and not self.watch.interrupted:
            self.watch.interrupted = True
            self._handle(Interrupted())
        if self.interruptions > 1:
            self._handle(Woken("grace"))  # asked twice: do not wait for goodbyes

    def _happened(self, event: NodeStarted | NodeExited | Injected) -> None:
        """Handle an event of the launcher; a launch is done when the node has started."""
        if isinstance(event, NodeExited):
            if event.node in self.launched:
                self._handle(Injected(self.launched.pop(event.node), event.reason))
            self.ending.add(event.node)
            self.timers.add(self.now() + LAST_WORDS_S, event)
            return
        self._handle(event)
        if isinstance(event, NodeStarted) and event.node in self.launched:
            self._handle(Injected(self.launched.pop(event.node)))

    def _check(self) -> None:
        """Report to the heart which nodes' heartbeats have come."""
        goes_on = self.heart.phase in (Phase.RUNNING, Phase.FINISHING)
        self.next_check_s = self.now() + self.heart.plan.check_s if goes_on else math.inf
        alive, self.heartbeats = frozenset(self.heartbeats), set()
        self._handle(HealthChecked(alive))

    def _received(self, event: MessageReceived) -> None:
        message = event.message
        if isinstance(message, messages.Alive | messages.AskTime):
            self._note_sign(event)
            return
        if self.heart.members.knows(event):
            self.senders[event.peer] = message.sender, self.heart.members[message.sender].incarnation
        elif isinstance(message, messages.Report) and event.peer in self.senders:
            self._keep_report(event, message)  # from an incarnation that is over
            return
        elif not isinstance(message, messages.Hello):
            self._complain(f"from {event.peer!r}: {type(message).__name__} of a stranger")
            return
        if isinstance(message, messages.Report):
            message = self._keep_report(event, message)
            event = MessageReceived(event.peer, message, event.frames, event.bytes)
            if self.outside and self.has_begun:
                node, incarnation = self.senders[event.peer]
                self.outside.told(node, incarnation, self.epoch_ns * 1e-9, message.records)
        elif event.peer in self.senders:
            if not (self._may_say_more(message.sender) and self._is_owed(event.peer, message)):
                return
            self._serve_node(event)
        self._handle(event)

    def _may_say_more(self, node: str) -> bool:
        """Whether a node's budget has room for another message; it is complained of otherwise."""
        role = self.heart.members[node].plan.role
        may = self.budget.spend(node, role, 1, MESSAGE_BYTES, self.now())
        if not may:
            self._complain(f"{node} says more than a {role} may")
        return may

    def _serve_node(self, event: MessageReceived) -> None:
        """Do what a message asks of the shell alone."""
        message = event.message
        if isinstance(message, messages.Built | messages.Ready):
            if self.heart.members[message.sender].state not in BUILDING:
                return
            self._look_outside()
        if isinstance(message, messages.Built):
            self.launcher.cap(message.sender)
        elif isinstance(message, messages.Ready) and message.sender == "server":
            if self.heart.past and not self.has_begun:
                require_log(self.checkpoints, self.heart.past, message)
            if message.replayed is None:
                self.durable = 0  # the server has begun another log, if any
        elif isinstance(message, messages.Checkpoint):
            self.checkpoints.keep_sent(message, event.frames)
        elif isinstance(message, messages.Keep):
            state = decode_dense(message.tensors[0], event.frames)
            self.checkpoints.keep_backup(message.step, message.parts, state)

    def _note_sign(self, event: MessageReceived) -> None:
        """Note a heartbeat, or tell the time, unless it is from an incarnation that is over."""
        heard_ns, message = time.monotonic_ns(), event.message
        member = self.heart.members.get(message.sender)
        if member is None:
            self._complain(f"from {event.peer!r}: {type(message).__name__} of a stranger")
        elif event.peer != member.peer + HEARTBEAT:
            return
        elif isinstance(message, messages.AskTime):
            if not self._may_say_more(message.sender):
                return
            told = messages.TellTime(
                sender=NAME, asked_ns=message.asked_ns, heard_ns=heard_ns, told_ns=time.monotonic_ns()
            )
            self.endpoint.send(event.peer, told, (), is_vital=False)
        else:
            self.heartbeats.add(message.sender)

    def _is_owed(self, peer: str, said: messages.Message | records.Record) -> bool:
        """Whether the node of that connection may say that; it is complained of otherwise."""
        objection = self.permissions.objection(*self.senders[peer], said)
        if objection:
            self._complain(f"from {peer!r}: {objection}")
        return not objection

    def _keep_report(self, event: MessageReceived, report: messages.Report) -> messages.Report:
        """Journal a report; return it without what the journal had already, and what its sender does not owe."""
        role = self.heart.members[report.sender].plan.role
        owed = self._within_budget(event, report, role)
        durable = report.durable if role == "server" else None
        told = tuple(owed if durable is None else self._fresh(durable, owed))
        report = msgspec.structs.replace(report, records=told, durable=durable)
        self.journal.write_many((t, report.sender, record) for t, record in report.records)
        for t, record in report.records:
            self.watch.follow(t, report.sender, record)
            if isinstance(record, records.Resumed):
                self.checkpoints.give_up(record.step)
            elif isinstance(record, records.Clock):
                self.launcher.clock_told(report.sender, record)
        if durable is not None:
            self.untold = event.peer
            if not self.is_synced:
                self._tell_durable()
        return report

    def _within_budget(
        self, event: MessageReceived, report: messages.Report, role: str
    ) -> list[tuple[float, records.AnyRecord]]:
        """The records of a report that its sender owes and may write; the others are complained of."""
        now, count, expected = self.now(), len(report.records), self.reported.get(event.peer, 0)
        if not expected <= report.first <= expected + self.budget.most(role, now):
            self._complain(f"{report.sender} reports record {report.first:,}, after {expected:,}", count=count or 1)
            return []
        self.reported[event.peer] = report.first + count
        if not self.budget.spend(report.sender, role, count or 1, event.bytes, now):
            self._complain(f"{report.sender} reports more than a {role} may", count=count or 1)
            return []
        self.lost[report.sender] += report.first - expected
        timely = [each for each in report.records if is_timely(each[0], now)]
        if late := count - len(timely):
            first = next(t for t, _ in report.records if not is_timely(t, now))
            self._complain(f"{report.sender} reports something of {first:g} s, at {now:.0f} s", count=late)
        return [each for each in timely if self._is_owed(event.peer, each[1])]

    def _tell_durable(self) -> None:
        """Tell the server what the journal has of its log; with `fsync` the disk has it, too."""
        if self.is_synced:
            self.journal.sync()
        if self.untold:
            journaled = messages.Journaled(sender=NAME, durable=self.durable)
            self.endpoint.send(self.untold, journaled, (), is_vital=False)
            self.untold = ""

    def _fresh(
        self, number: int, reported: Iterable[tuple[float, records.AnyRecord]]
    ) -> Iterator[tuple[float, records.AnyRecord]]:
        """Yield the records that the journal lacks: a server that comes back reports some again."""
        for t, record in reported:
            if is_durable(record):
                number += 1
                if number <= self.durable:
                    continue
                self.durable = number
            yield t, record

    def _handle(self, event: Event) -> None:
        if isinstance(event, NodeExited):
            self.ending.discard(event.node)
        effects = self.heart.handle(event, self.now())
        if self.heart.is_ending:
            self._end_probe()  # its last look comes into the journal before the trial's end
        self._carry_out(effects)
        if self.heart.phase is Phase.RUNNING and not self.has_begun:
            self.has_begun = True
            self.next_check_s = self.now() + self.heart.plan.check_s
            self._note_begin(self.heart.starting.began_s)
        if self.heart.phase is Phase.FINISHING and self.outside:
            self.outside.ended(time.monotonic())

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                if self.is_synced and isinstance(effect.message, messages.Start):
                    self.journal.sync()  # whoever goes on knows that training began, and which lives there were
                self.endpoint.send(effect.to, effect.message, effect.frames)
            elif isinstance(effect, Journal):
                self._note(effect.record)
                self._journal(effect.record)
            elif isinstance(effect, ApplyInjection):
                self._inject(effect)
            elif isinstance(effect, Wake):
                self.timers.add(effect.at_s, Woken(effect.token))
            elif isinstance(effect, CommandResult) and self.control:
                self.control.answer(effect)
            elif isinstance(effect, EndNode):
                self.over = True

    def _inject(self, effect: ApplyInjection) -> None:
        if effect.injection.action == "launch":
            self.asked[effect.injection.node] = effect.number
            self.to_launch.append(effect.injection.node)
        else:
            self.launcher.inject(effect.number, effect.injection)

    def _complain(self, reason: str, count: int = 1) -> None:
        record = records.Dropped(socket="management", reason=reason, count=count)
        if self.flood.admit(record):
            self._journal(record)

    def _release(self) -> None:
        """Journal what was only counted in the last second."""
        lost = [f"{count:,} records of {node} were lost on the way" for node, count in self.lost.items() if count]
        self.lost.clear()
        self._journal_all(records.Note(text=text) for text in lost)
        self._journal_all((*self.flood.release(), *self.endpoint.refusals("management")))
        self._keep_host_load()
        self._tell_durable()

    def _look_outside(self) -> None:
        """Begin to look at the nodes from outside; the evaluator is no condition of the experiment."""
        if self.outside is None and (sight := self.launcher.sight()):
            nodes = [node.node for node in self.heart.plan.nodes if node.role != "evaluator"]
            self.outside = Outside(sight, nodes)
