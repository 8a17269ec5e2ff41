"""The simulation: the same hearts in virtual time, on an agenda of what happens when.

    agenda.py                 events to come
    simulated_node.py         an incarnation of a node: its heart, its work, frozen or not; fleet.py: all that exist now
    devices.py, hearts.py     how long work takes, and who does it; what a node is built from
    simulated_launcher.py     what is done to nodes from outside
    simulated_network.py      messages on their way; simulated_lanes.py: what passes limited links at a time;
                              simulated_connection.py: what an outage does to them

What it simplifies: a message takes as long as the links of its two nodes need (emulation/model/link_model.py also says
what that leaves out), and none at all where neither has one; a gradient takes its counted operations over the speed of
the device's core, or the task's `gradient_time`, divided by the compute speed and the CPU share; server and evaluator
take no time, so that the model is evaluated at every interval exactly; a restart takes the scenario's `restart_time`.

What it does not: the messages are the real ones, encoded and decoded, so their bytes are; gradients are computed, ahead
of their virtual time and on all cores. The order of events decides everything, so the same scenario and seed write the
same journal, byte for byte, with one process or several.

When the user ends a trial, gradients that are being computed are given up: nobody waits for local work of minutes.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from edgebed.core import records
from edgebed.core.errors import EdgebedError, InfrastructureError, OwnCodeError
from edgebed.core.plan import TrainingPlan
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.journal import JournalWriter
from edgebed.roles.control.admission import Admission
from edgebed.roles.control.controller import TRAINING, Controller, Phase, ResumedTrial
from edgebed.roles.control.name import NAME
from edgebed.roles.events import (
    Append,
    ApplyInjection,
    AtPoint,
    Compute,
    Computed,
    Connected,
    Effect,
    EndNode,
    Event,
    HealthChecked,
    Heart,
    Interrupted,
    Journal,
    MessageReceived,
    Observe,
    Release,
    Send,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.runtimes.signals import catch_signals, restore_signals
from edgebed.runtimes.simulation.agenda import Agenda
from edgebed.runtimes.simulation.devices import SimulatedDevices
from edgebed.runtimes.simulation.fleet import Fleet
from edgebed.runtimes.simulation.hearts import Hearts
from edgebed.runtimes.simulation.pool import GivenUp, Run
from edgebed.runtimes.simulation.simulated_connection import Arrival, Passed, PendingSend, Renewed, Retried, message_of
from edgebed.runtimes.simulation.simulated_lanes import Departure, Turn
from edgebed.runtimes.simulation.simulated_launcher import SimulatedLauncher
from edgebed.runtimes.simulation.simulated_network import SimulatedNetwork
from edgebed.runtimes.simulation.simulated_node import PendingResult, SimulatedIncarnation, Up
from edgebed.runtimes.traffic import OBSERVE_S, TrafficCount
from edgebed.runtimes.watch import StatusFeed
from edgebed.wire import messages
from edgebed.wire.tensors import Buffer, decode_dense

AGAIN_S = 1.0
"""Virtual time until a result that was given up is asked for again: its node is told to end before."""
PATIENCE_S = 1.0
"""Time within which two signals are one: a terminal and a program between may both send it."""
REPORTED = (records.Update, records.Step, records.Evaluated, records.Clients, records.Finished)
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
        plan: TrainingPlan,
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
        self.checkpoints = checkpoints
        self.journal = journal
        self.devices = SimulatedDevices(plan, checkpoints.latest.theta, run_job, processes)
        self.hearts = Hearts(plan, checkpoints, self.devices.arena)
        self.controller = Controller(plan, Admission(plan, self.hearts.inputs), self.name, past=past)
        self.watch = watch(self.controller)
        self.agenda: Agenda[SimulatedIncarnation] = Agenda(now)
        self.control = SimulatedIncarnation(NAME)
        self.fleet = Fleet(self.agenda)
        self.network = SimulatedNetwork(plan, self.agenda, self.fleet, self._journal)
        self.launcher = SimulatedLauncher(self.fleet, self.network, self.devices, self._tell_controller, self._end)
        self.interruptions = 0
        self.interrupted_s = 0.0
        """When the first came, by this machine's clock."""

    def run(self) -> None:
        """Handle events in order until the controller stops."""
        previous = catch_signals(self._interrupt)
        try:
            self._carry_out(self.control, self.controller.launch(self.agenda.now))
            for node in self.controller.members:
                self.launcher.launch(node, after_s=0.0)
            self._serve()
        except EdgebedError as error:
            with suppress(EdgebedError):  # the journal itself may be what failed
                self._journal(NAME, records.Ended.failed(str(error)))
            raise
        finally:
            restore_signals(previous)
            self.devices.pool.close()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """End in order, without the work in hand; asked twice, at once where something else takes long."""
        self.interruptions += 1
        if self.interruptions == 1:
            self.interrupted_s = time.monotonic()
        elif not self.watch.interrupted and time.monotonic() > self.interrupted_s + PATIENCE_S:
            raise KeyboardInterrupt
        self.devices.pool.give_up()

    def _serve(self) -> None:
        while not self.control.ended:
            if self.interruptions > 0 and not self.watch.interrupted:
                self.watch.interrupted = True
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
        incarnation.note_awaited(effects)
        for effect in effects:
            if isinstance(effect, Send):
                self._send(incarnation, effect)
            elif isinstance(effect, Append):
                self.hearts.append(effect)
            elif isinstance(effect, Journal):
                self._journal(incarnation.name, effect.record)
            elif isinstance(effect, Compute):
                due_s, result = self.devices.submit(incarnation.name, effect, self.agenda.now)
                self.agenda.add(due_s, incarnation, result)
            elif isinstance(effect, Wake):
                self.agenda.add(effect.at_s, incarnation, Woken(effect.token))
            elif isinstance(effect, Release):
                self.network.proceed(incarnation)
            elif isinstance(effect, ApplyInjection):
                self._tell_controller(self.launcher.inject(effect))
            elif isinstance(effect, EndNode):
                self._say_goodbye(incarnation, effect.reason)

    # --- the controller -----------------------------------------------------------------------------------------

    def _control(self, event: Any) -> None:
        before = self.controller.phase
        if isinstance(event, Check):
            event = self.fleet.check()
        elif isinstance(event, MessageReceived) and isinstance(event.message, messages.Checkpoint):
            self.checkpoints.keep_sent(event.message, event.frames)
        elif isinstance(event, MessageReceived) and isinstance(event.message, messages.Keep):
            keep = event.message
            self.checkpoints.keep_backup(keep.step, keep.parts, decode_dense(keep.tensors[0], event.frames))
        if isinstance(event, HealthChecked) and before in TRAINING:
            self._check_later()
        self._carry_out(self.control, self.controller.handle(event, self.agenda.now))
        if before is Phase.LAUNCHED and self.controller.phase is Phase.RUNNING:
            self._check_later()

    def _check_later(self) -> None:
        self.agenda.add(self.agenda.now + self.controller.plan.check_s, self.control, Check())

    def _tell_controller(self, event: Event) -> None:
        self.agenda.add(self.agenda.now, self.control, event)

    def _say(self, node: str, message: messages.AnyMessage, frames: Sequence[Buffer] = ()) -> None:
        """Send a message from a node to the controller, which takes no time."""
        self._tell_controller(MessageReceived(node, message, frames, 0))

    # --- nodes --------------------------------------------------------------------------------------------------

    def _happen(self, incarnation: SimulatedIncarnation, event: Any) -> None:
        """Handle an event of a node, which exists."""
        if isinstance(event, Turn):
            self.network.turn(event)
        elif isinstance(event, Departure):
            self.network.enter(event)
        elif isinstance(event, Passed):
            self.network.left(event.departure, event.first_s)
        elif isinstance(event, PendingSend):
            self.network.leave(incarnation, event)
        elif incarnation.is_frozen:
            incarnation.deferred.append(event)
        else:
            self._handle(incarnation, event)

    def _handle(self, incarnation: SimulatedIncarnation, event: Any) -> None:
        if isinstance(event, Up):
            self._say(incarnation.name, messages.Hello(sender=incarnation.name, pid=0))
            return
        if isinstance(event, Look):
            self._look(incarnation)
            return
        if isinstance(event, Retried):
            event.connection.go_on()
            return
        if isinstance(event, PendingResult):
            event = self._computed(incarnation, event)
        elif isinstance(event, Arrival):
            event = self.network.arrived(incarnation, event)
        elif isinstance(event, Renewed):
            if not event.connection.renew():
                return
            event = Connected()
        if isinstance(event, MessageReceived) and event.peer == NAME and self._manage(incarnation, event.message):
            return
        if incarnation.heart and event:
            self._react(incarnation, incarnation.heart, event)

    def _computed(self, incarnation: SimulatedIncarnation, pending: PendingResult) -> Computed | None:
        """The result of a node's work; None where it was given up, as the node is to end."""
        try:
            return Computed(self.devices.pool.result(pending.ticket))
        except GivenUp:
            self.agenda.add(self.agenda.now + AGAIN_S, incarnation, pending)
            return None

    def _react(self, incarnation: SimulatedIncarnation, heart: Heart, event: Event) -> None:
        if isinstance(event, AtPoint):
            incarnation.told.add(event.point)
        try:
            effects = heart.handle(event, self.agenda.now)
        except OwnCodeError as error:
            raise error.on(incarnation.name) from error
        self._carry_out(incarnation, effects)
        self.hearts.turn(heart)

    def _manage(self, incarnation: SimulatedIncarnation, message: messages.AnyMessage) -> bool:
        """Handle a message of the controller to a node; return whether its heart does not hear of it."""
        if isinstance(message, messages.Configure):
            heart = self.hearts.build(message)
            self.fleet.equip(incarnation, heart)
            if message.plan.counts_traffic:
                self.network.traffic[incarnation.name] = TrafficCount()
            if message.plan.role == "server":
                self.agenda.add(self.agenda.now + OBSERVE_S, incarnation, Look())
            ready = messages.Ready(sender=incarnation.name, data_address="data", management_address="management")
            self._say(incarnation.name, self.hearts.go_on(heart, ready, self.agenda.now))
            return True
        if isinstance(message, messages.Stop):
            self.network.losses.has_ended = True
            self._say_goodbye(incarnation, message.reason)
            return True
        if isinstance(message, messages.Start):
            self.network.start(incarnation, message.began_s)
        return isinstance(message, messages.Inject)  # it is done from outside

    def _say_goodbye(self, incarnation: SimulatedIncarnation, reason: str) -> None:
        """End a node that stops by itself; the controller has nobody to say it to."""
        if incarnation is self.control:
            self.control.ended = True
        elif not incarnation.ended:
            self._end(incarnation)
            self._say(incarnation.name, messages.Bye(sender=incarnation.name, reason=reason))

    def _end(self, incarnation: SimulatedIncarnation) -> None:
        """Remove a node: none of its events will happen."""
        self.fleet.end(incarnation)
        self.network.report(incarnation)
        if incarnation.heart:  # what it says in the end
            self._carry_out(incarnation, incarnation.heart.handle(Observe(), self.agenda.now))
        self.network.end(incarnation)
        for event in incarnation.unfinished(self.agenda):
            if isinstance(event, PendingResult):
                self.devices.pool.cancel(event.ticket)
            elif isinstance(event, Arrival):
                self.network.losses.note(message_of(event), "its receiver ended")
        incarnation.heart = None  # releases its models, though the object may still be referred to

    def _look(self, incarnation: SimulatedIncarnation) -> None:
        """Report the server's traffic as often as a live server does, where there is any; all nodes' in the end."""
        if self.network.traffic[incarnation.name].is_news:
            self.network.report(incarnation)
        self.agenda.add(self.agenda.now + OBSERVE_S, incarnation, Look())

    # --- messages and records -----------------------------------------------------------------------------------

    def _send(self, incarnation: SimulatedIncarnation, effect: Send) -> None:
        if incarnation is self.control:
            if to := self.fleet.get(effect.to):
                self.agenda.add(self.agenda.now, to, MessageReceived(NAME, effect.message, effect.frames, 0))
        elif effect.to == NAME:
            self._say(incarnation.name, effect.message, effect.frames)
        else:
            self.network.send(incarnation, effect)

    def _journal(self, node: str, record: records.Record) -> None:
        if isinstance(record, records.Ended):
            self.network.losses.has_ended = True
            for incarnation in list(self.fleet.values()):  # frozen nodes, which say no goodbye
                self._end(incarnation)
        if isinstance(record, records.Resumed):
            self.checkpoints.give_up(record.step)
        t = round(self.agenda.now, 6)
        self.journal.write(t, node, record)
        self.watch.follow(t, node, record)
        if node != NAME and isinstance(record, REPORTED):
            report = messages.Report(sender=node, first=0, records=((self.agenda.now, record),))
            self._say(node, report)
