"""The director: what is done to nodes on purpose, when, and what came of it.

    plan's faults --time, update, point--> steps --> ask --> Inject … Injected --> record `fault`
    by hand, on_failure ---------------------------> ask

It is a part of the controller's heart. A node can be cut, or frozen, by several faults at once: it is healed, or
thawed, when the last of them is over. What is done to a node's link and cap stays, and is done to its next life, too.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple, Protocol

import msgspec

from edgebed.roles.events import Answer, Effect, Inject, Injected, Journal, Ordered, Wake
from edgebed.roles.members import Member
from edgebed.roles.records import Fault, Note
from edgebed.roles.to_come import ON_FAILURE, Cause, ToCome
from edgebed.scenario import units
from edgebed.scenario.plan import LINK_ACTIONS, Action, Injection, LinkChange, Plan, Trigger
from edgebed.wire import messages

BY_HAND = "by hand"
TOKEN = "fault:"
OF_NEXT_LIFE = (*LINK_ACTIONS, "cpus")
"""Actions that can be done to a node that is not there: its next life has them."""


class Changed(NamedTuple):
    """What of a node is not as planned."""

    change: LinkChange | None
    cpus: float | None


class World(msgspec.Struct):
    """What is done to a node at present, and by what."""

    frozen_by: set[str] = msgspec.field(default_factory=set)
    cut_by: set[str] = msgspec.field(default_factory=set)
    change: LinkChange | None = None
    """What of its link is not as planned."""
    cpus: float | None = None
    """Its cap, if that is not as planned."""
    ending: bool = False
    """It is being killed."""
    launch: Cause | None = None
    """Why it is to be launched when it has ended."""

    @property
    def changed(self) -> Changed:
        """What of the node is not as planned."""
        return Changed(self.change, self.cpus)

    def injections(self, node: str) -> list[Injection]:
        """What has to be done to its next life."""
        again = []
        if self.change is not None:
            again.append(Injection(node=node, action="link", change=self.change))
        if self.cut_by:
            again.append(Injection(node=node, action="cut"))
        if self.cpus is not None:
            again.append(Injection(node=node, action="cpus", cpus=self.cpus))
        return again


class Stage(Protocol):
    """What the director needs of the controller."""

    members: dict[str, Member]

    def send(self, name: str, message: messages.ManagementMessage) -> list[Effect]:
        """To a node that is there; nothing to others."""
        ...

    def expect(self, name: str) -> list[Effect]:
        """The node is about to be launched."""
        ...


class Director:
    """Follows a plan's faults, and what is asked for besides."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self.plan = plan
        self.neighbours = plan.neighbours()
        self.stage = stage
        self.worlds = {node.node: World() for node in plan.nodes}
        self.steps = ToCome[str]()
        """By the token of a Wake: what is due then."""
        self.by_update = sorted(
            (fault.trigger.at_update, k) for k, fault in enumerate(plan.faults) if fault.trigger.at_update is not None
        )
        """(update, its place in the plan) of faults that are still to come."""
        self.passed_s = -1.0
        """What the plan does at a time up to this one, since training began, has been done."""
        self.triggered_s: Mapping[tuple[str, str], float] = {}
        """Name and node of faults that were triggered up to then: when, since training began."""
        self.asked = ToCome[int]()
        """By the number of an Inject effect: what it asks for, and is under way."""
        self.before: dict[int, Changed] = {}
        """Of each of these, what its node was until then."""
        self.tickets: dict[int, list[str]] = {}
        """Of users who wait: the problems so far."""
        self.ordering: int | None = None
        """The ticket whose order is not asked for as a whole yet, and so cannot be answered."""
        self.count = 0

    # --- triggers -----------------------------------------------------------------------------------------------

    def began(self, began_s: float, now: float) -> list[Effect]:
        """Training began then; what the plan does at a time is done from here on, but for what has been done."""
        effects: list[Effect] = []
        for k in range(len(self.plan.faults)):
            triggered_s = self._triggered_s(k)
            if triggered_s is not None:
                effects += self._trigger(k, began_s + triggered_s, now, since_s=began_s + self.passed_s)
        return effects

    def resumed(self, passed_s: float, updates: int, triggered_s: Mapping[tuple[str, str], float]) -> None:
        """The trial goes on: faults of its first so many seconds of training, or of so many updates, have been.

        `triggered_s`: when each fault, by its name and node, was triggered first. All nodes begin another life. What
        was done to their links and caps, and has not been undone, is done to that, too; what is to come still comes.
        """
        self.passed_s = passed_s
        self.by_update = [due for due in self.by_update if due[0] > updates]
        self.triggered_s = triggered_s
        passed = [
            (cause.asked_s, cause, step)
            for k in range(len(self.plan.faults))
            if (at_s := self._triggered_s(k)) is not None
            for cause, step in self._causes(k, at_s)
            if cause.asked_s <= passed_s and step.action in OF_NEXT_LIFE
        ]
        for _, cause, step in sorted(passed, key=itemgetter(0)):
            _note_in(self.worlds[step.node], cause, step)

    def _triggered_s(self, place: int) -> float | None:
        """When a fault is triggered, or was before the trial goes on, since training began; None: not known yet.

        One that chance triggers again and again is not told of.
        """
        fault = self.plan.faults[place]
        if fault.trigger.at_s is not None or fault.trigger.probability is not None:
            return fault.trigger.at_s
        return self.triggered_s.get((fault.name, fault.node))

    def updated(self, version: int, now: float) -> list[Effect]:
        """The server has applied so many updates."""
        effects: list[Effect] = []
        while self.by_update and self.by_update[0][0] <= version:
            effects += self._trigger(self.by_update.pop(0)[1], now, now)
        return effects

    def reached(self, message: messages.Reached, now: float) -> list[Effect]:
        """A worker stands where a fault waits for it."""
        if not 0 <= message.fault < len(self.plan.faults):
            return self._proceed(message.sender)
        return self._trigger(message.fault, now, now, message)

    def woken(self, token: str, now: float) -> list[Effect]:
        """A step is due."""
        cause, injection = self.steps.pop(token)
        return self._ask(cause, injection, now)

    def finished(self) -> None:
        """Training has ended: nothing of the plan begins any more; who is away is still brought back, as planned."""
        for token, (_, injection) in list(self.steps.all.items()):
            if not self._brings_back(injection):
                self.steps.pop(token)

    def _brings_back(self, injection: Injection) -> bool:
        node, world = injection.node, self.worlds[injection.node]
        is_away = {"launch": world.ending or not self._is_there(node), "thaw": world.frozen_by, "heal": world.cut_by}
        return bool(is_away.get(injection.action))

    def ordered(self, event: Ordered, now: float) -> list[Effect]:
        """The user asks for something; who is dead already and is to be restarted need not be killed."""
        self.tickets[event.ticket] = []
        self.ordering = event.ticket
        launched = {injection.node for injection in event.injections if injection.action == "launch"}
        effects: list[Effect] = []
        for injection in event.injections:
            if injection.node not in self.worlds:
                problem = f"no node {injection.node!r}; there are {', '.join(self.worlds)}"
                self.tickets[event.ticket].append(problem)
            elif injection.action != "kill" or injection.node not in launched or self._is_there(injection.node):
                effects += self._ask(Cause(BY_HAND, BY_HAND, now, ticket=event.ticket), injection, now)
        self.ordering = None
        return effects + self._answer(event.ticket)

    def _is_there(self, node: str) -> bool:
        return self.stage.members[node].is_there

    def restart(self, node: str, now: float) -> list[Effect]:
        """A node has died: it is launched after the policy's delay, unless it will be anyhow."""
        if self.returns_s(node, "launch") is not None:
            return []
        due_s = now + self.plan.restart_delay_s
        return self._later(Cause(ON_FAILURE, "it died", due_s), Injection(node=node, action="launch"))

    def kill(self, node: str, now: float) -> list[Effect]:
        """A node does not answer: it is to end, so that the policy can launch it."""
        return self._ask(Cause(ON_FAILURE, "it did not answer", now), Injection(node=node, action="kill"), now)

    def _trigger(
        self, place: int, at_s: float, now: float, reached: messages.Reached | None = None, since_s: float = -math.inf
    ) -> list[Effect]:
        """Do what is due of a fault, and see to the rest; what was due until `since_s` has been done."""
        effects: list[Effect] = []
        for cause, injection in self._causes(place, at_s, reached):
            if since_s < cause.asked_s <= now:
                effects += self._ask(cause, injection, now)
            elif cause.asked_s > now:
                effects += self._later(cause, injection)
        return effects

    def _causes(
        self, place: int, at_s: float, reached: messages.Reached | None = None
    ) -> Iterator[tuple[Cause, Injection]]:
        """The steps of a fault that is triggered at that time."""
        fault = self.plan.faults[place]
        text = trigger_text(fault.trigger, reached.step if reached else None)
        for k, step in enumerate(fault.steps):
            waiting = reached.sender if reached and k == 0 else ""
            undoes_all = k == 0 and step.injection.action in ("thaw", "heal")
            yield Cause(fault.name, text, at_s + step.after_s, waiting, undoes_all=undoes_all), step.injection

    def _later(self, cause: Cause, injection: Injection) -> list[Effect]:
        self.count += 1
        token = f"{TOKEN}{self.count}"
        self.steps.add(token, cause, injection)
        return [Wake(cause.asked_s, token)]

    # --- what is done -------------------------------------------------------------------------------------------

    def _ask(self, cause: Cause, injection: Injection, now: float) -> list[Effect]:
        """Have it done, or say why there is nothing to do."""
        member, world = self.stage.members[injection.node], self.worlds[injection.node]
        problem = impossible(injection, member)
        if problem:
            return self._settle(cause, injection, problem=problem)
        if injection.action == "launch" and world.launch and member.is_there:
            return self._settle(cause, injection, moot="it is to be launched already")
        if injection.action == "launch" and world.ending and member.is_there:
            world.launch = cause
            return []
        before, overlap = world.changed, ""
        if member.is_there or injection.action in OF_NEXT_LIFE:
            overlap = _note_in(world, cause, injection)
        moot = _moot(injection, member, world) or overlap
        if moot:
            return self._settle(cause, injection, moot=moot)
        world.ending |= injection.action == "kill"
        return self._inject(cause, injection, before)

    def _inject(self, cause: Cause, injection: Injection, before: Changed) -> list[Effect]:
        self.count += 1
        self.asked.add(self.count, cause, injection)
        self.before[self.count] = before
        told = self.stage.expect(injection.node) if injection.action == "launch" else self._tell(injection)
        return [*told, Inject(self.count, injection)]

    def _tell(self, injection: Injection) -> list[Effect]:
        """The node hears what is its own part, and the other end of a link what is asked of it now."""
        names = [injection.node] if injection.action in (*OF_NEXT_LIFE, "memory") else []
        if injection.action in LINK_ACTIONS:
            names += self._others(injection.node)
        return [effect for name in names for effect in self._tell_one(name, injection)]

    def _tell_one(self, name: str, injection: Injection) -> list[Effect]:
        return self.stage.send(name, messages.Inject(sender="controller", injection=injection))

    def _others(self, node: str) -> tuple[str, ...]:
        """The nodes at the other end of a node's messages."""
        return self.neighbours[node]

    def injected(self, event: Injected) -> list[Effect]:
        """It is done, or could not be."""
        cause, injection = self.asked.pop(event.number)
        before = self.before.pop(event.number)
        untold = self._take_back(cause, injection, before) if event.problem else []
        return [*untold, *self._settle(cause, injection, problem=event.problem)]

    def _take_back(self, cause: Cause, injection: Injection, before: Changed) -> list[Effect]:
        """It could not be done: whoever was told hears what holds instead."""
        node, world = injection.node, self.worlds[injection.node]
        match injection.action:
            case "freeze":
                world.frozen_by.discard(cause.name)
            case "kill":
                world.ending = False
            case "link":
                world.change = before.change
                planned, again = (Injection(node=node, action="link", change=change) for change in (None, world.change))
                return self._tell(planned) + (self._tell(again) if world.change else [])
            case "cpus":
                world.cpus = before.cpus
                return self._tell(Injection(node=node, action="cpus", cpus=world.cpus))
        return []

    def _settle(self, cause: Cause, injection: Injection, *, problem: str = "", moot: str = "") -> list[Effect]:
        """Record what came of it, and tell whoever waits."""
        if cause.again:
            text = f"{injection.node}: {injection.action} could not be done to its new life: {problem}"
            return [Journal(Note(text=text))] if problem else []
        record = Fault(
            name=cause.name,
            action=injection.action,
            target=injection.node,
            asked_s=round(cause.asked_s, 6),
            trigger=cause.trigger,
            change=change_text(injection),
            problem=problem,
            moot=moot,
        )
        effects: list[Effect] = [Journal(record)]
        if cause.waiting and (problem or moot or injection.action not in ("kill", "memory")):
            effects += self._proceed(cause.waiting)
        if cause.ticket is not None:
            if problem or moot:
                self.tickets[cause.ticket].append(f"{injection.node}: {problem or moot}")
            effects += self._answer(cause.ticket)
        return effects

    def _proceed(self, node: str) -> list[Effect]:
        return self.stage.send(node, messages.Proceed(sender="controller"))

    def _answer(self, ticket: int) -> list[Effect]:
        """Once nothing that the user asked for is under way any more."""
        under_way = [*self.asked.causes(), *(world.launch for world in self.worlds.values() if world.launch)]
        waits = ticket == self.ordering or any(cause.ticket == ticket for cause in under_way)
        if waits or ticket not in self.tickets:
            return []
        return [Answer(ticket, "; ".join(self.tickets.pop(ticket)))]

    def close(self) -> list[Effect]:
        """The trial ends: nothing is done any more, and whoever waits is told so."""
        tickets, self.tickets = self.tickets, {}
        self.steps.clear()
        self.asked.clear()
        self.before.clear()
        return [Answer(ticket, "; ".join([*problems, "the trial has ended"])) for ticket, problems in tickets.items()]

    # --- lives --------------------------------------------------------------------------------------------------

    def exited(self, node: str, now: float) -> list[Effect]:
        """A node has ended."""
        world = self.worlds[node]
        world.frozen_by.clear()
        world.ending = False
        cause, world.launch = world.launch, None
        return self._ask(cause, Injection(node=node, action="launch"), now) if cause else []

    def joined(self, node: str, now: float) -> list[Effect]:
        """A node has begun another life: do to it what was done to the one before."""
        effects: list[Effect] = []
        for injection in self.worlds[node].injections(node):
            effects += self._inject(Cause(BY_HAND, "", now, again=True), injection, self.worlds[node].changed)
        for other in self._others(node):
            for injection in self.worlds[other].injections(other):
                if injection.action in LINK_ACTIONS:
                    effects += self._tell_one(node, injection)
        return effects

    def is_stopped(self, node: str) -> bool:
        """Whether a node is frozen, or cut off, by the scenario, with nothing to come that undoes it.

        A policy of restarting undoes a freeze: it finds that the node gives no sign of life.
        """
        world, is_restarted = self.worlds[node], self.plan.on_failure == "restart"
        by_plan = world.frozen_by and BY_HAND not in world.frozen_by and not is_restarted
        frozen = by_plan and self.returns_s(node, "thaw") is None
        cut = world.cut_by and BY_HAND not in world.cut_by and self.returns_s(node, "heal") is None
        return bool(frozen or cut)

    def is_frozen(self, node: str) -> bool:
        """Whether a node has been frozen and not thawed."""
        return bool(self.worlds[node].frozen_by)

    def returns_s(self, node: str, action: Action) -> float | None:
        """When `action`, which brings the node back, is due at the latest; None if it is not to come."""
        return _last(each.latest_s(node, action) for each in (self.steps, self.asked))

    def last_return_s(self) -> float:
        """When the last node that the plan, or the user, brings back is brought back; 0 if none is."""
        return _last(each.last_return_s() for each in (self.steps, self.asked)) or 0.0


