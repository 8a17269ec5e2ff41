"""The controller: brings the nodes up, starts them together, decides when the trial is over, brings them down.

    launched --all ready, or the join deadline--> running --last update--> finishing --final evaluation--> ending, over

It sees the management network and the ends of processes. What it knows is for recording, for restarting nodes and
for ending the trial; the server learns who begins, and who has failed only where the scenario says `detector: oracle`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from statistics import fmean
from typing import NamedTuple

import msgspec

from edgebed.core.errors import EdgebedError
from edgebed.core.plan import NodePlan, Plan
from edgebed.core.records import Ended, Evaluated, Finished, Node, Note, Restored, Step, Trial, Update
from edgebed.roles.control.director import Director
from edgebed.roles.control.health import MISSED_MAX, Health
from edgebed.roles.control.members import COMING, ENDS, PRESENT, Member, State
from edgebed.roles.events import (
    CommandReceived,
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
    unexpected,
)  # fmt: skip
from edgebed.wire import messages
from edgebed.wire.messages import Tensor
from edgebed.wire.shared_links import share
from edgebed.wire.tensors import Buffer

NAME = "controller"
GRACE_S = 5.0  # for nodes to say goodbye, after they may have lingered; one that was frozen or killed never does
GRACE_A_NODE_S = 0.02  # hundreds of nodes on two cores cannot all have said it in five seconds


class NodeInputs(NamedTuple):
    """What a node is given besides its plan."""

    tensors: tuple[Tensor, ...] = ()
    """Model; or the node's part of the data, and the model's constants, which training does not change."""
    frames: Sequence[Buffer] = ()
    version: int = 0
    """Version of the model: above 0 the model is that of a checkpoint."""
    backup_step: int = 0
    """Server of shards: step of the backup that it resumes from."""
    backup_parts: tuple[tuple[str, int], ...] = ()
    """Parts of that backup; empty: there is none."""


Payload = Callable[[NodePlan], NodeInputs]
"""Function that says what a node is given at that moment."""


class ResumedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a trial that is resumed after its controller had ended."""

    began_s: float
    """When training began, in seconds of the trial, whose clock stood still meanwhile."""
    until_s: float
    """Last time known of the trial; its clock resumes from there."""
    updates: int
    """Highest version that the trial's model had; the checkpoint's may be lower."""
    incarnations: dict[str, int]
    """Highest incarnation that each node had."""
    update_bytes: int = 0
    """Payload of all updates that were applied."""
    durable: int = 0
    """Records that the journal has of what is in the server's log."""
    triggered_s: dict[tuple[str, str], float] = {}
    """When each fault was first triggered, by name and node, in seconds of the trial."""


class Phase(Enum):
    """Phases of a trial."""

    LAUNCHED = "starting"
    RUNNING = "training"
    FINISHING = "final evaluation"
    ENDING = "stopping"
    OVER = "over"


