"""The director: what is done to nodes on purpose, when, and what came of it.

    plan's faults --time, update, point--> steps --> ask --> ApplyInjection … Injected --> record `fault`
    by hand, on_failure ---------------------------> ask

It is a part of the controller's heart. A node can be cut, or frozen, by several faults at once: it is healed, or
thawed, when the last of them is over. What is done to a node's link and cap stays, and is done to its next
incarnation, too.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

import msgspec

from edgebed.core import units
from edgebed.core.plan import LINK_ACTIONS, Action, Injection, LinkChange, Plan, Trigger
from edgebed.core.records import Fault, Note
from edgebed.roles.control.members import NAME, Member, Members, State
from edgebed.roles.control.to_come import ON_FAILURE, Cause, PendingActions
from edgebed.roles.events import ApplyInjection, CommandReceived, CommandResult, Effect, Injected, Journal, Wake
from edgebed.wire import messages

BY_HAND = "by hand"
TOKEN = "fault:"
OF_NEXT_INCARNATION = (*LINK_ACTIONS, "cpus")
"""Actions that can be done to a node that is not there: its next incarnation has them."""


class Deviation(NamedTuple):
    """Settings of a node that are not as planned."""

    change: LinkChange | None
    cpus: float | None


class ActiveFaults(msgspec.Struct):
    """Active faults of a node, and what caused them."""

    frozen_by: set[str] = msgspec.field(default_factory=set)
    cut_by: set[str] = msgspec.field(default_factory=set)
    change: LinkChange | None = None
    """Changes of the node's link that are not as planned."""
    cpus: float | None = None
    """CPU cap of the node, if not as planned."""
    ending: bool = False
    """Whether the node is being killed."""
    launch: Cause | None = None
    """Why the node is to be launched when it has ended."""

    @property
    def changed(self) -> Deviation:
        """Return what of the node is not as planned."""
        return Deviation(self.change, self.cpus)

    def injections(self, node: str) -> list[Injection]:
        """Return what has to be done to the node's next incarnation."""
        again = []
        if self.change is not None:
            again.append(Injection(node=node, action="link", change=self.change))
        if self.cut_by:
            again.append(Injection(node=node, action="cut"))
        if self.cpus is not None:
            again.append(Injection(node=node, action="cpus", cpus=self.cpus))
        return again


