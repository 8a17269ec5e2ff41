"""The director: when something is done to nodes on purpose, by the plan or as nodes fail.

    plan's faults --time, update, point--> steps to come --due--> injector.py
    on_failure ---------------------------------------------------------^

It is a part of the controller's heart.
"""

from collections.abc import Iterable, Mapping

from edgebed.core.actions import ACTIONS, FREEZES, KILLS, Action
from edgebed.core.plan import Plan
from edgebed.core.planned.fault import Injection
from edgebed.roles.control.active_faults import BY_HAND
from edgebed.roles.control.fault_schedule import FaultSchedule
from edgebed.roles.control.injector import Injector
from edgebed.roles.control.pending_actions import ON_FAILURE, FaultCause, PendingActions
from edgebed.roles.events import Effect, Wake
from edgebed.wire import messages

TOKEN = "fault:"
AGAIN = "again, as the trial is resumed"
"""Trigger, in the record, of what had been done before a trial broke off, and holds on."""


class Director:
    """Follows a plan's faults, and its policy for nodes that fail; knows which nodes come back, and when."""

    def __init__(self, plan: Plan, injector: Injector) -> None:
        self.plan = plan
        self.injector = injector
        self.schedule = FaultSchedule(plan)
        self.steps = PendingActions[str]()
        """Steps to come by the token of a Wake: what is due then."""
        self.absences: dict[tuple[str, str], tuple[FaultCause, Injection]] = {}
        """Freezes and kills that were not over when the trial broke off, by node and name of the fault."""
        self.count = 0

    # --- triggers -----------------------------------------------------------------------------------------------

    def began(self, began_s: float, now: float) -> list[Effect]:
        """Begin what the plan does at a time, now that training began, but for what has been done."""
        again = [(FaultCause(cause.name, AGAIN, now), step) for cause, step in self.absences.values()]
        self.absences = {}
        return self._follow([*again, *self.schedule.timed(began_s)], now)

    def resumed(
        self,
        passed_s: float,
        updates: int,
        triggered_s: Mapping[tuple[str, str], float],
        by_hand: Iterable[tuple[float, Injection]],
    ) -> None:
        """Note that the trial is resumed: faults of its first seconds of training, or of so many updates, have been.

        `triggered_s`: when each fault, by its name and node, was triggered first. All nodes begin another incarnation.
        What was done to their links and caps, by the plan or `by_hand`, and has not been undone, is done to that, too.
        A node that the plan had frozen, or a worker that it had killed, is so again once training begins; what is to
        come still comes.
        """
        done = self.schedule.resume(passed_s, updates, triggered_s)
        known = self.injector.active_faults
        done += [(FaultCause(BY_HAND, BY_HAND, asked_s), step) for asked_s, step in by_hand if step.node in known]
        for cause, step in sorted(done, key=lambda each: each[0].asked_s):
            if ACTIONS[step.action].outlasts:
                self.injector.active_faults[step.node].note(cause, step)
            elif self.plan.on_failure != "restart":  # the policy brings back whoever is away
                self._note_absence(cause, step)

    def _note_absence(self, cause: FaultCause, step: Injection) -> None:
        """Note a step that was done before the trial broke off: whether a node is away by it, or no longer is."""
        own = {key: each for key, each in self.absences.items() if key[0] == step.node}
        is_dead = any(done.action in KILLS for _, done in own.values())
        if step.action in KILLS or step.action == "launch" or cause.undoes_all:
            self.absences = {key: each for key, each in self.absences.items() if key not in own}
        if (step.action in FREEZES and not is_dead) or (step.action in KILLS and step.node != "server"):
            self.absences[step.node, cause.name] = cause, step
        elif step.action == "thaw":
            self.absences.pop((step.node, cause.name), None)

    def updated(self, version: int, now: float) -> list[Effect]:
        """Do what is due now that the server has applied so many updates."""
        return self._follow(self.schedule.updated(version, now), now)

    def measured(self, node: str, device_class: str, measured: Mapping[str, float], now: float) -> list[Effect]:
        """Do what is due now that the program of a node has told these measures."""
        return self._follow(self.schedule.measured(node, device_class, measured, now), now)

    def reached(self, message: messages.Reached, now: float) -> list[Effect]:
        """Act on a worker that stands where a fault waits for it."""
        steps = list(self.schedule.reached(message, now))
        return self._follow(steps, now) if steps else self.injector.proceed(message.sender)

    def woken(self, token: str, now: float) -> list[Effect]:
        """Do the step that is due at this token."""
        cause, injection = self.steps.pop(token)
        if cause.name == ON_FAILURE and self._is_away(injection.node, now):
            return []
        return self.injector.ask(cause, injection, now)

    def finished(self) -> None:
        """Begin nothing of the plan any more: training has ended. Who is away is still brought back, as planned."""
        for token, (_, injection) in list(self.steps.all.items()):
            if not self._brings_back(injection):
                self.steps.pop(token)

    def _brings_back(self, injection: Injection) -> bool:
        active, member = self.injector.active_faults[injection.node], self.injector.members[injection.node]
        cut_by = active.cuts(injection.peer)
        is_away = {"launch": active.ending or not member.is_there, "thaw": active.frozen_by, "heal": cut_by}
        return bool(is_away.get(injection.action))

    def restart(self, node: str, now: float) -> list[Effect]:
        """Launch a node that has died after the policy's delay, unless a fault then keeps it away, and launches it."""
        if self._is_away(node, now):
            return []
        due_s = now + self.plan.restart_delay_s
        return self._later(FaultCause(ON_FAILURE, "it died", due_s, begun_s=now), Injection(node=node, action="launch"))

    def kill(self, node: str, now: float) -> list[Effect]:
        """End a node that does not answer, so that the policy can launch it."""
        cause = FaultCause(ON_FAILURE, "it did not answer", now)
        return self.injector.ask(cause, Injection(node=node, action="kill"), now)

    def _follow(self, steps: Iterable[tuple[FaultCause, Injection]], now: float) -> list[Effect]:
        """Do what is due, and schedule the rest."""
        effects: list[Effect] = []
        for cause, injection in steps:
            is_due = cause.asked_s <= now
            effects += self.injector.ask(cause, injection, now) if is_due else self._later(cause, injection)
        return effects

    def _later(self, cause: FaultCause, injection: Injection) -> list[Effect]:
        self.count += 1
        token = f"{TOKEN}{self.count}"
        self.steps.add(token, cause, injection)
        return [Wake(cause.asked_s, token)]

    def close(self) -> list[Effect]:
        """End with the trial: nothing is done any more, and users who wait hear so."""
        self.steps.clear()
        return self.injector.close()

    # --- who comes back -----------------------------------------------------------------------------------------

    def _is_away(self, node: str, now: float) -> bool:
        """Whether a launch is to come, or under way, that ends an absence: one whose own kill has been asked for."""
        return self.steps.is_absent(node, now) or self.injector.asked.latest_s(node, "launch") is not None

    def is_stopped(self, node: str) -> bool:
        """Whether a node is frozen, or cut off from the server, by the scenario, with nothing to come that undoes it.

        A policy of restarting undoes a freeze: it finds that the node sends no heartbeats.
        """
        active, is_restarted = self.injector.active_faults[node], self.plan.on_failure == "restart"
        frozen = BY_HAND not in active.frozen_by and not is_restarted and not self.is_thawed(node)
        return frozen or any(
            BY_HAND not in holders and not self.steps.is_undone(node, "heal", holders)
            for holders in (active.cuts(), active.cuts("server"))
        )

    def is_thawed(self, node: str) -> bool:
        """Whether all that freezes a node, if anything does, ends by the plan."""
        return self.steps.is_undone(node, "thaw", self.injector.active_faults[node].frozen_by)

    def is_pausing(self, node: str) -> bool:
        """Whether a node is frozen, and goes on by the plan."""
        is_going_on = self.injector.asked.latest_s(node, "thaw") is not None
        return is_going_on or (self.is_frozen(node) and self.is_thawed(node))

    def is_frozen(self, node: str) -> bool:
        """Whether a node has been frozen and not thawed."""
        return bool(self.injector.active_faults[node].frozen_by)

    def returns_s(self, node: str, action: Action) -> float | None:
        """Return when `action`, which brings the node back, is due at the latest; None if it is not to come."""
        return _last(each.latest_s(node, action) for each in (self.steps, self.injector.asked))

    def last_return_s(self) -> float:
        """Return when the last node that the plan, or the user, brings back is brought back; 0 if none is."""
        return _last(each.last_return_s() for each in (self.steps, self.injector.asked)) or 0.0


def _last(times_s: Iterable[float | None]) -> float | None:
    return max((time_s for time_s in times_s if time_s is not None), default=None)