def _last(times_s: Iterable[float | None]) -> float | None:
    return max((time_s for time_s in times_s if time_s is not None), default=None)


def _moot(injection: Injection, member: Member, world: World) -> str:
    """Why there is nothing to do; empty if there is."""
    if injection.action == "launch":
        return f"it is {member.state}" if member.is_there or member.state == "expected" else ""
    if injection.action == "kill" and world.ending:
        return "it is being killed"
    if member.is_there:
        return ""
    later = "; its next life will be so" if injection.action in OF_NEXT_LIFE else ""
    return f"it is not there ({member.state}){later}"


def _note_in(world: World, cause: Cause, injection: Injection) -> str:
    """What a node's world becomes; why that takes no doing, empty if it does."""
    match injection.action:
        case "freeze":
            return _hold(world.frozen_by, cause.name, "frozen")
        case "thaw":
            return _let_go(world.frozen_by, cause, "frozen")
        case "cut":
            return _hold(world.cut_by, cause.name, "cut")
        case "heal":
            return _let_go(world.cut_by, cause, "cut")
        case "link":
            world.change = _merged(world.change, injection.change)
        case "cpus":
            world.cpus = injection.cpus
    return ""


def _hold(holders: set[str], name: str, state: str) -> str:
    held = bool(holders)
    holders.add(name)
    return f"it is {state} already" if held else ""


