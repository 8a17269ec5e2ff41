"""The simulation: the same hearts in virtual time, on an agenda of what happens when.

    agenda.py                 what happens next
    simulated_node.py         a node's life: its heart, its work, frozen or not
    simulated_network.py      messages on their way; simulated_connection.py: what an outage does to them

What it simplifies: a message takes as long as the links of its two nodes need (see emulation/passage.py, which also
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

from edgebed.algorithms.registry import rule_of
from edgebed.errors import EdgebedError, InfrastructureError
from edgebed.observe.checkpoints import Checkpoints
from edgebed.observe.journal import JournalWriter
from edgebed.roles import records
from edgebed.roles.activation_store import ActivationStore
from edgebed.roles.batch_shard import shard_of
from edgebed.roles.controller import NAME, Controller, Given, Past, Phase
from edgebed.roles.evaluator import Evaluator
from edgebed.roles.events import (
    AtPoint,
    Await,
    Checked,
    Compute,
    Computed,
    Connected,
    Effect,
    Event,
    Heart,
    Inject,
    Injected,
    Interrupted,
    Journal,
    NodeExited,
    Received,
    Send,
    Stop,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.roles.follower import Follower
from edgebed.roles.layer_shard import LayerShard
from edgebed.roles.module_host import ModuleHost
from edgebed.roles.parameter_server import ParameterServer
from edgebed.roles.shard_server import ShardServer
from edgebed.roles.shard_time import share_of
from edgebed.roles.work import EvaluationJob, GradientJob, Job, ScoreJob
from edgebed.roles.worker import Worker
from edgebed.runtimes.agenda import Agenda
from edgebed.runtimes.arena import Arena
from edgebed.runtimes.last_words import out_of_memory
from edgebed.runtimes.pool import BATCH, IN_FLIGHT, Pool, Run
from edgebed.runtimes.signals import catch_signals, restore_signals
from edgebed.runtimes.simulated_connection import Arrival, Departure, Renewed, Waiting, message_of
from edgebed.runtimes.simulated_network import Network
from edgebed.runtimes.simulated_node import Due, Life
from edgebed.runtimes.traffic import OBSERVE_S, TrafficCount
from edgebed.runtimes.watch import Watch
from edgebed.scenario.plan import Injection, NodePlan, Plan
from edgebed.wire import messages
from edgebed.wire.tensors import Buffer, cut, decode_dense

REASON_LENGTH_MAX = 500
KILLED = "killed by SIGKILL"


REPORTED = (records.Update, records.Step, records.Evaluated, records.Finished)
"""What the controller hears of."""


class Check:
    """It is time to see who is alive."""


class Look:
    """It is time for the server to look at what has passed its data socket, and to tell it."""


class Simulation:
    """One trial in virtual time; `run` returns when it is over."""

    name = "simulation"

    def __init__(
        self,
        plan: Plan,
        checkpoints: Checkpoints,
        run_job: Run,
        processes: int,
        journal: JournalWriter,
        watch: Callable[[Controller], Watch],
        past: Past | None = None,
        now: float = 0.0,
    ) -> None:
        """`checkpoints` has the initial model; `run_job` does a node's job, here or in a forked process.

        A trial that has been going on before has a `past`, and its clock goes on from `now`.
        """
        self.plan = plan
        self.checkpoints = checkpoints
        self.journal = journal
        self.controller = Controller(plan, self._given, self.name, past=past)
        self.watch = watch(self.controller)
        # each worker holds a model and an update; the evaluator, the server's last answer and its checkpoint a model;
        # children of the pool may hold both for work that nobody waits for any more
        slots = 2 * len(plan.nodes) + 8 + 2 * IN_FLIGHT * BATCH * processes
        self.arena = Arena(len(checkpoints.latest.theta), slots)
        self.pool = Pool(run_job, processes, self.arena)
        self.plans = {node.node: node for node in plan.nodes}
        self.cpus = {node.node: node.cpus for node in plan.nodes}
        """The caps as they are now."""
        self.agenda: Agenda[Life] = Agenda(now)
        self.control = Life(NAME)
        self.lives: dict[str, Life] = {}
        """The present one of each node that is there."""
        self.network = Network(plan, self.agenda, self.lives, self._journal)
        self.alive: frozenset[str] | None = None
        """Who gives signs of life at present; None: to be looked at again."""
        self.last_signs: set[str] = set()
        """Who has given the last one since the last check."""
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
            life, event = entry
            if life is self.control:
                self._control(event)
            elif not life.ended:
                self._happen(life, event)

    def _carry_out(self, life: Life, effects: list[Effect]) -> None:
        if life.plan and life.plan.points:
            self._note_awaited(life, effects)
        for effect in effects:
            if isinstance(effect, Send):
                self._send(life, effect)
            elif isinstance(effect, Journal):
                self._journal(life.name, effect.record)
            elif isinstance(effect, Compute):
                self._compute(life, effect)
            elif isinstance(effect, Wake):
                self.agenda.add(effect.at_s, life, Woken(effect.token))
            elif isinstance(effect, Inject):
                problem = self._inject(effect.injection)
                self._tell_controller(Injected(effect.number, problem))
            elif isinstance(effect, Stop) and life is self.control:
                self.over = True
            elif isinstance(effect, Stop):
                self._say_goodbye(life, effect.reason)

    # --- the controller -----------------------------------------------------------------------------------------

    def _control(self, event: Any) -> None:
        if isinstance(event, Check):
            event = self._check()
        elif isinstance(event, Received) and isinstance(event.message, messages.Checkpoint):
            self.checkpoints.keep_sent(event.message, event.frames)
        elif isinstance(event, Received) and isinstance(event.message, messages.Keep):
            keep = event.message
            self.checkpoints.keep_backup(keep.step, keep.parts, decode_dense(keep.tensors[0], event.frames))
        self._carry_out(self.control, self.controller.handle(event, self.agenda.now))
        if not self.checking and self.controller.phase is Phase.RUNNING:
            self.checking = True
            self.agenda.add(self.agenda.now + self.plan.check_s, self.control, Check())

    def _check(self) -> Checked:
        """Who has given a sign of life; the next check is due while training goes on."""
        if self.controller.phase in (Phase.RUNNING, Phase.FINISHING):
            self.agenda.add(self.agenda.now + self.plan.check_s, self.control, Check())
        if self.alive is None:
            self.alive = frozenset(name for name, life in self.lives.items() if life.heart and not life.is_frozen)
        if not self.last_signs:
            return Checked(self.alive)
        last_signs, self.last_signs = self.last_signs, set()
        return Checked(self.alive | last_signs)

    def _given(self, node: NodePlan) -> Given:
        """The version of the model that the server begins with, which it is given in no message."""
        if node.role != "server":
            return Given()
        backup = self.checkpoints.backup
        return Given(version=self.checkpoints.latest.version, backup_step=backup.step if backup else 0)

    def _tell_controller(self, event: Event) -> None:
        self.agenda.add(self.agenda.now, self.control, event)

    def _say(self, node: str, message: messages.AnyMessage, frames: Sequence[Buffer] = ()) -> None:
        """From a node to the controller, in no time."""
        self._tell_controller(Received(node, message, frames, 0))

    # --- nodes --------------------------------------------------------------------------------------------------

    def _launch(self, node: str) -> None:
        self.lives[node] = Life(node, self.plans[node])
        self._say(node, messages.Hello(sender=node, pid=0))

    def _happen(self, life: Life, event: Any) -> None:
        """It is time for something at a node, which is there."""
        if isinstance(event, Departure):
            self.network.left(life, event)
        elif isinstance(event, Waiting):
            self.network.leave(life, event)
        elif life.is_frozen:
            life.deferred.append(event)
        else:
            self._handle(life, event)

    def _handle(self, life: Life, event: Any) -> None:
        if isinstance(event, Look):
            self._look(life)
            return
        if isinstance(event, Due):
            event = Computed(self.pool.result(event.ticket))
        elif isinstance(event, Arrival):
            event = self.network.arrived(life, event)
        elif isinstance(event, Renewed):
            if not event.connection.renew():
                return
            event = Connected()
        if isinstance(event, Received) and event.peer == NAME and self._manage(life, event.message):
            return
        if life.heart is None:
            return
        self._carry_out(life, life.heart.handle(event, self.agenda.now))
        if isinstance(event, AtPoint):
            life.told.add(event.point)
        if life.told and isinstance(life.heart, Worker) and not life.heart.held:
            self.network.proceed(life)

    def _manage(self, life: Life, message: messages.AnyMessage) -> bool:
        """What the controller says to a node; whether its heart does not hear of it."""
        if isinstance(message, messages.Configure):
            life.heart = self._make(message)
            self.alive = None
            if message.plan.role == "server":
                self.agenda.add(self.agenda.now + OBSERVE_S, life, Look())
            ready = messages.Ready(sender=life.name, data_address="data", management_address="management")
            self._say(life.name, ready)
            return True
        if isinstance(message, messages.Stop):
            self.network.losses.has_ended = True
            self._say_goodbye(life, message.reason)
            return True
        if isinstance(message, messages.Start):
            self.network.start(life, message.began_s)
        return isinstance(message, messages.Inject)  # it is done from outside

    def _make(self, configure: messages.Configure) -> Heart:
        plan = configure.plan
        if plan.counts_traffic:
            self.network.traffic[plan.node] = TrafficCount()

        def snapshot(theta: NDArray[np.float32]) -> Sequence[Buffer]:
            return cut(self.arena.copy(theta).data)

        match plan.role:
            case "server" if plan.shard:
                theta = self.checkpoints.initial.copy()
                return ShardServer(plan, theta, snapshot, configure.incarnation, self.checkpoints.backup)
            case "server":
                latest = self.checkpoints.latest
                theta = latest.theta.copy()
                return ParameterServer(plan, theta, configure.peers, snapshot, configure.version, latest.state)
            case "store":
                return ActivationStore(plan)
            case "modules":
                return ModuleHost(plan, configure.incarnation)
            case "worker" if plan.shard:
                return shard_of(plan, rule_of(plan.method), configure.incarnation)
            case "worker":
                return Worker(plan, configure.incarnation, self.arena.copy)
        return Evaluator(plan)

    def _say_goodbye(self, life: Life, reason: str) -> None:
        """A node ends by itself."""
        if not life.ended:
            self._end(life)
            self._say(life.name, messages.Bye(sender=life.name, reason=reason))

    def _end(self, life: Life) -> None:
        """A node is no more: nothing that was to happen to it does."""
        life.ended = True
        self.alive = None
        del self.lives[life.name]
        self._journal_account(life)
        self.network.end(life)
        for event in life.unfinished(self.agenda):
            if isinstance(event, Due):
                self.pool.cancel(event.ticket)
            elif isinstance(event, Arrival):
                self.network.losses.note(message_of(event), "its receiver ended")
        life.heart = None  # it lets go of its models, though somebody may still remember the life

    def _look(self, life: Life) -> None:
        """The server's traffic is told as often as by a live one, where there is any; everybody's in the end."""
        if self.network.traffic[life.name].is_news:
            self._journal_traffic(life)
        self.agenda.add(self.agenda.now + OBSERVE_S, life, Look())

    def _journal_traffic(self, life: Life) -> None:
        traffic = self.network.traffic.get(life.name)
        if traffic and life.plan:
            for record in traffic.account(by_kind=life.plan.counts_messages):
                self._journal(life.name, record)

    def _journal_account(self, life: Life) -> None:
        """What only its shell knows in the end."""
        self._journal_traffic(life)
        if isinstance(life.heart, Follower) and life.heart.history is not None:
            self._journal(life.name, life.heart.phases(self.agenda.now))
            if isinstance(life.heart, LayerShard):
                self._journal(life.name, life.heart.progress())
        elif isinstance(life.heart, Worker):
            self._journal(life.name, life.heart.pushes())

    # --- faults -------------------------------------------------------------------------------------------------

    def _inject(self, injection: Injection) -> str:
        """Do it to a node; why that is impossible, empty if it is done."""
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
            case "launch" if node in self.lives:
                return "it is there already"
            case "launch":
                self._launch(node)
            case _ if node not in self.lives:
                return "it is not there"
            case _:
                self._inject_life(self.lives[node], injection)
        return ""

    def _inject_life(self, life: Life, injection: Injection) -> None:
        self.alive = None
        match injection.action:
            case "kill":
                self._kill(life, KILLED)
            case "memory":
                cap = self.plans[life.name].memory_bytes
                self._kill(life, out_of_memory({} if cap is None else {"limit": cap, "peak": cap}))
            case "freeze":
                if not life.is_frozen and life.heart:
                    self.last_signs.add(life.name)
                life.freeze(self.agenda)
            case "thaw":
                life.thaw(self.agenda)

    def _kill(self, life: Life, reason: str) -> None:
        self._end(life)
        self._tell_controller(NodeExited(life.name, reason))

    # --- messages, work and records -----------------------------------------------------------------------------

    def _send(self, life: Life, effect: Send) -> None:
        if life is self.control:
            if effect.to in self.lives:
                self.agenda.add(
                    self.agenda.now, self.lives[effect.to], Received(NAME, effect.message, effect.frames, 0)
                )
        elif effect.to == NAME:
            self._say(life.name, effect.message, effect.frames)
        else:
            self.network.send(life, effect)

    def _note_awaited(self, life: Life, effects: list[Effect]) -> None:
        """A worker has sent something: these are the points at which it is to be told of it."""
        if any(isinstance(effect, Send) and effect.to == "server" for effect in effects):
            life.awaited = frozenset(effect.point for effect in effects if isinstance(effect, Await))

    def _compute(self, life: Life, effect: Compute) -> None:
        took_s = job_time_s(self.plans[life.name], effect.job, self.cpus[life.name])
        due_s = self.agenda.now + took_s + effect.pause_s
        self.agenda.add(due_s, life, Due(self.pool.submit(life.name, effect.job, due_s)))

    def _journal(self, node: str, record: records.Record) -> None:
        if isinstance(record, records.Ended):
            self.network.losses.has_ended = True
            for life in list(self.lives.values()):  # those that say no goodbye: the frozen
                self._end(life)
        if isinstance(record, records.Resumed):
            self.checkpoints.give_up(record.step)
        t = round(self.agenda.now, 6)
        self.journal.write(t, node, record)
        self.watch.follow(t, node, record)
        if node != NAME and isinstance(record, REPORTED):
            report = messages.Report(sender=node, first=0, records=((self.agenda.now, record),))
            self._say(node, report)


def job_time_s(plan: NodePlan, job: Job, cpus: float | None) -> float:
    """Virtual time that `job` takes on the node's device with that cap."""
    if isinstance(job, EvaluationJob | ScoreJob):
        return 0.0
    share = float(len(job.batches)) if isinstance(job, GradientJob) else share_of(job, plan)
    beside_s = plan.task.compression_time_s if isinstance(job, GradientJob) else 0.0
    return (share * plan.task.gradient_time_s + beside_s) / (plan.compute_speed * min(1.0, cpus or 1.0))
