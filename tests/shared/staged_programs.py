"""Programs that only exist as times: a world for the heart of their controller, with a clock of its own.

What a program would do, how long it lives and how it ends, is given; so is how long everything takes. Kills work.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edgebed.core import records
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.program import ProgramPlan
from edgebed.roles.events import (
    ApplyInjection,
    CommandResult,
    EndNode,
    EndProgram,
    Injected,
    Interrupted,
    Journal,
    LineSeen,
    NodeStarted,
    ProgramExited,
    ReadySeen,
    Wake,
    Woken,
)
from edgebed.roles.programs.controller import ProgramController

EVENTS_MAX = 20_000


@dataclass(frozen=True, kw_only=True)
class Life:
    """What a program does in one life."""

    lives_s: float = 5.0
    code: int | None = 0
    """None: SIGSEGV."""
    ready_s: float | None = 0.5
    """Time until it shows that it is ready, if that is waited for; None: never."""
    is_stubborn: bool = False
    """Whether it does not end when it is asked to."""
    says: tuple[tuple[float, dict[str, float]], ...] = ()
    """Measures, each with when it prints them."""


def node(name: str, rank: int, **fields: Any) -> ProgramPlan:
    """The plan of a node `CLASS-INDEX`."""
    device_class, _, index = name.rpartition("-")
    return ProgramPlan(
        node=name, device_class=device_class, seed=1, index=int(index), rank=rank, run=("true",), **fields
    )


@dataclass
class StagedPrograms:
    """Runs a trial; afterwards `journal` has what it said, with times."""

    plan: ProgramsPlan
    life_of: Callable[[str, int], Life] = lambda node, incarnation: Life()
    delay: Callable[[], float] = lambda: 0.05
    interrupt_s: float | None = None
    journal: list[tuple[float, records.Record]] = field(default_factory=list)
    launches: list[tuple[float, str]] = field(default_factory=list)
    alive: dict[str, int] = field(default_factory=dict)
    """The life of each program that is there."""
    ready: set[str] = field(default_factory=set)
    """Programs that are ready, or were and have ended in order."""
    frozen: set[str] = field(default_factory=set)
    is_over: bool = False
    now: float = 0.0

    def __post_init__(self) -> None:
        self.heart = ProgramController(self.plan, "process")
        self.lives = {node.node: 0 for node in self.plan.nodes}
        self.agenda: list[tuple[float, int, Callable[[], Any]]] = []
        self.numbers = itertools.count()

    def run(self) -> "StagedPrograms":
        """Run it to its end; AssertionError where it comes to none."""
        if self.interrupt_s is not None:
            self.at(self.interrupt_s, lambda: self.tell(Interrupted()))
        self.carry_out(self.heart.launch(0.0))
        for _ in range(EVENTS_MAX):
            if self.is_over or not self.agenda:
                break
            self.now, _, happen = heapq.heappop(self.agenda)
            happen()
        assert self.is_over, f"at {self.now:g} s nothing is to come, or too much has been"
        assert self.heart.handle(Interrupted(), self.now) == []
        return self

    def at(self, time_s: float, happen: Callable[[], Any]) -> None:
        """Have something happen at a time, or now if that has passed."""
        heapq.heappush(self.agenda, (max(time_s, self.now), next(self.numbers), happen))

    def tell(self, event: Any) -> None:
        """Tell the heart something, and do what it says."""
        if not self.is_over:
            self.carry_out(self.heart.handle(event, self.now))

    def carry_out(self, effects: list[Any]) -> None:
        """Do what the heart says."""
        for effect in effects:
            assert not self.is_over, "an effect after the end"
            match effect:
                case Journal(record):
                    self.journal.append((self.now, record))
                case Wake(at_s, token):
                    self.at(at_s, lambda token=token: self.tell(Woken(token)))
                case ApplyInjection(number, injection) if injection.action == "launch":
                    self.launches.append((self.now, injection.node))
                    self.at(self.now + self.delay(), lambda one=effect: self.start(one.injection.node, one.number))
                case ApplyInjection():
                    self.at(self.now + self.delay(), lambda one=effect: self.inject(one))
                case EndProgram(name):
                    life, number = self.life_of(name, self.alive[name]), self.alive[name]
                    if not life.is_stubborn:
                        self.at(self.now + self.delay(), lambda one=(name, number): self.end(*one, signal="SIGTERM"))
                case EndNode():
                    self.is_over = True
                case CommandResult():
                    pass
                case _:
                    raise AssertionError(effect)

    def start(self, name: str, number: int) -> None:
        """Begin a program's next life."""
        assert name not in self.alive, f"{name} is started twice"
        self.lives[name] += 1
        incarnation = self.alive[name] = self.lives[name]
        life = self.life_of(name, incarnation)
        self.ready.discard(name)
        self.tell(NodeStarted(name))
        self.tell(Injected(number))
        waits = self.heart.plans[name].ready.port is not None
        if not waits:
            self.ready.add(name)
        elif life.ready_s is not None:
            self.at(self.now + life.ready_s, lambda: self.show_ready(name, incarnation))
        for after_s, measured in life.says:
            self.at(self.now + after_s, lambda told=measured: self.say(name, incarnation, told))
        self.at(self.now + life.lives_s, lambda: self.end(name, incarnation, code=life.code))

    def show_ready(self, name: str, incarnation: int) -> None:
        """Become ready."""
        if self.alive.get(name) == incarnation:
            self.ready.add(name)
            self.tell(ReadySeen(name))

    def say(self, name: str, incarnation: int, measured: dict[str, float]) -> None:
        """Print measures."""
        if self.alive.get(name) == incarnation:
            self.tell(LineSeen(name, measured))

    def end(self, name: str, incarnation: int, *, code: int | None = None, signal: str = "") -> None:
        """End a life; one that is frozen ends by a kill alone, and goes on when it is thawed."""
        if self.alive.get(name) != incarnation:
            return
        if name in self.frozen and signal != "SIGKILL":
            self.at(self.now + 1.0, lambda: self.end(name, incarnation, code=code, signal=signal))
            return
        del self.alive[name]
        self.frozen.discard(name)
        if code != 0:
            self.ready.discard(name)
        self.tell(ProgramExited(name, code, signal or ("SIGSEGV" if code is None else "")))

    def inject(self, effect: ApplyInjection) -> None:
        """Do an action."""
        name, action = effect.injection.node, effect.injection.action
        if action in ("freeze", "thaw") and name in self.alive:
            (self.frozen.add if action == "freeze" else self.frozen.discard)(name)
        self.tell(Injected(effect.number))
        if action == "kill" and name in self.alive:
            incarnation = self.alive[name]
            self.at(self.now + self.delay(), lambda: self.end(name, incarnation, signal="SIGKILL"))

    def all(self, kind: type[Any]) -> list[Any]:
        """The records of a kind."""
        return [record for _, record in self.journal if isinstance(record, kind)]

    @property
    def ended(self) -> records.Ended:
        """The end."""
        return self.all(records.Ended)[-1]
