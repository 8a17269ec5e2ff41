"""The controller: brings the nodes up, starts them together, decides when the trial is over, brings them down.

    launched --all ready, or the join deadline--> running --last update--> finishing --final evaluation--> ending, over

It sees the management network and the ends of processes. What it knows is for recording, for restarting nodes and
for ending the trial; the server learns who begins, and who has failed only where the scenario says `detector: oracle`.

    members.py    states of the nodes, what they are sent    stopping.py  no more updates: level, time
    admission.py  hello: refused, or configured              ending.py    stop, goodbyes
    starting.py   who is started when                        health.py    who has failed, can the trial go on
    director.py   when something is done to nodes            rollback.py  shards that resume from a backup
    injector.py   what is done, and what came of it          evaluations.py  which ones could not be made
"""

from collections.abc import Callable
from enum import Enum

import msgspec

from edgebed.core.patience import load_text, patient_s
from edgebed.core.plan import TrainingPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.records import (
    REASON_LENGTH_MAX,
    AtWork,
    Clients,
    Clock,
    Continued,
    Evaluated,
    Finished,
    Node,
    Step,
    Traffic,
    Update,
)
from edgebed.roles.control.admission import Admission
from edgebed.roles.control.director import Director
from edgebed.roles.control.ending import BY_USER, GRACE_S, Ending
from edgebed.roles.control.evaluations import Evaluations
from edgebed.roles.control.health import MISSED_MAX, Health
from edgebed.roles.control.injector import Injector
from edgebed.roles.control.members import BUILDING, COMING, ENDS, Member, Members, State
from edgebed.roles.control.name import NAME
from edgebed.roles.control.rollback import BackupAt, roll_back
from edgebed.roles.control.stalling import Stalling
from edgebed.roles.control.starting import Starting
from edgebed.roles.control.stopping import Stopping
from edgebed.roles.events import (
    CommandReceived,
    CommandResult,
    Effect,
    Event,
    HealthChecked,
    Injected,
    Interrupted,
    Journal,
    MessageReceived,
    NodeExited,
    NodeStarted,
    Wake,
    Woken,
    unexpected,
)  # fmt: skip
from edgebed.wire import messages


class ResumedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a trial that is resumed after its controller had ended."""

    began_s: float
    """When training began, in seconds of the trial, or would have begun if it had never stood still since."""
    until_s: float
    """Last time known of the trial; its clock resumes from there."""
    trained_s: float
    """Training until the last that was observed, in seconds: it stands still until the trial has started again."""
    updates: int
    """Highest version that the trial's model had; the checkpoint's may be lower."""
    incarnations: dict[str, int]
    """Highest incarnation that each node had."""
    update_bytes: int = 0
    """Payload of all updates that were applied."""
    traffic: Traffic | None = None
    """All that had passed the server, over its incarnations; None: it had not said."""
    durable: int = 0
    """Records that the journal has of what is in the server's log."""
    evaluated: tuple[float, int] | None = None
    """Time in seconds of training, and version, of the last evaluation; None: there is none."""
    measured: dict[str, float] = {}
    """What it measured, on the part that versions are chosen by."""
    triggered_s: dict[tuple[str, str], float] = {}
    """When each fault was first triggered, by name and node, in seconds of training."""
    by_hand: tuple[tuple[float, Injection], ...] = ()
    """What was done by hand to links and caps, each with when it was asked for, in seconds of training."""
    from_checkpoint: bool = False
    """Whether its server goes on from the last checkpoint, and its log is left out."""


class Phase(Enum):
    """Phases of a trial."""

    LAUNCHED = "starting"
    RUNNING = "training"
    FINISHING = "final evaluation"
    ENDING = "stopping"
    OVER = "over"


TRAINING = (Phase.RUNNING, Phase.FINISHING)
"""Phases in which nodes are watched and restarted."""


