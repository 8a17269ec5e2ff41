"""The simulation: the same hearts in virtual time, on an agenda of what happens when.

    agenda.py                 events to come
    simulated_node.py         an incarnation of a node: its heart, its work, frozen or not
    simulated_network.py      messages on their way; simulated_connection.py: what an outage does to them

What it simplifies: a message takes as long as the links of its two nodes need (see emulation/link_model.py, which also
says what that leaves out), and none at all where neither has one; a gradient takes the task's `gradient_time` divided
by the device's compute speed and CPU share; server and evaluator take no time, so that the model is evaluated at every
interval exactly; launching a node takes none.

What it does not: the messages are the real ones, encoded and decoded, so their bytes are; gradients are computed, ahead
of their virtual time and on all cores. The order of events decides everything, so the same scenario and seed write the
same journal, byte for byte, with one process or several.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebed.core import records
from edgebed.core.errors import EdgebedError, InfrastructureError, OwnCodeError
from edgebed.core.last_words import out_of_memory
from edgebed.core.plan import Injection, NodePlan, Plan
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.journal import JournalWriter
from edgebed.roles.control.controller import NAME, Controller, NodeInputs, Phase, ResumedTrial
from edgebed.roles.events import (
    ApplyInjection,
    AtPoint,
    Await,
    Compute,
    Computed,
    Connected,
    Effect,
    EndNode,
    Event,
    HealthChecked,
    Heart,
    Injected,
    Interrupted,
    Journal,
    MessageReceived,
    NodeExited,
    Observe,
    Release,
    Send,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.roles.layerwise.shard_time import share_of
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.roles.work import EvaluationJob, GradientJob, Job, ScoreJob
from edgebed.runtimes.log_file import FolderInMemory
from edgebed.runtimes.node_building import Kept, heart_of
from edgebed.runtimes.server_log import ServerLog
from edgebed.runtimes.signals import catch_signals, restore_signals
from edgebed.runtimes.simulation.agenda import Agenda
from edgebed.runtimes.simulation.arena import Arena
from edgebed.runtimes.simulation.pool import BATCH, IN_FLIGHT, Pool, Run
from edgebed.runtimes.simulation.simulated_connection import Arrival, Departure, PendingSend, Renewed, message_of
from edgebed.runtimes.simulation.simulated_network import SimulatedNetwork
from edgebed.runtimes.simulation.simulated_node import PendingResult, SimulatedIncarnation
from edgebed.runtimes.traffic import OBSERVE_S, TrafficCount
from edgebed.runtimes.watch import StatusFeed
from edgebed.wire import messages
from edgebed.wire.tensors import Buffer, cut, decode_dense

REASON_LENGTH_MAX = 500
KILLED = "killed by SIGKILL"


REPORTED = (records.Update, records.Step, records.Evaluated, records.Finished)
"""Kinds of records that the controller hears of."""


class Check:
    """The event that heartbeats are checked."""


class Look:
    """The event that the server reports what has passed its data socket."""


class Simulation:
    """One trial in virtual time; `run` returns when it is over."""

    name = "simulation"

    def __init__(
        self,
        plan: Plan,
        checkpoints: CheckpointStore,
        run_job: Run,
        processes: int,
        journal: JournalWriter,
        watch: Callable[[Controller], StatusFeed],
        past: ResumedTrial | None = None,
        now: float = 0.0,
    ) -> None:
        """`checkpoints` has the initial model; `run_job` does a node's job, here or in a forked process.

        A resumed trial has a `past`, and its clock continues from `now`.
        """
        self.plan = plan
        self.checkpoints = checkpoints
        self.journal = journal
        self.controller = Controller(plan, self._given, self.name, past=past)
        self.watch = watch(self.controller)
        # each worker holds a model and an update; the evaluator, the server's last answer and its checkpoint a model;
        # children of the pool may hold both for cancelled work
        slots = 2 * len(plan.nodes) + 8 + 2 * IN_FLIGHT * BATCH * processes
        self.arena = Arena(len(checkpoints.latest.theta), slots)
        self.pool = Pool(run_job, processes, self.arena)
        self.plans = {node.node: node for node in plan.nodes}
        self.cpus = {node.node: node.cpus for node in plan.nodes}
        """Present CPU caps by node."""
        self.agenda: Agenda[SimulatedIncarnation] = Agenda(now)
        self.control = SimulatedIncarnation(NAME)
        self.incarnations: dict[str, SimulatedIncarnation] = {}
        """Present incarnation of each node that exists."""
        self.network = SimulatedNetwork(plan, self.agenda, self.incarnations, self._journal)
        self.log_folder = FolderInMemory() if _may_lose_server(plan) else None
        """Folder of the server's log, which outlasts the server; None: nothing can end it before the trial."""
        self.log: ServerLog | None = None
        self.alive: frozenset[str] | None = None
        """Nodes that send heartbeats at present; None: to be determined again."""
        self.last_signs: set[str] = set()
        """Nodes that have sent their last heartbeat since the last check."""
        self.checking = False
        self.over = False
        self.interruptions = 0

    def run(self) -> None:
        """Handle events in order until the controller stops."""
        previous = catch_signals(self._interrupt)
        try:
            self._carry_out(self.control, self.controller.launch(self.agenda.now))
            for node in self.plan.nodes:
                self._launch(node.node)
            self._serve()
        except EdgebedError as error:
            with suppress(EdgebedError):  # the journal itself may be what failed
                self._journal(NAME, records.Ended(outcome="failed", reason=str(error)[:REASON_LENGTH_MAX]))
            raise
        finally:
            restore_signals(previous)
            self.pool.close()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interruptions += 1

    def _serve(self) -> None:
        interrupted = False
        while not self.over:
            if self.interruptions > 0 and not interrupted:
                interrupted = self.watch.interrupted = True
                self._carry_out(self.control, self.controller.handle(Interrupted(), self.agenda.now))
            self.watch.tick(self.agenda.now)
            entry = self.agenda.next()
            if entry is None:
                raise InfrastructureError(f"nothing is left to happen after {self.agenda.now:g} s of the trial")
            incarnation, event = entry
            if incarnation is self.control:
                self._control(event)
            elif not incarnation.ended:
                self._happen(incarnation, event)

    def _carry_out(self, incarnation: SimulatedIncarnation, effects: list[Effect]) -> None:
        if incarnation.plan and incarnation.plan.points:
            self._note_awaited(incarnation, effects)
        for effect in effects:
            if isinstance(effect, Send):
                self._send(incarnation, effect)
            elif isinstance(effect, Journal):
                self._journal(incarnation.name, effect.record)
            elif isinstance(effect, Compute):
                self._compute(incarnation, effect)
            elif isinstance(effect, Wake):
                self.agenda.add(effect.at_s, incarnation, Woken(effect.token))
            elif isinstance(effect, Release):
                self.network.proceed(incarnation)
            elif isinstance(effect, ApplyInjection):
                problem = self._inject(effect.injection)
                self._tell_controller(Injected(effect.number, problem))
            else:
                self._end_or_log(incarnation, effect)

    def _end_or_log(self, incarnation: SimulatedIncarnation, effect: Effect) -> None:
        if isinstance(effect, EndNode):
            self._stop(incarnation, effect.reason)
        elif self.log:
            self.log.take(effect)

    def _stop(self, incarnation: SimulatedIncarnation, reason: str) -> None:
        if incarnation is self.control:
            self.over = True
        else:
            self._say_goodbye(incarnation, reason)

    # --- the controller -----------------------------------------------------------------------------------------

    def _control(self, event: Any) -> None:
        if isinstance(event, Check):
            event = self._check()
        elif isinstance(event, MessageReceived) and isinstance(event.message, messages.Checkpoint):
            self.checkpoints.keep_sent(event.message, event.frames)
        elif isinstance(event, MessageReceived) and isinstance(event.message, messages.Keep):
            keep = event.message
            self.checkpoints.keep_backup(keep.step, keep.parts, decode_dense(keep.tensors[0], event.frames))
        self._carry_out(self.control, self.controller.handle(event, self.agenda.now))
        if not self.checking and self.controller.phase is Phase.RUNNING:
            self.checking = True
            self.agenda.add(self.agenda.now + self.plan.check_s, self.control, Check())

    def _check(self) -> HealthChecked:
        """The nodes whose heartbeats came; the next check is due while training is in progress."""
        if self.controller.phase in (Phase.RUNNING, Phase.FINISHING):
            self.agenda.add(self.agenda.now + self.plan.check_s, self.control, Check())
        if self.alive is None:
            self.alive = frozenset(
                name
                for name, incarnation in self.incarnations.items()
                if incarnation.heart and not incarnation.is_frozen
            )
        if not self.last_signs:
            return HealthChecked(self.alive)
        last_signs, self.last_signs = self.last_signs, set()
        return HealthChecked(self.alive | last_signs)

    def _given(self, node: NodePlan) -> NodeInputs:
        """What a node is given, with the version of the server's first model, which no message has."""
        if node.role != "server":
            return NodeInputs()
        backup = self.checkpoints.backup
        return NodeInputs(version=self.checkpoints.latest.version, backup_step=backup.step if backup else 0)

    def _tell_controller(self, event: Event) -> None:
        self.agenda.add(self.agenda.now, self.control, event)

    def _say(self, node: str, message: messages.AnyMessage, frames: Sequence[Buffer] = ()) -> None:
        """Send a message from a node to the controller, which takes no time."""
        self._tell_controller(MessageReceived(node, message, frames, 0))

    # --- nodes --------------------------------------------------------------------------------------------------

    def _launch(self, node: str) -> None:
        self.incarnations[node] = SimulatedIncarnation(node, self.plans[node])
        self._say(node, messages.Hello(sender=node, pid=0))

    def _happen(self, incarnation: SimulatedIncarnation, event: Any) -> None:
        """Handle an event of a node, which exists."""
        if isinstance(event, Departure):
            self.network.left(incarnation, event)
        elif isinstance(event, PendingSend):
            self.network.leave(incarnation, event)
        elif incarnation.is_frozen:
            incarnation.deferred.append(event)
        else:
            self._handle(incarnation, event)

    def _handle(self, incarnation: SimulatedIncarnation, event: Any) -> None:
        if isinstance(event, Look):
            self._look(incarnation)
            return
        if isinstance(event, PendingResult):
            event = Computed(self.pool.result(event.ticket))
        elif isinstance(event, Arrival):
            event = self.network.arrived(incarnation, event)
        elif isinstance(event, Renewed):
            if not event.connection.renew():
                return
            event = Connected()
        if isinstance(event, MessageReceived) and event.peer == NAME and self._manage(incarnation, event.message):
            return
        if incarnation.heart is None:
            return
        if isinstance(event, AtPoint):
            incarnation.told.add(event.point)
        self._carry_out(incarnation, self._effects(incarnation, incarnation.heart, event))
        if self.log and incarnation.name == "server":
            self.log.turn()

    def _effects(self, incarnation: SimulatedIncarnation, heart: Heart, event: Event) -> list[Effect]:
        try:
            return heart.handle(event, self.agenda.now)
        except OwnCodeError as error:
            raise error.on(incarnation.name) from error

    def _manage(self, incarnation: SimulatedIncarnation, message: messages.AnyMessage) -> bool:
        """Handle a message of the controller to a node; return whether its heart does not hear of it."""
        if isinstance(message, messages.Configure):
            incarnation.heart = self._make(message)
            self.alive = None
            ready = messages.Ready(sender=incarnation.name, data_address="data", management_address="management")
            if message.plan.role == "server":
                self.agenda.add(self.agenda.now + OBSERVE_S, incarnation, Look())
                ready = self._go_on(incarnation.heart, ready)
            self._say(incarnation.name, ready)
            return True
        if isinstance(message, messages.Stop):
            self.network.losses.has_ended = True
            self._say_goodbye(incarnation, message.reason)
            return True
        if isinstance(message, messages.Start):
            self.network.start(incarnation, message.began_s)
        return isinstance(message, messages.Inject)  # it is done from outside

    def _make(self, configure: messages.Configure) -> Heart:
        plan = configure.plan
        if plan.counts_traffic:
            self.network.traffic[plan.node] = TrafficCount()

        def snapshot(theta: NDArray[np.float32]) -> Sequence[Buffer]:
            return cut(self.arena.copy(theta).data)

        def kept() -> Kept:
            if plan.shard:
                return Kept(self.checkpoints.initial.copy(), backup=self.checkpoints.backup)
            return Kept(self.checkpoints.latest.theta.copy(), self.checkpoints.latest.state)

        return heart_of(configure, plan, kept, snapshot, self.arena.copy)

    def _go_on(self, heart: Heart, ready: messages.Ready) -> messages.Ready:
        """Let a server go on from its log, which has all that the journal has; return what it then says."""
        if self.log_folder is None or not isinstance(heart, ParameterServer):
            return ready
        self.log = ServerLog(heart, self.log_folder)
        replayed = self.log.begin(self.agenda.now)
        self.log.untold.clear()
        return self.log.tell(ready, replayed)

    def _say_goodbye(self, incarnation: SimulatedIncarnation, reason: str) -> None:
        """End a node that stops by itself."""
        if not incarnation.ended:
            self._end(incarnation)
            self._say(incarnation.name, messages.Bye(sender=incarnation.name, reason=reason))

    def _end(self, incarnation: SimulatedIncarnation) -> None:
        """Remove a node: none of its events will happen."""
        incarnation.ended = True
        self.alive = None
        del self.incarnations[incarnation.name]
        self._journal_account(incarnation)
        self.network.end(incarnation)
        for event in incarnation.unfinished(self.agenda):
            if isinstance(event, PendingResult):
                self.pool.cancel(event.ticket)
            elif isinstance(event, Arrival):
                self.network.losses.note(message_of(event), "its receiver ended")
        incarnation.heart = None  # releases its models, though the object may still be referred to

    def _look(self, incarnation: SimulatedIncarnation) -> None:
        """Report the server's traffic as often as a live server does, where there is any; all nodes' in the end."""
        if self.network.traffic[incarnation.name].is_news:
            self._journal_traffic(incarnation)
        self.agenda.add(self.agenda.now + OBSERVE_S, incarnation, Look())

    def _journal_traffic(self, incarnation: SimulatedIncarnation) -> None:
        traffic = self.network.traffic.get(incarnation.name)
        if traffic and incarnation.plan:
            for record in traffic.account(by_kind=incarnation.plan.counts_messages):
                self._journal(incarnation.name, record)

    def _journal_account(self, incarnation: SimulatedIncarnation) -> None:
        """Journal what only the node's shell knows in the end."""
        self._journal_traffic(incarnation)
        if incarnation.heart:
            self._carry_out(incarnation, incarnation.heart.handle(Observe(), self.agenda.now))

    # --- faults -------------------------------------------------------------------------------------------------

    def _inject(self, injection: Injection) -> str:
        """Do an action to a node; return why that is impossible, empty if it is done."""
        node = injection.node
        match injection.action:
            case "cut":
                self.network.cut(node)
            case "heal":
                self.network.heal(node)
            case "link":
                return self.network.change(injection)
            case "cpus":
                self.cpus[node] = self.plans[node].cpus if injection.cpus is None else injection.cpus
            case "launch" if node in self.incarnations:
                return "it is there already"
            case "launch":
                self._launch(node)
            case _ if node not in self.incarnations:
                return "it is not there"
            case _:
                self._inject_incarnation(self.incarnations[node], injection)
        return ""

    def _inject_incarnation(self, incarnation: SimulatedIncarnation, injection: Injection) -> None:
        self.alive = None
        match injection.action:
            case "kill":
                self._kill(incarnation, KILLED)
            case "memory":
                cap = self.plans[incarnation.name].memory_bytes
                self._kill(incarnation, out_of_memory({} if cap is None else {"limit": cap, "peak": cap}))
            case "freeze":
                if not incarnation.is_frozen and incarnation.heart:
                    self.last_signs.add(incarnation.name)
                incarnation.freeze(self.agenda)
            case "thaw":
                incarnation.thaw(self.agenda)

    def _kill(self, incarnation: SimulatedIncarnation, reason: str) -> None:
        self._end(incarnation)
        self._tell_controller(NodeExited(incarnation.name, reason))

    # --- messages, work and records -----------------------------------------------------------------------------

    def _send(self, incarnation: SimulatedIncarnation, effect: Send) -> None:
        if incarnation is self.control:
            if effect.to in self.incarnations:
                self.agenda.add(
                    self.agenda.now,
                    self.incarnations[effect.to],
                    MessageReceived(NAME, effect.message, effect.frames, 0),
                )
        elif effect.to == NAME:
            self._say(incarnation.name, effect.message, effect.frames)
        else:
            self.network.send(incarnation, effect)

    def _note_awaited(self, incarnation: SimulatedIncarnation, effects: list[Effect]) -> None:
        """Note the points at which a worker that has sent something is to be told of it."""
        if any(isinstance(effect, Send) and effect.to == "server" for effect in effects):
            incarnation.awaited = frozenset(effect.point for effect in effects if isinstance(effect, Await))

    def _compute(self, incarnation: SimulatedIncarnation, effect: Compute) -> None:
        took_s = job_time_s(self.plans[incarnation.name], effect.job, self.cpus[incarnation.name])
        due_s = self.agenda.now + took_s + effect.pause_s
        self.agenda.add(due_s, incarnation, PendingResult(self.pool.submit(incarnation.name, effect.job, due_s)))

    def _journal(self, node: str, record: records.Record) -> None:
        if isinstance(record, records.Ended):
            self.network.losses.has_ended = True
            for incarnation in list(self.incarnations.values()):  # frozen nodes, which say no goodbye
                self._end(incarnation)
        if isinstance(record, records.Resumed):
            self.checkpoints.give_up(record.step)
        t = round(self.agenda.now, 6)
        self.journal.write(t, node, record)
        self.watch.follow(t, node, record)
        if node != NAME and isinstance(record, REPORTED):
            report = messages.Report(sender=node, first=0, records=((self.agenda.now, record),))
            self._say(node, report)


def _may_lose_server(plan: Plan) -> bool:
    """Whether a fault may end a server that keeps a log."""
    injections = [step.injection for fault in plan.faults for step in fault.steps]
    ends = any(each.node == "server" and each.action in ("kill", "memory") for each in injections)
    return ends and plan.node("server").durability != "none"


def job_time_s(plan: NodePlan, job: Job, cpus: float | None) -> float:
    """Virtual seconds that `job` takes on the node's device with that cap."""
    if isinstance(job, EvaluationJob | ScoreJob):
        return 0.0
    share = float(len(job.batches)) if isinstance(job, GradientJob) else share_of(job, plan)
    beside_s = plan.task.compression_time_s if isinstance(job, GradientJob) else 0.0
    return (share * plan.task.gradient_time_s + beside_s) / (plan.compute_speed * min(1.0, cpus or 1.0))