class Director:
    """Follows a plan's faults, and what is asked for besides."""

    def __init__(self, plan: Plan, members: Members) -> None:
        self.plan = plan
        self.neighbours = plan.neighbours()
        self.members = members
        self.worlds = {node.node: ActiveFaults() for node in plan.nodes}
        self.steps = PendingActions[str]()
        """Steps to come by the token of a Wake: what is due then."""
        self.by_update = sorted(
            (fault.trigger.at_update, k) for k, fault in enumerate(plan.faults) if fault.trigger.at_update is not None
        )
        """(update, index in the plan) of faults that are still to come."""
        self.passed_s = -1.0
        """Time since training began until which the plan's timed steps have been done."""
        self.triggered_s: Mapping[tuple[str, str], float] = {}
        """When the faults until then were triggered, since training began, by name and node."""
        self.asked = PendingActions[int]()
        """Steps under way by the number of the Inject effect that asks for them."""
        self.before: dict[int, Deviation] = {}
        """Settings not as planned that a node had before each of these steps."""
        self.tickets: dict[int, list[str]] = {}
        """Problems so far by the ticket of each user who waits."""
        self.ordering: int | None = None
        """Ticket whose order is not asked for as a whole yet, and so cannot be answered."""
        self.count = 0

    # --- triggers -----------------------------------------------------------------------------------------------

    def began(self, began_s: float, now: float) -> list[Effect]:
        """Begin what the plan does at a time, now that training began, but for what has been done."""
        effects: list[Effect] = []
        for k in range(len(self.plan.faults)):
            triggered_s = self._triggered_s(k)
            if triggered_s is not None:
                effects += self._trigger(k, began_s + triggered_s, now, since_s=began_s + self.passed_s)
        return effects

    def resumed(self, passed_s: float, updates: int, triggered_s: Mapping[tuple[str, str], float]) -> None:
        """Note that the trial is resumed: faults of its first seconds of training, or of so many updates, have been.

        `triggered_s`: when each fault, by its name and node, was triggered first. All nodes begin another incarnation.
        What was done to their links and caps, and has not been undone, is done to that, too; what is to come still
        comes.
        """
        self.passed_s = passed_s
        self.by_update = [due for due in self.by_update if due[0] > updates]
        self.triggered_s = triggered_s
        passed = [
            (cause.asked_s, cause, step)
            for k in range(len(self.plan.faults))
            if (at_s := self._triggered_s(k)) is not None
            for cause, step in self._causes(k, at_s)
            if cause.asked_s <= passed_s and step.action in OF_NEXT_INCARNATION
        ]
        for _, cause, step in sorted(passed, key=itemgetter(0)):
            _note_in(self.worlds[step.node], cause, step)

    def _triggered_s(self, place: int) -> float | None:
        """Return when after training began a fault is triggered, or was before the trial resumed; None: not known yet.

        For a fault that chance triggers again and again no time is known.
        """
        fault = self.plan.faults[place]
        if fault.trigger.at_s is not None or fault.trigger.probability is not None:
            return fault.trigger.at_s
        return self.triggered_s.get((fault.name, fault.node))

    def updated(self, version: int, now: float) -> list[Effect]:
        """Do what is due now that the server has applied so many updates."""
        effects: list[Effect] = []
        while self.by_update and self.by_update[0][0] <= version:
            effects += self._trigger(self.by_update.pop(0)[1], now, now)
        return effects

    def reached(self, message: messages.Reached, now: float) -> list[Effect]:
        """Act on a worker that stands where a fault waits for it."""
        if not 0 <= message.fault < len(self.plan.faults):
            return self._proceed(message.sender)
        return self._trigger(message.fault, now, now, message)

    def woken(self, token: str, now: float) -> list[Effect]:
        """Do the step that is due at this token."""
        cause, injection = self.steps.pop(token)
        return self._ask(cause, injection, now)

    def finished(self) -> None:
        """Begin nothing of the plan any more: training has ended. Who is away is still brought back, as planned."""
        for token, (_, injection) in list(self.steps.all.items()):
            if not self._brings_back(injection):
                self.steps.pop(token)

    def _brings_back(self, injection: Injection) -> bool:
        node, world = injection.node, self.worlds[injection.node]
        is_away = {"launch": world.ending or not self._is_there(node), "thaw": world.frozen_by, "heal": world.cut_by}
        return bool(is_away.get(injection.action))

    def ordered(self, event: CommandReceived, now: float) -> list[Effect]:
        """Do what the user asks for; a node that is dead already and is to be restarted need not be killed."""
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
        return self.members[node].is_there

    def restart(self, node: str, now: float) -> list[Effect]:
        """Launch a node that has died after the policy's delay, unless it will be anyhow."""
        if self.returns_s(node, "launch") is not None:
            return []
        due_s = now + self.plan.restart_delay_s
        return self._later(Cause(ON_FAILURE, "it died", due_s), Injection(node=node, action="launch"))

    def kill(self, node: str, now: float) -> list[Effect]:
        """End a node that does not answer, so that the policy can launch it."""
        return self._ask(Cause(ON_FAILURE, "it did not answer", now), Injection(node=node, action="kill"), now)

    def _trigger(
        self, place: int, at_s: float, now: float, reached: messages.Reached | None = None, since_s: float = -math.inf
    ) -> list[Effect]:
        """Do what is due of a fault, and schedule the rest; what was due until `since_s` has been done."""
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
        """Yield the steps of a fault that is triggered at that time."""
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
        """Have a step done, or say why there is nothing to do."""
        member, world = self.members[injection.node], self.worlds[injection.node]
        problem = impossible(injection, member)
        if problem:
            return self._settle(cause, injection, problem=problem)
        if injection.action == "launch" and world.launch and member.is_there:
            return self._settle(cause, injection, moot="it is to be launched already")
        if injection.action == "launch" and world.ending and member.is_there:
            world.launch = cause
            return []
        before, overlap = world.changed, ""
        if member.is_there or injection.action in OF_NEXT_INCARNATION:
            overlap = _note_in(world, cause, injection)
        moot = _moot(injection, member, world) or overlap
        if moot:
            return self._settle(cause, injection, moot=moot)
        world.ending |= injection.action == "kill"
        return self._inject(cause, injection, before)

    def _inject(self, cause: Cause, injection: Injection, before: Deviation) -> list[Effect]:
        self.count += 1
        self.asked.add(self.count, cause, injection)
        self.before[self.count] = before
        told = (
            self.members.become(injection.node, State.EXPECTED)
            if injection.action == "launch"
            else self._tell(injection)
        )
        return [*told, ApplyInjection(self.count, injection)]

    def _tell(self, injection: Injection) -> list[Effect]:
        """Tell the node its own part of a step, and the other end of a link what is asked of it now."""
        names = [injection.node] if injection.action in (*OF_NEXT_INCARNATION, "memory") else []
        if injection.action in LINK_ACTIONS:
            names += self._others(injection.node)
        return [effect for name in names for effect in self._tell_one(name, injection)]

    def _tell_one(self, name: str, injection: Injection) -> list[Effect]:
        return self.members.send(name, messages.Inject(sender=NAME, injection=injection))

    def _others(self, node: str) -> tuple[str, ...]:
        """Return the nodes at the other end of a node's messages."""
        return self.neighbours[node]

    def injected(self, event: Injected) -> list[Effect]:
        """Act on a step that is done, or could not be."""
        cause, injection = self.asked.pop(event.number)
        before = self.before.pop(event.number)
        untold = self._take_back(cause, injection, before) if event.problem else []
        return [*untold, *self._settle(cause, injection, problem=event.problem)]

    def _take_back(self, cause: Cause, injection: Injection, before: Deviation) -> list[Effect]:
        """Take back a step that could not be done: nodes that were told of it hear what holds instead."""
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
        """Record what came of a step, and tell the user or worker that waits."""
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
        return self.members.send(node, messages.Proceed(sender=NAME))

    def _answer(self, ticket: int) -> list[Effect]:
        """Answer the user once nothing that was asked for is under way any more."""
        under_way = [*self.asked.causes(), *(world.launch for world in self.worlds.values() if world.launch)]
        waits = ticket == self.ordering or any(cause.ticket == ticket for cause in under_way)
        if waits or ticket not in self.tickets:
            return []
        return [CommandResult(ticket, "; ".join(self.tickets.pop(ticket)))]

    def close(self) -> list[Effect]:
        """End with the trial: nothing is done any more, and users who wait hear so."""
        tickets, self.tickets = self.tickets, {}
        self.steps.clear()
        self.asked.clear()
        self.before.clear()
        return [
            CommandResult(ticket, "; ".join([*problems, "the trial has ended"])) for ticket, problems in tickets.items()
        ]

    # --- incarnations -------------------------------------------------------------------------------------------

    def exited(self, node: str, now: float) -> list[Effect]:
        """Launch a node that has ended, if it is to be."""
        world = self.worlds[node]
        world.frozen_by.clear()
        world.ending = False
        cause, world.launch = world.launch, None
        return self._ask(cause, Injection(node=node, action="launch"), now) if cause else []

    def joined(self, node: str, now: float) -> list[Effect]:
        """Do to the new incarnation of a node what was done to the one before."""
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

        A policy of restarting undoes a freeze: it finds that the node sends no heartbeats.
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
        """Return when `action`, which brings the node back, is due at the latest; None if it is not to come."""
        return _last(each.latest_s(node, action) for each in (self.steps, self.asked))

    def last_return_s(self) -> float:
        """Return when the last node that the plan, or the user, brings back is brought back; 0 if none is."""
        return _last(each.last_return_s() for each in (self.steps, self.asked)) or 0.0