class Controller:
    """The heart of the controller."""

    def __init__(
        self,
        plan: TrainingPlan,
        admission: Admission,
        runtime: str,
        *,
        linger_s: Callable[[], float] = lambda: 0.0,
        past: ResumedTrial | None = None,
        backup_at: BackupAt = lambda _: None,
    ) -> None:
        """`linger_s`: see `Ending`; 0 if nobody reads metrics. `past` is given where the trial is resumed."""
        self.plan = plan
        self.past = past
        self.backup_at = backup_at
        self.admission = admission
        self.members = Members(plan, past.incarnations if past else None)
        self.injector = Injector(plan, self.members)
        self.director = Director(plan, self.injector)
        if past:
            self.director.resumed(past.trained_s, past.updates, past.triggered_s, past.by_hand)
        self.health = Health(self.members, self.director)
        self.starting = Starting(plan, self.members, runtime)
        self.stopping = Stopping(plan, self.members)
        self.evaluations = Evaluations(plan, past.evaluated if past else None)
        self.stalling = Stalling(plan, self.members, self.director)
        self.ending = Ending(self.members, self.director, linger_s)
        self.phase = Phase.LAUNCHED
        self.trained_s = past.trained_s if past else 0.0
        """Seconds of training before it starts: with those in which nodes had gone on alone."""
        self.progress_at_s = 0.0
        """When something was last achieved: a node came one state nearer to training, or an update was applied."""

    @property
    def is_lingering(self) -> bool:
        """Whether nodes may still be waiting for Prometheus to read their last metrics."""
        return self.phase is Phase.ENDING and self.ending.grace_s > GRACE_S

    @property
    def standing(self) -> str:
        """What the trial is doing, in words."""
        return self.phase.value

    @property
    def grace_s(self) -> float:
        """How long nodes have to end."""
        return self.ending.grace_s

    @property
    def is_ending(self) -> bool:
        """Whether the trial is over, but perhaps for goodbyes."""
        return self.phase in (Phase.ENDING, Phase.OVER)

    def launch(self, now: float) -> list[Effect]:
        """Note that the nodes are being started."""
        self.progress_at_s = now
        expected: list[Effect] = [
            Journal(Node(name=name, state=State.EXPECTED.value, host=member.plan.host))
            for name, member in self.members.items()
        ]
        if self.past:
            expected.insert(0, Journal(Continued(trained_s=round(self.trained_s, 6))))
        return [*expected, Wake(now + self.plan.join_deadline_s, "join")]

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to a node's message, its end, the clock or the user."""
        if isinstance(event, MessageReceived):
            return self._received(event, now)
        if isinstance(event, NodeStarted):
            return self._came_up(event.node, (State.EXPECTED,), State.STARTED, now)
        if isinstance(event, NodeExited):
            return self._exited(event.node, event.reason, now)
        if isinstance(event, Woken):
            return self._woken(event.token, event.load, now)
        if isinstance(event, HealthChecked):
            return self._checked(event, now)
        if isinstance(event, Injected):
            return self._injected(event, now)
        if isinstance(event, CommandReceived):
            return self._ordered(event, now)
        if isinstance(event, Interrupted):
            if self.phase is Phase.ENDING and self.ending.outcome != "interrupted":
                return self._unless_awaited(self.ending.stop_all(0.0, now))
            return self._end("interrupted", BY_USER, now)
        raise unexpected(self, event)

    # --- nodes come, and training starts ------------------------------------------------------------------------

    def _received(self, event: MessageReceived, now: float) -> list[Effect]:
        message = event.message
        if isinstance(message, messages.Hello):
            return self._hello(event, message, now)
        if not self.members.knows(event):
            return []  # an old incarnation, or nobody of this trial: its hello was refused
        if isinstance(message, messages.Report):
            self._note_unobserved(message)
            return self._report(message, now)
        if isinstance(message, messages.Ready):
            came = self._came_up(message.sender, BUILDING, State.READY, now)
            if not came:
                return []
            self.members[message.sender].ready = message
            late = self.injector.late(message.sender, now)
            return [*self.admission.restored(message, self.members), *came, *late, *self._start(now)]
        if isinstance(message, messages.Reached):
            if self.phase is Phase.RUNNING:
                return self._done(self.director.reached(message, now), now)
            return self.members.send(message.sender, messages.Proceed(sender=NAME))
        if isinstance(message, messages.Bye):
            return self._exited(message.sender, message.reason[:REASON_LENGTH_MAX], now, recurs=message.recurs)
        return []  # a checkpoint or a backup, which the shell keeps, or a node that is built, whose cap it sets

    def _hello(self, event: MessageReceived, hello: messages.Hello, now: float) -> list[Effect]:
        refusal = self.admission.refusal(hello, self.members, is_over=self.is_ending)
        if refusal:
            return self.admission.refuse(event.peer, hello.sender, *refusal)
        self._note_arrival(now)
        return self.admission.admit(event, hello.pid, self.members) + self.injector.joined(hello.sender, now)

    def _came_up(self, name: str, before: tuple[State, ...], state: State, now: float) -> list[Effect]:
        """Change a node's state to one nearer to training; nothing if it is not in one `before`, or it is too late."""
        if self.members[name].state not in before or self.is_ending:
            return []
        self._note_arrival(now)
        return self.members.become(name, state)

    def _note_arrival(self, now: float) -> None:
        """Count the join deadline from now: a node has come one state nearer to training."""
        if self.phase is Phase.LAUNCHED:
            self.progress_at_s = now

    def _start(self, now: float, *, given_up: str | None = None) -> list[Effect]:
        """Start the nodes that are ready: all together, then late ones as they come.

        `given_up`: the others are not waited for any longer, and what else there is to say of that.
        """
        if self.phase in TRAINING:
            return self.starting.start_ready(self.stopping.reason)
        waiting = [name for name, member in self.members.items() if member.state in COMING]
        if self.phase is not Phase.LAUNCHED or (waiting and given_up is None):
            return []
        missing, why_not = self.starting.missing(waiting, now - self.progress_at_s, given_up or "")
        if why_not:
            return missing + self._end("failed", why_not, now)
        self.phase = Phase.RUNNING
        self.progress_at_s = now
        began = self.starting.begin(self.trained_s, now)
        faults = self.director.began(self.starting.began_s, now)
        return [*missing, *began, *self.starting.start_ready(self.stopping.reason), *faults]

    # --- the trial proceeds and ends ----------------------------------------------------------------------------

    def _note_unobserved(self, report: messages.Report) -> None:
        """Count the training that the server's log tells of, and that went on while there was no controller."""
        if self.past and self.phase is Phase.LAUNCHED:
            updated_s = [time_s - self.past.began_s for time_s, record in report.records if isinstance(record, Update)]
            self.trained_s = max([self.trained_s, *updated_s])

    def _report(self, report: messages.Report, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for time_s, record in report.records:
            if isinstance(record, Evaluated):
                effects += self._evaluated(report.sender, time_s, record, now)
            if isinstance(record, Clients):
                effects += self._measured_own(report.sender, record, now)
            if isinstance(record, Clock):
                effects += self.admission.clock_told(report.sender, record, self.members)
            if isinstance(record, Update | Step):
                self.progress_at_s = now
                made = record.version if isinstance(record, Update) else record.made
                if made and self.phase is Phase.RUNNING:
                    effects += self._done(self.director.updated(made, now), now)
            elif isinstance(record, AtWork):
                self.stalling.worked_s[record.worker] = now
            elif isinstance(record, Finished) and self.phase is Phase.RUNNING:
                self.phase = Phase.FINISHING
                self.progress_at_s = now
                self.director.finished()
                effects += self.stopping.finished(record)
        return effects

    def _evaluated(self, evaluator: str, time_s: float, record: Evaluated, now: float) -> list[Effect]:
        incarnation = self.members[evaluator].incarnation
        effects = self.evaluations.measured(time_s - self.starting.began_s, record, incarnation)
        if record.final:
            self.stopping.final_version = record.version
            return effects + self._end_if_measured(now)
        if self.phase is Phase.RUNNING:
            return effects + self.stopping.measured(record)
        self.progress_at_s = now
        return effects

    def _measured_own(self, worker: str, record: Clients, now: float) -> list[Effect]:
        if worker not in self.stopping.measuring or self.phase is not Phase.FINISHING:
            return []
        self.progress_at_s = now
        self.stopping.measured_own(worker, record)
        return self._end_if_measured(now)

    def _end_if_measured(self, now: float) -> list[Effect]:
        if not self.stopping.is_measured:
            return []
        reason = self.stopping.reason or f"the model is final at update {self.stopping.final_version}"
        return self._end("completed", reason, now)

    def _woken(self, token: str, load: float, now: float) -> list[Effect]:
        if token == "join" and self.phase is Phase.LAUNCHED:
            due_s = self.progress_at_s + patient_s(self.plan.join_deadline_s, load)
            return [Wake(due_s, "join")] if due_s > now else self._start(now, given_up=load_text(load))
        if token == "time" and self.phase is Phase.RUNNING:
            return self.stopping.timed_out()
        if token in self.director.steps:
            return self._done(self.director.woken(token, now), now)
        if token == "stall" and self.phase in TRAINING:
            due_s, why = self.stalling.look(self.progress_at_s, now, is_final=self.phase is Phase.FINISHING)
            return self._end("failed", why, now) if why else [Wake(due_s, "stall")]
        if token == "grace" and self.phase is Phase.ENDING:
            return self._over()
        return []

    def _end(self, outcome: str, reason: str, now: float) -> list[Effect]:
        if self.is_ending:
            return []
        self.phase = Phase.ENDING
        return self._unless_awaited(self.ending.begin(outcome, reason, now))

    def _unless_awaited(self, effects: list[Effect]) -> list[Effect]:
        """Return the effects, and the end if nobody's goodbye is awaited."""
        return effects if self.ending.is_awaited else effects + self._over()

    def _over(self) -> list[Effect]:
        self.phase = Phase.OVER
        return self.ending.close()

    # --- faults and failures ------------------------------------------------------------------------------------

    def _exited(self, name: str, reason: str, now: float, *, recurs: bool = False) -> list[Effect]:
        """Act on a node's end; `recurs`: it would end in the same way if it were started anew."""
        member = self.members[name]
        if member.state in ENDS or self.phase is Phase.OVER:
            return []
        if self.phase is Phase.ENDING:
            return self._unless_awaited(self.members.become(name, State.STOPPED, reason))
        effects = self.members.become(name, State.DIED, reason)
        member.peer = ""
        effects += self._failed(member)
        self.stopping.measuring.discard(name)
        if self.phase in TRAINING:
            effects += self.injector.exited(name, now)
            if self.plan.on_failure == "restart" and member.state is State.DIED and not recurs:
                effects += self.director.restart(name, now)
            if self.plan.on_failure == "stop":
                return effects + self._end("failed", f"{name} died: {reason} (on_failure: stop)", now)
        why = self.health.why_over_without(member, reason, recurs=recurs)
        if why and (member.plan.is_vital or self.phase in (Phase.LAUNCHED, Phase.RUNNING)):
            effects += self._end("failed", why, now)
        return effects + self._start(now) + self._end_if_measured(now)

    def _failed(self, member: Member) -> list[Effect]:
        """Report a failed worker to the server; with an oracle alone."""
        if self.plan.detector != "oracle" or member.plan.role != "worker":
            return []
        failed = messages.Failed(sender=NAME, node=member.plan.node, incarnation=member.incarnation)
        return self.members.send("server", failed)

    def _checked(self, event: HealthChecked, now: float) -> list[Effect]:
        """Act on a check: who has failed, and who is back."""
        if self.phase not in TRAINING:
            return []
        failed, back = self.health.check(event.alive)
        effects = [effect for member in back for effect in self.members.become(member.plan.node, State.RUNNING)]
        for member in failed:
            effects += self._unresponsive(member, now)
        return effects + self._end_if_measured(now)

    def _unresponsive(self, member: Member, now: float) -> list[Effect]:
        name, reason = member.plan.node, f"no sign of life for {MISSED_MAX * self.plan.check_s:g} s"
        reason += ", since it is frozen" if self.director.is_frozen(name) else ""
        effects = [*self.members.become(name, State.UNRESPONSIVE, reason), *self._failed(member)]
        if self.director.is_pausing(name):
            return effects
        if self.plan.on_failure == "restart":
            return effects + self._done(self.director.kill(name, now), now)
        if self.plan.on_failure == "stop":
            return effects + self._end("failed", f"{name}: {reason} (on_failure: stop)", now)
        return effects

    def _injected(self, event: Injected, now: float) -> list[Effect]:
        if event.number not in self.injector.asked:
            return []  # the trial has ended meanwhile
        _, injection = self.injector.asked[event.number]
        effects = self.injector.injected(event)
        if event.problem and injection.action == "launch":
            effects += self._exited(injection.node, event.problem, now)
        return self._done(effects, now)

    def _ordered(self, event: CommandReceived, now: float) -> list[Effect]:
        if self.phase not in TRAINING:
            state = "has not begun yet" if self.phase is Phase.LAUNCHED else "is over"
            return [CommandResult(event.ticket, f"training {state}")]
        if event.roll_back_to is not None:
            return roll_back(self.members["server"], self.backup_at, event.ticket, event.roll_back_to)
        return self._done(self.injector.ordered(event, now), now)

    def _done(self, effects: list[Effect], now: float) -> list[Effect]:
        """Return what the director has done, and the end of the trial if nobody can train any more."""
        is_news = self.phase is Phase.RUNNING and any(isinstance(effect, Journal) for effect in effects)
        why = self.health.why_over() if is_news else ""
        return effects + self._end("failed", why, now) if why else effects
