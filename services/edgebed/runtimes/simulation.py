"""The simulation: the same hearts in virtual time, on a heap of (time, counter, event).

What it simplifies: a message takes as long as the links of its two nodes need (see emulation/passage.py, which also
says what that leaves out), and none at all where neither has one; a gradient takes the task's `gradient_time` divided
by the device's compute speed and CPU share; server and evaluator take no time, so that the model is evaluated at every
interval exactly.

What it does not: the messages are the real ones, encoded and decoded, so their bytes are; gradients are computed, ahead
of their virtual time and on all cores. The order of events decides everything, so the same scenario and seed write the
same journal, byte for byte, with one process or several.
"""

import heapq
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

import numpy as np
from numpy.typing import NDArray

from edgebed.emulation.passage import Passage, passage_of
from edgebed.errors import EdgebedError
from edgebed.observe.journal import JournalWriter
from edgebed.roles import records
from edgebed.roles.controller import NAME, Controller, Given
from edgebed.roles.evaluator import Evaluator
from edgebed.roles.events import (
    Compute,
    Computed,
    Effect,
    Event,
    Heart,
    Interrupted,
    Journal,
    Received,
    Send,
    Stop,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.roles.parameter_server import ParameterServer
from edgebed.roles.work import EvaluationJob, Job
from edgebed.roles.worker import Worker
from edgebed.runtimes import crossing, tracing
from edgebed.runtimes.arena import Arena
from edgebed.runtimes.crossing import Arriving, Leaving
from edgebed.runtimes.pool import Run, make_pool
from edgebed.runtimes.signals import catch_signals, restore_signals
from edgebed.runtimes.traffic import TrafficCount
from edgebed.runtimes.watch import Watch
from edgebed.scenario.plan import NodePlan, Plan
from edgebed.wire import frames as codec
from edgebed.wire import messages
from edgebed.wire.tensors import Buffer, cut, decode_dense

REASON_LENGTH_MAX = 500


class Due:
    """A result that will be there when its time comes."""

    __slots__ = ("ticket",)

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket


class Simulation:
    """One trial in virtual time; `run` returns when it is over."""

    name = "simulation"

    def __init__(
        self,
        plan: Plan,
        theta: NDArray[np.float32],
        run_job: Run,
        processes: int,
        journal: JournalWriter,
        keep_checkpoint: Callable[[int, NDArray[np.float32]], None],
        watch: Callable[[Controller], Watch],
    ) -> None:
        """`theta` (n,) is the initial model; `run_job` does a node's job, here or in a forked process."""
        self.plan = plan
        self.theta = theta
        self.journal = journal
        self.keep_checkpoint = keep_checkpoint
        self.controller = Controller(plan, lambda _: Given(), self.name)
        self.watch = watch(self.controller)
        # each worker holds a model and an update; the evaluator, the server's last answer and its checkpoint a model
        self.arena = Arena(len(theta), 2 * len(plan.nodes) + 8)
        self.pool = make_pool(run_job, processes, self.arena)
        self.plans = {node.node: node for node in plan.nodes}
        self.hearts: dict[str, Heart] = {}
        self.passages = {
            node.node: passage for node in plan.nodes if (passage := passage_of(node, "model", "line")) is not None
        }
        """What holds a node's messages; nothing where its link is as fast as the machine."""
        self.heap: list[tuple[float, int, str, Event | Due | Leaving | Arriving]] = []
        self.count = 0
        self.now = 0.0
        self.traffic = TrafficCount()
        self.over = False
        self.interruptions = 0

    def run(self) -> None:
        """Handle events in order until the controller stops."""
        previous = catch_signals(self._interrupt)
        try:
            self._carry_out(NAME, self.controller.launch(0.0))
            for node in self.plan.nodes:
                self._at(0.0, NAME, _management(node.node, messages.Hello(sender=node.node, pid=0)))
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
                self._carry_out(NAME, self.controller.handle(Interrupted(), self.now))
            self.watch.tick(self.now)
            self.now, _, node, event = heapq.heappop(self.heap)
            if node == NAME:
                assert not isinstance(event, Due | Leaving | Arriving)
                self._control(event)
            elif node in self.hearts:
                self._happen(node, event)

    def _happen(self, node: str, event: Event | Due | Leaving | Arriving) -> None:
        """It is time for something at a node, which is there."""
        if isinstance(event, Leaving):
            self._pass(node, event.effect, event.first_s)
            return
        if isinstance(event, Due):
            event = Computed(self.pool.result(event.ticket))
        elif isinstance(event, Arriving):
            event = self._arrived(node, event.event)
        self._carry_out(node, self.hearts[node].handle(event, self.now))

    def _control(self, event: Event) -> None:
        if isinstance(event, Received) and isinstance(event.message, messages.Checkpoint):
            self.keep_checkpoint(event.message.version, decode_dense(event.message.tensors[0], event.frames))
        self._carry_out(NAME, self.controller.handle(event, self.now))

    def _at(self, at_s: float, node: str, event: Event | Due | Leaving | Arriving) -> None:
        self.count += 1
        heapq.heappush(self.heap, (at_s, self.count, node, event))

    def _carry_out(self, node: str, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._send(node, effect)
            elif isinstance(effect, Journal):
                self._journal(node, effect.record)
            elif isinstance(effect, Compute):
                self._compute(node, effect)
            elif isinstance(effect, Wake):
                self._at(effect.at_s, node, Woken(effect.token))
            elif isinstance(effect, Stop) and node == NAME:
                self.over = True
            elif isinstance(effect, Stop):
                self._end_node(node, effect.reason)

    # --- messages -----------------------------------------------------------------------------------------------

    def _send(self, node: str, effect: Send) -> None:
        if node == NAME:
            self._tell(effect.to, effect.message)
        elif effect.to == NAME:
            self._at(self.now, NAME, _management(node, effect.message, effect.frames))
        else:
            self._leave(node, effect)

    def _tell(self, node: str, message: messages.AnyMessage) -> None:
        """From the controller to a node, in no time."""
        if isinstance(message, messages.Configure):
            self.hearts[node] = self._make(message)
            ready = messages.Ready(sender=node, data_address="data", management_address="management")
            self._at(self.now, NAME, _management(node, ready))
        elif isinstance(message, messages.Stop):
            self._end_node(node, message.reason)
        else:
            if isinstance(message, messages.Start) and node in self.passages:
                self.passages[node].began(message.began_s)
            self._at(self.now, node, _management(NAME, message))

    def _leave(self, node: str, effect: Send) -> None:
        """From node to node: the message leaves as its sender's link allows."""
        passage = self._passage(node, effect.to)
        if passage:
            first_s, gone_s = passage.leave(self.now, crossing.payload_bytes(effect))
            self._at(gone_s, node, Leaving(effect, first_s))
        else:
            self._pass(node, effect, self.now)

    def _passage(self, node: str, peer: str) -> Passage | None:
        """What holds messages between `node` and `peer` at `node`; the evaluator uses the management network."""
        return None if "evaluator" in (node, peer) else self.passages.get(node)

    def _pass(self, node: str, effect: Send, first_s: float) -> None:
        """The message has left, as the real bytes, and arrives as its receiver's link allows."""
        buffers = codec.encode(crossing.stamp(effect.message, first_s), effect.frames)
        size = codec.size_bytes(buffers)
        message, frames = codec.decode(buffers, "data")
        if node == "server" and effect.to != "evaluator":
            self.traffic.sent(message, size)
        if self.plan.nodes[0].trace:
            self._journal(node, tracing.sent(effect.to, message, size))
        received = Received(node, message, frames, size)
        passage = self._passage(effect.to, node)
        if passage:
            self._at(passage.arrive(first_s, self.now, size), effect.to, Arriving(received))
        else:
            self._at(self.now, effect.to, self._arrived(effect.to, received))

    def _arrived(self, node: str, event: Received) -> Received:
        """The message is there: counted and traced."""
        if node == "server" and event.peer != "evaluator":
            self.traffic.received(event.bytes)
        if self.plan.nodes[0].trace:
            self._journal(node, tracing.received(event.peer, event.message, event.bytes))
        return event

    def _make(self, configure: messages.Configure) -> Heart:
        plan = configure.plan
        if plan.role == "server":
            return ParameterServer(
                plan, self.theta.copy(), configure.peers, lambda theta: cut(self.arena.copy(theta).data)
            )
        return Worker(plan, configure.incarnation, self.arena.copy) if plan.role == "worker" else Evaluator(plan)

    def _end_node(self, node: str, reason: str) -> None:
        if self.hearts.pop(node, None) is None:
            return
        if node == "server":
            self._journal(node, self.traffic.record())
        self._at(self.now, NAME, _management(node, messages.Bye(sender=node, reason=reason)))

    # --- work and records ---------------------------------------------------------------------------------------

    def _compute(self, node: str, effect: Compute) -> None:
        due_s = self.now + job_time_s(self.plans[node], effect.job) + effect.pause_s
        self._at(due_s, node, Due(self.pool.submit(node, effect.job, due_s)))

    def _journal(self, node: str, record: records.Record) -> None:
        self.journal.write(round(self.now, 6), node, record)
        self.watch.follow(record)
        if node != NAME and isinstance(record, (records.Update, records.Evaluated, records.Finished)):
            report = messages.Report(sender=node, first=0, records=((self.now, record),))
            self._at(self.now, NAME, _management(node, report))


def job_time_s(plan: NodePlan, job: Job) -> float:
    """Virtual time that `job` takes on the node's device."""
    if isinstance(job, EvaluationJob):
        return 0.0
    return plan.task.gradient_time_s / (plan.compute_speed * min(1.0, plan.cpus or 1.0))


def _management(peer: str, message: messages.AnyMessage, frames: Sequence[Buffer] = ()) -> Received:
    return Received(peer, message, frames, 0)