def _last(times_s: Iterable[float | None]) -> float | None:
    return max((time_s for time_s in times_s if time_s is not None), default=None)


def _moot(injection: Injection, member: Member, world: ActiveFaults) -> str:
    """Say why there is nothing to do; empty if there is."""
    if injection.action == "launch":
        return f"it is {member.state}" if member.is_there or member.state is State.EXPECTED else ""
    if injection.action == "kill" and world.ending:
        return "it is being killed"
    if member.is_there:
        return ""
    later = "; its next life will be so" if injection.action in OF_NEXT_INCARNATION else ""
    return f"it is not there ({member.state}){later}"


def _note_in(world: ActiveFaults, cause: Cause, injection: Injection) -> str:
    """Update a node's world; say why a step takes no doing, empty if it does."""
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
    """Merge both changes; the later one where they differ. None: as planned again."""
    if before is None or change is None:
        return change
    given = {name: value for name in LinkChange.__struct_fields__ if (value := getattr(change, name)) is not None}
    return msgspec.structs.replace(before, **given)


def impossible(injection: Injection, member: Member) -> str:
    """Say why a step can never be done to a node; empty if it can."""
    plan = member.plan
    if injection.action in LINK_ACTIONS and plan.role == "evaluator":
        return "it has no link: watching is not traffic"
    if injection.action == "memory" and plan.memory_bytes is None:
        return "it has no memory cap to run into"
    return ""


def trigger_text(trigger: Trigger, step: int | None = None) -> str:
    """Describe what makes a fault happen: `at 30s`, `after-push 12`."""
    if trigger.at_s is not None:
        return f"at {units.format_duration(trigger.at_s)}"
    if trigger.at_update is not None:
        return f"at update {trigger.at_update:,}"
    return f"{trigger.point}" + ("" if step is None else f" {step}")


def change_text(injection: Injection) -> str:
    """Describe what of a link or a cap changes: `uplink 1mbit`; empty for other actions."""
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