class Controller:
    """The heart of the controller."""

    def __init__(
        self,
        plan: Plan,
        payload: Payload,
        runtime: str,
        epoch_ns: int = 0,
        *,
        code: str = "",
        other_code_remedy: str = "",
        sources: tuple[tuple[str, str], ...] = (),
        linger_s: Callable[[], float] = lambda: 0.0,
        past: ResumedTrial | None = None,
        backup_at: Callable[[int], NodeInputs | None] = lambda _: None,
    ) -> None:
        """`epoch_ns`: the machine's monotonic clock at time 0; nothing in virtual time.

        `code` is the fingerprint that a node's own must equal, `other_code_remedy` says what to do where it does not;
        `sources` are the user's modules that nodes are to be given: (path, text). `linger_s` is asked at the end of the
        trial: for how long a node may have to wait until Prometheus has read its last metrics; 0 if nobody reads them.
        `past` is given where the trial is resumed. `backup_at` gives the newest backup of all shards that is not
        beyond a step, EdgebedError where that is of no use.
        """
        self.plan = plan
        self.payload = payload
        self.runtime = runtime
        self.epoch_ns = epoch_ns
        self.code = code
        self.other_code_remedy = other_code_remedy
        self.sources = sources
        self.linger_s = linger_s
        self.past = past
        self.backup_at = backup_at
        lives = past.incarnations if past else {}
        self.members = {node.node: Member(node, incarnation=lives.get(node.node, 0)) for node in plan.nodes}
        self.director = Director(plan, self)
        self.health = Health(self.members, self.director)
        if past:
            triggered_s = {fault: asked_s - past.began_s for fault, asked_s in past.triggered_s.items()}
            self.director.resumed(past.until_s - past.began_s, past.updates, triggered_s)
        self.phase = Phase.LAUNCHED
        self.grace_s = GRACE_S
        self.outcome = ""
        self.reason = ""
        self.finish_reason = ""
        """Why no more updates are to be applied; empty while updates are applied."""
        self.started_at_s = 0.0
        self.progress_at_s = 0.0
        self.evaluated: deque[float] = deque(maxlen=plan.stop_window)
        """Last accuracies, whose mean may end the training; of a resumed trial, since it was resumed."""

    def launch(self, now: float) -> list[Effect]:
        """Note that the nodes are being started."""
        self.progress_at_s = now
        expected: list[Effect] = [Journal(Node(name=name, state=State.EXPECTED.value)) for name in self.members]
        return [*expected, Wake(now + self.plan.join_deadline_s, "join")]

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to a node's message, its end, the clock or the user."""
        if isinstance(event, MessageReceived):
            return self._received(event, now)
        if isinstance(event, NodeStarted):
            return self._started(event.node, now)
        if isinstance(event, NodeExited):
            return self._exited(event.node, event.reason, now)
        if isinstance(event, Woken):
            return self._woken(event.token, now)
        if isinstance(event, HealthChecked):
            return self._checked(event, now)
        if isinstance(event, Injected):
            return self._injected(event, now)
        if isinstance(event, CommandReceived):
            return self._ordered(event, now)
        if isinstance(event, Interrupted):
            if self.phase is Phase.ENDING and self.outcome != "interrupted":
                return self._stop_all(0.0, now)
            return self._end("interrupted", "the user ended the run", now)
        raise unexpected(self, event)

    # --- nodes come ---------------------------------------------------------------------------------------------

    def knows(self, event: MessageReceived) -> bool:
        """Whether a message comes from a node of this trial, in its present incarnation."""
        member = self.members.get(event.message.sender)
        return member is not None and member.peer == event.peer

    def _received(self, event: MessageReceived, now: float) -> list[Effect]:
        message = event.message
        if isinstance(message, messages.Hello):
            return self._hello(event, message, now)
        member = self.members.get(message.sender)
        if member is None or member.peer != event.peer:
            return []  # an old incarnation, or nobody of this trial: its hello was refused
        if isinstance(message, messages.Report):
            return self._report(message, now)
        if isinstance(message, messages.Ready):
            if member.state not in (State.JOINED, State.MISSING) or self.phase in (Phase.ENDING, Phase.OVER):
                return []
            member.ready = message
            self._came_up(now)
            return [*self._restored(member, message), *self._state(member, State.READY), *self._start(now)]
        if isinstance(message, messages.Reached):
            if self.phase is Phase.RUNNING:
                return self._done(self.director.reached(message, now), now)
            return self.send(message.sender, messages.Proceed(sender=NAME))
        if isinstance(message, messages.Bye):
            return self._exited(message.sender, message.reason, now)
        return []  # a checkpoint or a backup: the shell keeps it

    def _came_up(self, now: float) -> None:
        """Count the join deadline from now: a node has come one state nearer to training."""
        if self.phase is Phase.LAUNCHED:
            self.progress_at_s = now

    def _started(self, name: str, now: float) -> list[Effect]:
        member = self.members[name]
        if member.state is not State.EXPECTED or self.phase in (Phase.ENDING, Phase.OVER):
            return []  # its hello was faster, or it is too late
        self._came_up(now)
        return self._state(member, State.STARTED)

    def _hello(self, event: MessageReceived, hello: messages.Hello, now: float) -> list[Effect]:
        member = self.members.get(hello.sender)
        if member is None:
            return self._refuse(event, "unknown-node", f"{hello.sender!r} is not in the plan")
        if member.state in PRESENT:
            return self._refuse(event, "duplicate", f"{hello.sender} is here already")
        if self.phase in (Phase.ENDING, Phase.OVER):
            return self._refuse(event, "finished", "the trial is over")
        self._came_up(now)
        if hello.code != self.code:
            return self._refuse(event, "other-code", f"its code is not the controller's; {self.other_code_remedy}")
        member.peer = event.peer
        member.incarnation += 1
        member.ready = None
        member.missed = 0
        given = self.payload(member.plan)
        peers = tuple(worker.node for worker in self.plan.workers()) if member.plan.role == "server" else ()
        configure = messages.Configure(
            sender=NAME,
            incarnation=member.incarnation,
            epoch_ns=self.epoch_ns,
            plan=member.plan,
            peers=peers,
            tensors=given.tensors,
            version=given.version,
            backup_step=given.backup_step,
            backup_parts=given.backup_parts,
            sources=self.sources,
            links=self._links_seen_by(member.plan),
        )
        member.begins_at = given.backup_step if member.plan.shard else given.version
        effects = [*self._state(member, State.JOINED, pid=hello.pid), Send(event.peer, configure, given.frames)]
        return effects + self.director.joined(hello.sender, now)

    def _restored(self, member: Member, ready: messages.Ready) -> list[Effect]:
        """Record from where a server resumes that is not the first."""
        if member.plan.role != "server" or member.incarnation == 1:
            return []
        version = member.begins_at if ready.replayed is None else ready.version
        return [
            Journal(
                Restored(
                    version=version,
                    incarnation=member.incarnation,
                    replayed=ready.replayed,
                    log_bytes=ready.log_bytes,
                )
            )
        ]

    def _links_seen_by(self, node: NodePlan) -> tuple[messages.SharedLink, ...]:
        """Return the links at the other end of a node's messages."""
        others = set(self.director.neighbours[node.node])
        return share({other.node: other.link for other in self.plan.nodes if other.node in others})

    def _refuse(self, event: MessageReceived, code: str, reason: str) -> list[Effect]:
        refusal = messages.Refuse(sender=NAME, code=code, reason=reason)  # type: ignore[arg-type]
        return [Journal(Note(text=f"refused {event.peer}: {reason}")), Send(event.peer, refusal)]

    def _state(self, member: Member, state: State, reason: str = "", pid: int = 0) -> list[Effect]:
        if member.state == state:
            return []
        member.become(state)
        name, incarnation = member.plan.node, member.incarnation
        return [Journal(Node(name=name, state=state.value, incarnation=incarnation, pid=pid, reason=reason))]

    # --- training starts ----------------------------------------------------------------------------------------

    def _start(self, now: float, *, deadline: bool = False) -> list[Effect]:
        """Start the nodes that are ready: all together, then late ones as they come."""
        if self.phase is Phase.LAUNCHED:
            waiting = [name for name, member in self.members.items() if member.state in COMING]
            if waiting and not deadline:
                return []
            return self._start_training(waiting, now)
        if self.phase in (Phase.RUNNING, Phase.FINISHING):
            return self._start_ready()
        return []

    def _start_training(self, waiting: list[str], now: float) -> list[Effect]:
        waited = f"no node came up for {self.plan.join_deadline_s:g} s"
        missing: list[Effect] = []
        for name in waiting:
            missing += self._state(self.members[name], State.MISSING, f"not ready when {waited}")
        vital = [name for name in waiting if self.members[name].plan.is_vital]
        if vital:
            return missing + self._end("failed", f"{', '.join(vital)} not ready when {waited}", now)
        if not any(member.state is State.READY and member.plan.role == "worker" for member in self.members.values()):
            return missing + self._end("failed", f"no worker was ready when {waited}", now)
        self.phase = Phase.RUNNING
        self.started_at_s = self.past.began_s if self.past else now
        self.progress_at_s = now
        task = self.plan.nodes[0].task
        trial = Trial(
            scenario=self.plan.scenario,
            trial=self.plan.trial,
            seed=self.plan.seed,
            runtime=self.runtime,
            nodes=len(self.members),
            parameters=sum(tensor.size for tensor in task.layout),
        )
        wakes: list[Effect] = []
        if self.plan.stop_time_s is not None:
            wakes.append(Wake(max(now, self.started_at_s + self.plan.stop_time_s), "time"))
        wakes.append(Wake(now + self.plan.stall_deadline_s, "stall"))
        faults = self.director.began(self.started_at_s, now)
        return [*missing, Journal(trial), *wakes, *self._start_ready(), *faults]

    def _start_ready(self) -> list[Effect]:
        """Start the ready nodes once those they connect to are there; tell the others where a restarted one is now."""
        reached = {name: member for name, member in self.members.items() if member.is_reached}
        able = [member for member in reached.values() if reached.keys() >= set(member.plan.hosts)]
        moved = {member.plan.node for member in able if member.state is State.READY}
        beginning = tuple(
            member.plan.node
            for member in able
            if member.plan.role == "worker" and member.state in (State.READY, State.RUNNING)
        )
        effects: list[Effect] = []
        for member in able:
            if member.state is not State.READY and moved.isdisjoint(member.plan.hosts):
                continue
            if member.state is State.READY:
                effects += self._state(member, State.RUNNING)
            addresses = tuple((host, _address(reached[host], member.plan)) for host in member.plan.hosts)
            start = messages.Start(
                sender=NAME,
                addresses=addresses,
                began_s=self.started_at_s,
                workers=beginning if member.plan.role == "server" else (),
                goes_on=any(_goes_on(reached[host]) for host in member.plan.hosts),
            )
            effects.append(Send(member.peer, start))
            if self.finish_reason and member.plan.role in ("server", "evaluator"):
                effects.append(Send(member.peer, messages.Finish(sender=NAME, reason=self.finish_reason)))
        return effects

    # --- the trial proceeds and ends ----------------------------------------------------------------------------

    def _report(self, report: messages.Report, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for _, record in report.records:
            if isinstance(record, Update | Step):
                self.progress_at_s = now
                made = record.version if isinstance(record, Update) else record.made
                if made and self.phase is Phase.RUNNING:
                    effects += self._done(self.director.updated(made, now), now)
            elif isinstance(record, Evaluated):
                effects += self._evaluated(record, now)
            elif isinstance(record, Finished) and self.phase is Phase.RUNNING:
                self.phase = Phase.FINISHING
                self.reason = self.finish_reason = record.reason
                self.progress_at_s = now
                self.director.finished()
                effects += self.send("evaluator", messages.Finish(sender=NAME, reason=record.reason))
        return effects

    def _evaluated(self, record: Evaluated, now: float) -> list[Effect]:
        if record.final:
            return self._end("completed", self.reason or f"the model is final at update {record.version}", now)
        target, window = self.plan.stop_accuracy, self.plan.stop_window
        self.evaluated.append(record.accuracy)
        mean = fmean(self.evaluated)
        if target is not None and len(self.evaluated) == window and mean >= target and self.phase is Phase.RUNNING:
            of = "" if window == 1 else f" (mean of {window} evaluations)"
            return self._finish(f"accuracy {mean:.4f}{of} reached {target:g} at update {record.version}")
        return []

    def _finish(self, reason: str) -> list[Effect]:
        """Tell the server to apply no more updates; one that is away hears it when it is back."""
        self.finish_reason = self.finish_reason or reason
        return self.send("server", messages.Finish(sender=NAME, reason=reason))

    def _woken(self, token: str, now: float) -> list[Effect]:
        if token == "join" and self.phase is Phase.LAUNCHED:
            due_s = self.progress_at_s + self.plan.join_deadline_s
            return [Wake(due_s, "join")] if due_s > now else self._start(now, deadline=True)
        if token == "time" and self.phase is Phase.RUNNING:
            reason = f"{self.plan.stop_time_s:g} s have passed"
            return self._finish(reason)
        if token in self.director.steps:
            return self._done(self.director.woken(token, now), now)
        if token == "stall" and self.phase in (Phase.RUNNING, Phase.FINISHING):
            due_s = max(self.progress_at_s, self.director.last_return_s()) + self.plan.stall_deadline_s
            if due_s > now:
                return [Wake(due_s, "stall")]
            what = "no update was applied" if self.phase is Phase.RUNNING else "no final evaluation came"
            return self._end("failed", f"{what} for {self.plan.stall_deadline_s:g} s", now)
        if token == "grace" and self.phase is Phase.ENDING:
            return self._over()
        return []

    def _exited(self, name: str, reason: str, now: float) -> list[Effect]:
        member = self.members[name]
        if member.state in ENDS or self.phase is Phase.OVER:
            return []
        if self.phase is Phase.ENDING:
            effects = self._state(member, State.STOPPED, reason)
            return effects if self._awaited() else effects + self._over()
        effects = self._state(member, State.DIED, reason)
        member.peer = ""
        effects += self._failed(member)
        if self.phase in (Phase.RUNNING, Phase.FINISHING):
            effects += self.director.exited(name, now)
            if self.plan.on_failure == "restart" and member.state is State.DIED:
                effects += self.director.restart(name, now)
            if self.plan.on_failure == "stop":
                return effects + self._end("failed", f"{name} died: {reason} (on_failure: stop)", now)
        why = self.health.why_over_without(member, reason)
        if why and (member.plan.is_vital or self.phase in (Phase.LAUNCHED, Phase.RUNNING)):
            effects += self._end("failed", why, now)
        return effects + self._start(now)

    def _failed(self, member: Member) -> list[Effect]:
        """Report a failed worker to the server; with an oracle alone."""
        if self.plan.detector != "oracle" or member.plan.role != "worker":
            return []
        failed = messages.Failed(sender=NAME, node=member.plan.node, incarnation=member.incarnation)
        return self.send("server", failed)

    # --- faults and failures ------------------------------------------------------------------------------------

    def _checked(self, event: HealthChecked, now: float) -> list[Effect]:
        """Act on a check: who has failed, and who is back."""
        if self.phase not in (Phase.RUNNING, Phase.FINISHING):
            return []
        failed, back = self.health.check(event.alive)
        effects = [effect for member in back for effect in self._state(member, State.RUNNING)]
        for member in failed:
            effects += self._unresponsive(member, now)
        return effects

    def _unresponsive(self, member: Member, now: float) -> list[Effect]:
        name, reason = member.plan.node, f"no sign of life for {MISSED_MAX * self.plan.check_s:g} s"
        reason += ", since it is frozen" if self.director.is_frozen(name) else ""
        effects = [*self._state(member, State.UNRESPONSIVE, reason), *self._failed(member)]
        if self.plan.on_failure == "restart":
            return effects + self._done(self.director.kill(name, now), now)
        if self.plan.on_failure == "stop":
            return effects + self._end("failed", f"{name}: {reason} (on_failure: stop)", now)
        return effects

    def _injected(self, event: Injected, now: float) -> list[Effect]:
        if event.number not in self.director.asked:
            return []  # the trial has ended meanwhile
        _, injection = self.director.asked[event.number]
        effects = self.director.injected(event)
        if event.problem and injection.action == "launch":
            effects += self._exited(injection.node, event.problem, now)
        return self._done(effects, now)

    def _ordered(self, event: CommandReceived, now: float) -> list[Effect]:
        if self.phase in (Phase.RUNNING, Phase.FINISHING):
            if event.roll_back_to is not None:
                return self._roll_back(event.ticket, event.roll_back_to)
            return self._done(self.director.ordered(event, now), now)
        state = "has not begun yet" if self.phase is Phase.LAUNCHED else "is over"
        return [CommandResult(event.ticket, f"training {state}")]

    def _roll_back(self, ticket: int, step: int) -> list[Effect]:
        """Have all shards resume from the newest backup that is not beyond that step."""
        server = self.members["server"]
        if not server.plan.method.is_layerwise:
            return [CommandResult(ticket, f"the method '{server.plan.method.name}' makes no backups of shards")]
        if server.state not in (State.RUNNING, State.UNRESPONSIVE):
            return [CommandResult(ticket, "the server is not there at present; try again when it is back")]
        try:
            given = self.backup_at(step)
        except EdgebedError as error:
            return [CommandResult(ticket, str(error))]
        if given is None:
            return [CommandResult(ticket, f"there is no backup of step {step:,} or before")]
        to, parts = given.backup_step, given.backup_parts
        message = messages.RollBack(sender=NAME, step=to, parts=parts, tensors=given.tensors)
        noted = Journal(Note(text=f"rolled back to step {to:,} by hand"))
        return [noted, Send(server.peer, message, given.frames), CommandResult(ticket, told=f"step {to}")]

    def _done(self, effects: list[Effect], now: float) -> list[Effect]:
        """Return what the director has done, and the end of the trial if nobody can train any more."""
        is_news = self.phase is Phase.RUNNING and any(isinstance(effect, Journal) for effect in effects)
        why = self.health.why_over() if is_news else ""
        return effects + self._end("failed", why, now) if why else effects

    def expect(self, name: str) -> list[Effect]:
        """Note that the node is about to be launched."""
        return self._state(self.members[name], State.EXPECTED)

    def _end(self, outcome: str, reason: str, now: float) -> list[Effect]:
        if self.phase in (Phase.ENDING, Phase.OVER):
            return []
        finish = self.send("server", messages.Finish(sender=NAME, reason=reason))  # so that it hands its model over
        self.phase = Phase.ENDING
        self.outcome, self.reason = outcome, reason
        return [
            *finish,
            *self.director.close(),
            *self._stop_all(self.linger_s() if outcome == "completed" else 0.0, now),
        ]

    def _stop_all(self, linger_s: float, now: float) -> list[Effect]:
        """Tell every node to end, within `linger_s` and the grace for goodbyes."""
        stop = messages.Stop(sender=NAME, reason=self.reason, linger_s=linger_s)
        stops = [effect for name in self.members for effect in self.send(name, stop)]
        if not self._awaited():
            return stops + self._over()
        self.grace_s = linger_s + max(GRACE_S, GRACE_A_NODE_S * len(self.members))
        return [*stops, Wake(now + self.grace_s, "grace")]

    @property
    def is_lingering(self) -> bool:
        """Whether nodes may still be waiting for Prometheus to read their last metrics."""
        return self.phase is Phase.ENDING and self.grace_s > GRACE_S

    def _over(self) -> list[Effect]:
        late: list[Effect] = []
        for member in self.members.values():
            if member.state in PRESENT and self.director.is_frozen(member.plan.node):
                late += self._state(member, State.STOPPED, "frozen until the end")
            elif member.state in PRESENT:
                late += self._state(member, State.DIED, f"did not answer 'stop' within {self.grace_s:g} s")
        self.phase = Phase.OVER
        return [*late, Journal(Ended(outcome=self.outcome, reason=self.reason)), EndNode(self.reason)]

    def _awaited(self) -> bool:
        """Whether somebody can still say goodbye."""
        return any(
            member.state in PRESENT and not self.director.is_frozen(name) for name, member in self.members.items()
        )

    def send(self, name: str, message: messages.ManagementMessage) -> list[Effect]:
        """Send to a node that is there; do nothing for others."""
        member = self.members[name]
        return [Send(member.peer, message)] if member.state in PRESENT else []


def _goes_on(host: Member) -> bool:
    """Whether a node that is ready remembers what the one before it did."""
    return host.ready is not None and host.ready.replayed is not None


def _address(host: Member, client: NodePlan) -> str:
    """Return where that client reaches a node that is ready."""
    assert host.ready is not None
    return host.ready.management_address if client.role == "evaluator" else host.ready.data_address
