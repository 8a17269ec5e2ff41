"""The simulation: the same hearts in virtual time, on a heap of (time, counter, event).

What it simplifies: a message arrives in the instant it is sent, whatever its size; a gradient takes the task's
`gradient_time` divided by the device's compute speed and CPU share; server and evaluator take no time, so that the
model is evaluated at every interval exactly.

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

from edgebed.errors import EdgebedError
from edgebed.observe.journal import JournalWriter
from edgebed.roles import records
from edgebed.roles.controller import NAME, Controller
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
    Wake,
    Woken,
)  # fmt: skip
from edgebed.roles.parameter_server import ParameterServer
from edgebed.roles.work import EvaluationJob, Job
from edgebed.roles.worker import Worker
from edgebed.runtimes import tracing
from edgebed.runtimes.arena import Arena
from edgebed.runtimes.pool import Run, make_pool
from edgebed.runtimes.signals import catch_signals, restore_signals
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
        self.controller = Controller(plan, lambda _: ((), ()), self.name)
        self.watch = watch(self.controller)
        # each worker holds a model and an update; the evaluator, the server's last answer and its checkpoint a model
        self.arena = Arena(len(theta), 2 * len(plan.nodes) + 8)
        self.pool = make_pool(run_job, processes, self.arena)
        self.plans = {node.node: node for node in plan.nodes}
        self.hearts: dict[str, Heart] = {}
        self.heap: list[tuple[float, int, str, Event | Due]] = []
        self.count = 0
        self.now = 0.0
        self.traffic = {"ingress": 0, "egress": 0}
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
                assert not isinstance(event, Due)
                self._control(event)
            elif node in self.hearts:
                if isinstance(event, Due):
                    event = Computed(self.pool.result(event.ticket))
                self._carry_out(node, self.hearts[node].handle(event, self.now))

    def _control(self, event: Event) -> None:
        if isinstance(event, Received) and isinstance(event.message, messages.Checkpoint):
            self.keep_checkpoint(event.message.version, decode_dense(event.message.tensors[0], event.frames))
        self._carry_out(NAME, self.controller.handle(event, self.now))

    def _at(self, at_s: float, node: str, event: Event | Due) -> None:
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
            elif node == NAME:
                self.over = True
            else:
                self._end_node(node, effect.reason)

    # --- messages -----------------------------------------------------------------------------------------------

    def _send(self, node: str, effect: Send) -> None:
        if node == NAME:
            self._tell(effect.to, effect.message)
        elif effect.to == NAME:
            self._at(self.now, NAME, _management(node, effect.message, effect.frames))
        else:
            self._deliver(node, effect)

    def _tell(self, node: str, message: messages.AnyMessage) -> None:
        """From the controller to a node, in no time."""
        if isinstance(message, messages.Configure):
            self.hearts[node] = self._make(message)
            ready = messages.Ready(sender=node, data_address="data", management_address="management")
            self._at(self.now, NAME, _management(node, ready))
        elif isinstance(message, messages.Stop):
            self._end_node(node, message.reason)
        else:
            self._at(self.now, node, _management(NAME, message))

    def _deliver(self, node: str, effect: Send) -> None:
        """From node to node, as the real bytes."""
        buffers = codec.encode(effect.message, effect.frames)
        size = codec.size_bytes(buffers)
        message, frames = codec.decode(buffers, "data")
        if "evaluator" not in (node, effect.to):  # which uses the management network
            self.traffic["egress" if node == "server" else "ingress"] += size
        if self.plan.nodes[0].trace:
            self._journal(node, tracing.sent(effect.to, message, size))
            self._journal(effect.to, tracing.received(node, message, size))
        self._at(self.now, effect.to, Received(node, message, frames, size))

    def _make(self, configure: messages.Configure) -> Heart:
        plan = configure.plan
        if plan.role == "server":
            return ParameterServer(
                plan, self.theta.copy(), configure.peers, lambda theta: cut(self.arena.copy(theta).data)
            )
        return Worker(plan, configure.incarnation) if plan.role == "worker" else Evaluator(plan)

    def _end_node(self, node: str, reason: str) -> None:
        if self.hearts.pop(node, None) is None:
            return
        if node == "server":
            self._journal(
                node,
                records.Traffic(ingress_payload=self.traffic["ingress"], egress_payload=self.traffic["egress"]),
            )
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
