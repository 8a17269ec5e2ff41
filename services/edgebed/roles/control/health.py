"""Which nodes have failed, and whether a trial can continue as its nodes are: the controller's judgement."""

from collections.abc import Mapping

from edgebed.roles.control.director import Director
from edgebed.roles.control.members import GONE, Member, State

MISSED_MAX = 2  # checks


class Health:
    """Judge of a trial's members, and of what the director has in store for them."""

    def __init__(self, members: Mapping[str, Member], director: Director) -> None:
        self.members = members
        self.director = director

    def check(self, alive: frozenset[str]) -> tuple[list[Member], list[Member]]:
        """Return who has failed now, and who is back, after a check in which these nodes have sent a heartbeat.

        Two checks in a row without one are a failure; with one, the node is back.
        """
        failed, back = [], []
        for name, member in self.members.items():
            if name in alive:
                member.missed = 0
                back += [member] if member.state is State.UNRESPONSIVE else []
            elif member.state in (State.RUNNING, State.UNRESPONSIVE):
                member.missed += 1
                failed += [member] if member.missed == MISSED_MAX else []
        return failed, back

    def why_over_without(self, member: Member, reason: str, *, recurs: bool) -> str:
        """Say why the trial cannot continue without a node that has died for that reason; empty if it can.

        `recurs`: whoever is started in its place dies for the same reason.
        """
        if endless := self.director.injector.endless:
            return endless
        if self._comes_back(member) and not recurs:
            return ""
        if member.plan.shard is not None and member.plan.role != "server":
            return f"{member.plan.node} died, and nothing goes on without its part of the model: {reason}"
        if member.plan.role != "worker":
            return f"the {member.plan.role} died: {reason}"
        return f"no worker is left; {member.plan.node} was the last: {reason}" if self._no_worker_is_left() else ""

    def why_over(self) -> str:
        """Say why nobody can train any more, now that something was done to nodes; empty if somebody can."""
        if endless := self.director.injector.endless:
            return endless
        for name, member in self.members.items():
            if member.plan.is_vital and member.plan.role != "evaluator" and self.director.is_stopped(name):
                who = "the server" if name == "server" else name
                return f"{who} is frozen or cut off, and nothing undoes it"
        if self._no_worker_is_left():
            return "no worker is left; the others are frozen or cut off, and nothing undoes it"
        return ""

    def _no_worker_is_left(self) -> bool:
        """Whether no worker can contribute, now or when something brings it back."""
        workers = [member for member in self.members.values() if member.plan.role == "worker"]
        return not any(self._comes_back(each) and not self.director.is_stopped(each.plan.node) for each in workers)

    def _comes_back(self, member: Member) -> bool:
        """Whether a node is still there, or is to be launched again."""
        return member.state not in GONE or self.director.returns_s(member.plan.node, "launch") is not None
