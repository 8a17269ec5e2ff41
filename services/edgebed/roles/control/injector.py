"""What is done to nodes on purpose, and what came of it: the hands of the director, and of the user.

    ask --no_op, impossible-------------> record `fault`
        --> ApplyInjection … Injected -> record `fault`

A node can be cut, or frozen, by several faults at once: it is healed, or thawed, when the last of them is over. What is
done to a node's link and cap stays, and is done to its next incarnation, too.
"""

from edgebed.core.actions import ACTIONS, ENDS_LIFE, KILLS, LINK_ACTIONS
from edgebed.core.plan import Plan
from edgebed.core.planned.fault import Injection
from edgebed.core.records import Fault, Note
from edgebed.roles.control.active_faults import BY_HAND, ActiveFaults, Deviation
from edgebed.roles.control.fault_text import change_text
from edgebed.roles.control.members import Member, Members, State
from edgebed.roles.control.name import NAME
from edgebed.roles.control.pending_actions import FaultCause, PendingActions
from edgebed.roles.control.tickets import Tickets
from edgebed.roles.events import ApplyInjection, CommandReceived, Effect, Injected, Journal
from edgebed.wire import messages


class Injector:
    """Has steps done to nodes, one by one."""

    def __init__(self, plan: Plan, members: Members) -> None:
        self.members = members
        self.neighbours = plan.neighbours()
        self.active_faults = {node.node: ActiveFaults() for node in plan.nodes}
        self.asked = PendingActions[int]()
        """Steps under way by the number of the effect that asks for them."""
        self.before: dict[int, Deviation] = {}
        """Settings not as planned that a node had before each of these steps."""
        self.endless = ""
        """Why the trial would not come to an end; empty if it does."""
        self.tickets = Tickets()
        self.count = 0

    def ask(self, cause: FaultCause, injection: Injection, now: float) -> list[Effect]:
        """Have a step done, or say why there is nothing to do."""
        member, active = self.members[injection.node], self.active_faults[injection.node]
        problem = impossible(injection, member)
        if not problem and cause.ticket is not None and injection.change:
            problem = active.unevenness(injection.change, member.plan.link)
        if problem:
            return self._settle(cause, injection, problem=problem)
        if injection.action == "launch" and member.state is State.STOPPED and cause.is_planned:
            return self._settle(cause, injection, no_op="its program has ended in order")
        if injection.action == "launch" and active.launch and member.is_there:
            return self._settle(cause, injection, no_op="it is to be launched already")
        if injection.action == "launch" and active.ending and member.is_there:
            active.launch = cause
            return []
        before, overlap = active.changed, ""
        if member.is_there or ACTIONS[injection.action].outlasts:
            overlap = active.note(cause, injection)
            if not member.is_there:
                active.missed.add(injection.action)
        if no_op := active.no_op(injection, member, overlap):
            return self._settle(cause, injection, no_op=no_op)
        if injection.action == "launch" and (problem := active.launched(now)):
            self.endless = f"{cause.name} does not end: {injection.node}: {problem}"
            return self._settle(cause, injection, problem=problem)
        active.ending |= injection.action in KILLS
        return self._inject(cause, injection, before)

    def ordered(self, event: CommandReceived, now: float) -> list[Effect]:
        """Do what the user asks for; a node that is to be restarted need not be killed where it is dead, or dying."""
        self.tickets.open(event.ticket)
        launched = {injection.node for injection in event.injections if injection.action == "launch"}
        dying = {
            name for name, active in self.active_faults.items() if active.ending or not self.members[name].is_there
        }
        effects: list[Effect] = []
        for injection in event.injections:
            if injection.node not in self.active_faults:
                problem = f"no node {injection.node!r}; there are {', '.join(self.active_faults)}"
                self.tickets.note(event.ticket, problem)
            elif injection.action not in KILLS or injection.node not in launched & dying:
                effects += self.ask(FaultCause(BY_HAND, BY_HAND, now, ticket=event.ticket), injection, now)
        self.tickets.ordering = None
        return effects + self._answer(event.ticket)

    def injected(self, event: Injected) -> list[Effect]:
        """Act on a step that is done, could not be, or came to a node that had ended: it, too, is as was asked."""
        cause, injection = self.asked.pop(event.number)
        before, active = self.before.pop(event.number), self.active_faults[injection.node]
        if not event.problem:
            if injection.action == "thaw":
                self.members[injection.node].missed = 0  # its heartbeats come again from here on
            return self._settle(cause, injection, no_op=event.no_op)
        untold = [effect for holds in active.take_back(cause, injection, before) for effect in self._tell(holds)]
        settled = self._settle(cause, injection, problem=event.problem)
        if injection.action in KILLS and active.launch:  # there is no end that it could wait for
            launch, active.launch = active.launch, None
            settled += self.ask(launch, Injection(node=injection.node, action="launch"), launch.asked_s)
        return [*untold, *settled]

    def exited(self, node: str, now: float) -> list[Effect]:
        """Launch a node that has ended, if it is to be."""
        cause = self.active_faults[node].end()
        return self.ask(cause, Injection(node=node, action="launch"), now) if cause else []

    def joined(self, node: str, now: float) -> list[Effect]:
        """Do to the new incarnation of a node what was done to the one before, and undo what has ended since."""
        effects: list[Effect] = []
        active = self.active_faults[node]
        for injection in (*active.catch_up(node), *active.injections(node)):
            effects += self._inject(FaultCause(BY_HAND, "", now, again=True), injection, active.changed)
        for other in self.neighbours[node]:
            for injection in self.active_faults[other].injections(other):
                if injection.action in LINK_ACTIONS and not injection.peer:
                    effects += self._tell_one(node, injection)
        for other, faults in self.active_faults.items():
            for injection in faults.injections(other) if self.members[other].is_there else ():
                if injection.peer == node:  # what is between two is done to both
                    effects += self._inject(FaultCause(BY_HAND, "", now, again=True), injection, faults.changed)
        return effects

    def late(self, node: str, now: float) -> list[Effect]:
        """Do to a node that is ready what was done while it was given up, if anything was."""
        return self.joined(node, now) if self.active_faults[node].missed else []

    def close(self) -> list[Effect]:
        """End with the trial: users who wait hear that nothing is done any more.

        What else is under way happens still, and is recorded; the trial may have ended by it, as by its last worker's
        kill. A launch comes to nothing.
        """
        done = [
            Journal(_record(cause, injection))
            for cause, injection in self.asked.all.values()
            if injection.action != "launch" and cause.ticket is None and not cause.again
        ]
        self.asked.clear()
        self.before.clear()
        return [*done, *self.tickets.close()]

    def proceed(self, node: str) -> list[Effect]:
        """Let a worker go on that stands where a fault waited for it."""
        return self.members.send(node, messages.Proceed(sender=NAME))

    def _inject(self, cause: FaultCause, injection: Injection, before: Deviation) -> list[Effect]:
        self.count += 1
        self.asked.add(self.count, cause, injection)
        self.before[self.count] = before
        is_launch = injection.action == "launch"
        told = self.members.become(injection.node, State.EXPECTED) if is_launch else self._tell(injection)
        return [*told, ApplyInjection(self.count, injection)]

    def _tell(self, injection: Injection) -> list[Effect]:
        """Tell the node its own part of a step, and the other end of a link what is asked of it now."""
        names = [injection.node] if ACTIONS[injection.action].by != "launcher" else []
        if injection.action in LINK_ACTIONS:
            names += [injection.peer] if injection.peer else self.neighbours[injection.node]
        return [effect for name in names for effect in self._tell_one(name, injection)]

    def _tell_one(self, name: str, injection: Injection) -> list[Effect]:
        return self.members.send(name, messages.Inject(sender=NAME, injection=injection))

    def _settle(self, cause: FaultCause, injection: Injection, *, problem: str = "", no_op: str = "") -> list[Effect]:
        """Record what came of a step, and tell the user or worker that waits."""
        if cause.again:
            text = f"{injection.node}: {injection.action} could not be done to its new life: {problem}"
            return [Journal(Note(text=text))] if problem else []
        effects: list[Effect] = [Journal(_record(cause, injection, problem, no_op))]
        if cause.waiting and (problem or no_op or injection.action not in ENDS_LIFE):
            effects += self.proceed(cause.waiting)
        if cause.ticket is not None:
            if problem or no_op:
                self.tickets.note(cause.ticket, f"{injection.node}: {problem or no_op}")
            effects += self._answer(cause.ticket)
        return effects

    def _answer(self, ticket: int) -> list[Effect]:
        """Answer the user once nothing that was asked for is under way any more."""
        if not self.tickets.is_due(ticket):
            return []
        under_way = [*self.asked.causes(), *(active.launch for active in self.active_faults.values() if active.launch)]
        return [] if any(cause.ticket == ticket for cause in under_way) else self.tickets.answer(ticket)


def _record(cause: FaultCause, injection: Injection, problem: str = "", no_op: str = "") -> Fault:
    return Fault(
        name=cause.name,
        action=injection.action,
        target=injection.node,
        peer=injection.peer,
        asked_s=round(cause.asked_s, 6),
        trigger=cause.trigger,
        change=change_text(injection),
        problem=problem,
        no_op=no_op,
    )


def impossible(injection: Injection, member: Member) -> str:
    """Say why a step can never be done to a node; empty if it can."""
    plan = member.plan
    if injection.action in LINK_ACTIONS and plan.role == "evaluator":
        return "it has no link: watching is not traffic"
    if injection.action == "memory" and plan.memory_bytes is None:
        return "it has no memory cap to run into"
    return ""
