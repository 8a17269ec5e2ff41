"""The controller of programs: starts them in their order, does what is planned to them, decides when the trial is over.

    launched --all are ready--> running --its end, its time, a failure--> ending --all are gone--> over

It is told that programs start, are ready, print something that is waited for, and end; it sends them nothing. Faults
and policies are those of every trial (roles/control/director.py). What ends a trial and how it has ended then stands in
`ends.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from edgebed.core.patience import load_text, patient_s
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.program import Ready
from edgebed.core.records import REASON_LENGTH_MAX, Ended, Exited, Node, Trial
from edgebed.core.units import format_duration
from edgebed.roles.control.controller import Phase
from edgebed.roles.control.director import Director
from edgebed.roles.control.ending import BY_USER, GRACE_S
from edgebed.roles.control.fault_text import UNSTOPPED
from edgebed.roles.control.injector import Injector
from edgebed.roles.control.members import ENDS, Members, State
from edgebed.roles.control.pending_actions import ON_FAILURE, FaultCause
from edgebed.roles.events import (
    ApplyInjection,
    CommandReceived,
    CommandResult,
    Effect,
    EndNode,
    EndProgram,
    Event,
    Injected,
    Interrupted,
    Journal,
    LineSeen,
    NodeStarted,
    ProgramExited,
    ReadySeen,
    Wake,
    Woken,
    unexpected,
)  # fmt: skip
from edgebed.roles.programs.ends import End, end_of, judged

NOT_BEGUN = (125, 126, 127)
"""Exit codes, of shells and of `env`, of a command that could not be begun: another start ends in the same way."""
STARTS_MAX = 5
"""Lives in a row that a program may end before it is ready, or all are, or at once, if a policy restarts it."""
BRIEF_S = 2.0
"""Seconds that a life lasts which has ended at once."""
UP = (State.READY, State.RUNNING, State.STOPPED)
"""States of a program that has been ready."""


class ProgramController:
    """The heart of the controller of a trial of programs."""

    is_lingering = False
    past = None
    grace_s = GRACE_S

    def __init__(self, plan: ProgramsPlan, runtime: str) -> None:
        self.plan = plan
        self.runtime = runtime
        self.plans = {node.node: node for node in plan.nodes}
        self.members = Members(plan)
        self.injector = Injector(plan, self.members)
        self.director = Director(plan, self.injector)
        self.phase = Phase.LAUNCHED
        self.began_s = 0.0
        """When all were ready, in seconds of the trial."""
        self.outcome = self.reason = ""
        self.progress_at_s = 0.0
        """When a program was launched or became ready last, or was thawed."""
        self.is_joining = False
        """Whether a Wake for the join deadline is to come."""
        self.to_launch: set[str] = set()
        """Programs that are to be launched once those they come after are ready."""
        self.launching: set[str] = set()
        """Programs whose launch is under way."""
        self.old: set[str] = set()
        """Programs that are to end before all are started anew."""
        self.anew_s: float | None = None
        """When all are to be started anew, at the earliest; None: they are not."""
        self.exits: dict[str, Exited] = {}
        """How each program that is not there ended."""
        self.vain: Counter[str] = Counter()
        """Lives of each program that ended by themselves before it was ready, or before all were, or at once."""
        self.started_s: dict[str, float] = {}
        """When each program was started last, in seconds of the trial."""
        self.planned: tuple[float, str] | None = None
        """When a program was ended on purpose last, and which."""
        self.seen_end = ""
        """The node that has printed the line that the trial ends with."""
        self._handlers: dict[type[Any], Callable[[Any, float], list[Effect]]] = {
            NodeStarted: self._started,
            ReadySeen: self._ready,
            LineSeen: self._line,
            ProgramExited: self._exited,
            Woken: self._woken,
            Injected: self._injected,
            CommandReceived: self._ordered,
            Interrupted: self._interrupted,
        }

    @property
    def is_ending(self) -> bool:
        """Whether the trial is over, but perhaps for programs that are to end."""
        return self.phase in (Phase.ENDING, Phase.OVER)

    @property
    def standing(self) -> str:
        """What the trial is doing, in words."""
        return "running" if self.phase is Phase.RUNNING else self.phase.value

    @property
    def awaits_measures(self) -> bool:
        """Whether faults wait for a measure."""
        return bool(self.director.schedule.by_measure)

    def launch(self, now: float) -> list[Effect]:
        """Launch the programs that come after none."""
        self.to_launch = set(self.members)
        expected = [Journal(Node(name=name, state=State.EXPECTED.value)) for name in self.members]
        return [*expected, *self._with_launches(self._launch_able(now), now)]

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to what a program does, to the clock or to the user."""
        handler = self._handlers.get(type(event))
        if handler is None:
            raise unexpected(self, event)
        if self.phase is Phase.OVER:
            return []
        effects = handler(event, now)
        effects += self._proceed(now)
        return self._with_launches(effects, now)

    # --- programs come ------------------------------------------------------------------------------------------

    def _launch_able(self, now: float) -> list[Effect]:
        """Launch what is to be launched and comes after nobody who is not ready."""
        down = {plan.device_class for name, plan in self.plans.items() if not self._is_up(name)}
        effects: list[Effect] = []
        for name, plan in self.plans.items():
            if name not in self.to_launch or not down.isdisjoint(plan.after):
                continue
            self.to_launch.discard(name)
            launch = Injection(node=name, action="launch")
            if self.members[name].state is State.EXPECTED:
                effects.append(ApplyInjection(0, launch))
            else:
                effects += self.injector.ask(FaultCause(ON_FAILURE, "all are restarted", now), launch, now)
        return effects

    def _with_launches(self, effects: Iterable[Effect], now: float) -> list[Effect]:
        """The effects, and what belongs to each launch: a new incarnation, which has all that was done to the last."""
        done: list[Effect] = []
        for effect in effects:
            if isinstance(effect, ApplyInjection) and effect.injection.action == "launch":
                name = effect.injection.node
                self.members[name].incarnation += 1
                self.launching.add(name)
                self.exits.pop(name, None)
                self.progress_at_s = now
                done += self.injector.joined(name, now)
                if not self.is_joining:
                    self.is_joining = True
                    done.append(Wake(now + self.plan.join_deadline_s, "join"))
            done.append(effect)
        return done

    def _is_up(self, name: str) -> bool:
        """Whether a program is ready, or has been and has ended in order."""
        return self.members[name].state in UP and name not in self.to_launch

    def _started(self, event: NodeStarted, now: float) -> list[Effect]:
        if event.node not in self.launching:
            return self._end("failed", f"{event.node} was started anew, and nobody had asked for it", now)
        self.launching.discard(event.node)
        self.started_s[event.node] = now
        effects = self.members.become(event.node, State.STARTED)
        if self.is_ending or event.node in self.old:
            return [*effects, _kill(event.node)]
        ready_at_once = self.plans[event.node].ready == Ready()
        return effects + (self._ready(ReadySeen(event.node), now) if ready_at_once else [])

    def _ready(self, event: ReadySeen, now: float) -> list[Effect]:
        if self.members[event.node].state is not State.STARTED or self.is_ending or event.node in self.old:
            return []
        self.progress_at_s = now
        effects = self.members.become(event.node, State.READY)
        return effects + (self.members.become(event.node, State.RUNNING) if self.phase is Phase.RUNNING else [])

    def _late(self, load: float, now: float) -> list[Effect]:
        """Give up programs that are not ready in time."""
        self.is_joining = False
        waiting = [
            name
            for name, member in self.members.items()
            if name in self.launching or (member.state is State.STARTED and not self.director.is_frozen(name))
        ]
        if self.is_ending or not waiting:
            return []
        due_s = self.progress_at_s + patient_s(self.plan.join_deadline_s, load)
        if due_s > now:
            self.is_joining = True
            return [Wake(due_s, "join")]
        deadline = format_duration(self.plan.join_deadline_s)
        awaited = "; ".join(f"{name}: {_awaited(self.plans[name].ready)}" for name in waiting)
        why = (
            f"{', '.join(waiting)} not ready, and none has become ready for {now - self.progress_at_s:.0f} s "
            f"(deadlines.join: {deadline}{load_text(load)}): {awaited}. What each says is in logs/NODE.log; `ready` is "
            "what shows that it is ready, and deadlines.join how long that may take"
        )
        return self._end("failed", why, now)

    # --- the trial proceeds and ends ----------------------------------------------------------------------------

    def _proceed(self, now: float) -> list[Effect]:
        """Do what follows from how the programs stand now."""
        if self.phase is Phase.OVER:
            return []
        if self.phase is Phase.ENDING:
            return [] if self._there() or self.launching else self._over()
        effects = self._start_anew(now) + self._launch_able(now)
        if self.phase is Phase.LAUNCHED and all(map(self._is_up, self.members)):
            effects += self._begin(now)
        if self.phase is Phase.RUNNING and (end := self._found_end()):
            effects += self._end(end.outcome, end.reason, now)
        return effects

    def _begin(self, now: float) -> list[Effect]:
        self.phase = Phase.RUNNING
        self.began_s = now
        trial = Trial(
            scenario=self.plan.scenario,
            trial=self.plan.trial,
            seed=self.plan.seed,
            runtime=self.runtime,
            nodes=len(self.members),
            parameters=0,
            runs_programs=True,
        )
        effects: list[Effect] = [Journal(trial)]
        for name, member in self.members.items():
            if member.state is State.READY:
                effects += self.members.become(name, State.RUNNING)
        if self.plan.stop_time_s is not None:
            effects.append(Wake(now + self.plan.stop_time_s, "time"))
        return effects + self.director.began(now, now)

    def _found_end(self) -> End | None:
        """The end that the trial has come to, if it has."""
        if endless := self.injector.endless:
            return End("failed", endless)
        over = [name for name in self.members if self._is_over(name)]
        if end := end_of(self.plan, over, self.exits, self.seen_end):
            return end
        left = [name for name in self.members if name not in over]
        if all(map(self.director.is_frozen, left)) and all(map(self.director.is_stopped, left)):
            return End("failed", f"{', '.join(left)} frozen, and nothing undoes it")
        return None

    def _is_over(self, name: str) -> bool:
        """Whether a program has ended, and is not to be started again."""
        comes_back = self.anew_s is not None or name in self.to_launch
        if self.members[name].state not in ENDS or comes_back:
            return False
        has_ended_well = self.members[name].state is State.STOPPED
        return has_ended_well or self.director.returns_s(name, "launch") is None

    def _line(self, event: LineSeen, now: float) -> list[Effect]:
        if event.is_end and not self.seen_end:
            self.seen_end = event.node
        if self.phase is not Phase.RUNNING or not event.measured:
            return []
        return self.director.measured(event.node, self.plans[event.node].device_class, event.measured, now)

    def _woken(self, event: Woken, now: float) -> list[Effect]:
        if event.token == "join":
            return self._late(event.load, now)
        if event.token in self.director.steps:
            return self.director.woken(event.token, now)
        if event.token == "time" and not self.is_ending:
            over = [name for name in self.members if self._is_over(name)]
            end = judged(over, self.exits, f"{format_duration(self.plan.stop_time_s or 0.0)} have passed")
            return self._end(end.outcome, end.reason, now)
        if event.token == "grace" and self.phase is Phase.ENDING:
            return [*map(_kill, self._there()), Wake(now + GRACE_S, "gone")]
        if event.token == "gone" and self.phase is Phase.ENDING:
            return self._over()
        return []  # the time to start all anew has come, which is looked at after every event

    def _interrupted(self, _: Interrupted, now: float) -> list[Effect]:
        return self._end("interrupted", BY_USER, now)

    def _end(self, outcome: str, reason: str, now: float) -> list[Effect]:
        """Have all programs end: those that are frozen at once, others in their own way within the grace."""
        if self.is_ending:
            return []
        self.phase = Phase.ENDING
        self.outcome, self.reason = outcome, reason[:REASON_LENGTH_MAX]
        self.to_launch.clear()
        there = self._there()
        ends = [_kill(name) if self.director.is_frozen(name) else EndProgram(name) for name in there]
        effects = [*self.director.close(), *ends]
        return [*effects, Wake(now + self.grace_s, "grace")] if there or self.launching else effects + self._over()

    def _there(self) -> list[str]:
        return [name for name, member in self.members.items() if member.is_there]

    def _over(self) -> list[Effect]:
        """End the trial, whether or not all programs have ended."""
        self.phase = Phase.OVER
        late: list[Effect] = []
        for name in self._there():
            late += self.members.become(name, State.DIED, f"{UNSTOPPED}, and could not be killed")
        return [*late, Journal(Ended(outcome=self.outcome, reason=self.reason)), EndNode(self.reason)]

    # --- programs end, and come back ----------------------------------------------------------------------------

    def _exited(self, event: ProgramExited, now: float) -> list[Effect]:
        name, member = event.node, self.members[event.node]
        self.launching.discard(name)
        if member.state in ENDS:
            return []
        was_early = member.state in (State.EXPECTED, State.STARTED)
        asked = self.injector.active_faults[name].ending or self.is_ending or name in self.old
        in_order = event.code == 0 and not was_early
        record = Exited(
            name=name,
            incarnation=member.incarnation,
            code=event.code,
            signal=event.signal,
            oom=event.oom,
            asked=asked,
            consequence_of="" if asked or in_order else self._cause(now),
            left=event.left,
        )
        self.exits[name] = record
        if asked and not self.is_ending and name not in self.old:
            self.planned = now, name
        reason = _reason(record, event.said, was_early=was_early)
        is_well = in_order or self.is_ending
        effects = [Journal(record), *self.members.become(name, State.STOPPED if is_well else State.DIED, reason)]
        if self.is_ending:
            return effects
        self.old.discard(name)
        effects += self.injector.exited(name, now)
        return effects if in_order else effects + self._died(record, reason, now, was_early=was_early)

    def _cause(self, now: float) -> str:
        """The node that was ended on purpose so lately that another's end is a consequence; empty if there is none."""
        if self.planned is None or now - self.planned[0] > self.plan.silence_s:
            return ""
        return self.planned[1]

    def _died(self, record: Exited, reason: str, now: float, *, was_early: bool) -> list[Effect]:
        """Do what the policy has for a program that has not ended in order."""
        name, policy = record.name, self.plan.on_failure
        is_brief = was_early or now < self.started_s[name] + BRIEF_S
        is_never_ready = self._fails_to_start(record, is_brief=is_brief)
        if (record.code in NOT_BEGUN and record.is_failure) or is_never_ready:
            return self._end("failed", f"{name}: {reason}{is_never_ready}", now)
        if policy == "restart-all":
            return self._end_all_to_start_anew(name, now)
        if policy == "restart":
            is_back = self.members[name].state is not State.DIED
            return [] if is_back else self.director.restart(name, now)
        if policy == "stop":
            return self._end("failed", f"{name} died: {reason} (on_failure: stop)", now)
        if self.phase is Phase.LAUNCHED:
            return self._end("failed", f"{name} ended before all programs were ready: {reason}", now)
        return []

    def _fails_to_start(self, record: Exited, *, is_brief: bool) -> str:
        """Count the lives of a program that came to nothing; what there is to say of them if these are too many."""
        if record.asked:
            return ""
        if not (is_brief or self.phase is Phase.LAUNCHED):
            self.vain.pop(record.name, None)
            return ""
        self.vain[record.name] += 1
        return f", for the {STARTS_MAX}th time in a row" if self.vain[record.name] == STARTS_MAX else ""

    def _end_all_to_start_anew(self, died: str, now: float) -> list[Effect]:
        """End all other programs, so that all are started anew together; nothing where that is under way."""
        if self.anew_s is not None:
            return []
        self.anew_s = now + self.plan.restart_delay_s
        self.to_launch.clear()
        self.old = {*self._there(), *self.launching}
        cause = FaultCause(ON_FAILURE, f"{died} died", now)
        effects: list[Effect] = [Wake(self.anew_s, "anew")]
        for name in self._there():
            effects += self.injector.ask(cause, Injection(node=name, action="kill"), now)
        return effects

    def _start_anew(self, now: float) -> list[Effect]:
        """Have all programs launched, if that is to be, all have ended, and no fault keeps one of them away."""
        if self.anew_s is None or now < self.anew_s or self.old:
            return []
        if any(self.director.steps.is_absent(name, now) for name in self.members):
            return []
        self.anew_s = None
        members = self.members.items()
        self.to_launch = {name for name, member in members if member.state in ENDS or not member.incarnation}
        return []

    # --- faults, and what the user does by hand -----------------------------------------------------------------

    def _injected(self, event: Injected, now: float) -> list[Effect]:
        if event.number not in self.injector.asked:
            return []  # the trial has ended meanwhile, or it is no fault
        _, injection = self.injector.asked[event.number]
        if injection.action == "thaw":
            self.progress_at_s = now
        return self.injector.injected(event)

    def _ordered(self, event: CommandReceived, now: float) -> list[Effect]:
        if self.phase is not Phase.RUNNING:
            state = "have not all begun yet" if self.phase is Phase.LAUNCHED else "are over"
            return [CommandResult(event.ticket, f"the programs {state}")]
        if event.roll_back_to is not None:
            return [CommandResult(event.ticket, "programs have no backups that could be gone back to")]
        return self.injector.ordered(event, now)


def _kill(name: str) -> ApplyInjection:
    """Kill a program without a record of a fault."""
    return ApplyInjection(0, Injection(node=name, action="kill"))


def _awaited(ready: Ready) -> str:
    """What shows that a program is ready, in words, as far as it has not been seen."""
    found = (
        f"nobody listens on its port {ready.port}" if ready.port is not None else "",
        f"no line of its output matches {ready.log!r}" if ready.log is not None else "",
        f"there is no file {ready.file}" if ready.file is not None else "",
        f"{format_duration(ready.after_s)} have not passed" if ready.after_s is not None else "",
    )
    return " and ".join(text for text in found if text) or "it has not been started"


def _reason(record: Exited, said: str, *, was_early: bool) -> str:
    early = ", before it was ready" if was_early else ""
    left = f"; {record.left} other processes of its were left, and killed" if record.left else ""
    return f"{record.text}{early}{left}{said}"[:REASON_LENGTH_MAX]