def _let_go(holders: set[str], cause: Cause, state: str) -> str:
    if not holders:
        return f"it is not {state}"
    if cause.name == BY_HAND or cause.undoes_all:
        holders.clear()
    holders.discard(cause.name)
    return f"it is {state} by {', '.join(sorted(holders))}, too" if holders else ""


def _merged(before: LinkChange | None, change: LinkChange | None) -> LinkChange | None:
    """Both changes; the later one where they differ. None: as planned again."""
    if before is None or change is None:
        return change
    given = {name: value for name in LinkChange.__struct_fields__ if (value := getattr(change, name)) is not None}
    return msgspec.structs.replace(before, **given)


def impossible(injection: Injection, member: Member) -> str:
    """Why this can never be done to a node; empty if it can."""
    plan = member.plan
    if injection.action in LINK_ACTIONS and plan.role == "evaluator":
        return "it has no link: watching is not traffic"
    if injection.action == "memory" and plan.memory_bytes is None:
        return "it has no memory cap to run into"
    return ""


def trigger_text(trigger: Trigger, step: int | None = None) -> str:
    """What makes a fault happen, for people: `at 30s`, `after-push 12`."""
    if trigger.at_s is not None:
        return f"at {units.format_duration(trigger.at_s)}"
    if trigger.at_update is not None:
        return f"at update {trigger.at_update:,}"
    return f"{trigger.point}" + ("" if step is None else f" {step}")


def change_text(injection: Injection) -> str:
    """What of a link or a cap changes, for people: `uplink 1mbit`; empty for other actions."""
    if injection.action == "cpus":
        return "as planned" if injection.cpus is None else f"{injection.cpus:g}"
    if injection.action != "link":
        return ""
    if injection.change is None:
        return "as planned"
    change = injection.change
    texts: Mapping[str, str | None] = {
        "uplink": None if change.uplink_bit_s is None else units.format_rate(change.uplink_bit_s),
        "downlink": None if change.downlink_bit_s is None else units.format_rate(change.downlink_bit_s),
        "latency": None if change.latency_s is None else units.format_duration(change.latency_s),
        "jitter": None if change.jitter_s is None else units.format_duration(change.jitter_s),
        "loss": None if change.loss is None else units.format_percentage(change.loss),
    }
    return ", ".join(f"{name} {text}" for name, text in texts.items() if text is not None)
