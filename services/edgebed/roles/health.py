"""Which nodes have failed, and whether a trial can go on as its nodes are: the controller's judgement, without acts."""

from collections.abc import Mapping

from edgebed.roles.director import Director
from edgebed.roles.members import GONE, Member

MISSED_MAX = 2  # checks


class Health:
    """Looks at the members of a trial, and at what the director has in store for them."""

    def __init__(self, members: Mapping[str, Member], director: Director) -> None:
        self.members = members
        self.director = director

    def check(self, alive: frozenset[str]) -> tuple[list[Member], list[Member]]:
        """A check is over, and these have given a sign of life: who has failed now, and who is back.

        Two checks in a row without a sign are a failure; one sign, and the node is back.
        """
        failed, back = [], []
        for name, member in self.members.items():
            if name in alive:
                member.missed = 0
                back += [member] if member.state == "unresponsive" else []
            elif member.state in ("running", "unresponsive"):
                member.missed += 1
                failed += [member] if member.missed == MISSED_MAX else []
        return failed, back

    def why_over_without(self, member: Member, reason: str) -> str:
        """Why the trial cannot go on without a node that has died for that reason; empty if it can."""
        if self._comes_back(member):
            return ""
        if member.plan.shard is not None and member.plan.role != "server":
            return f"{member.plan.node} died, and nothing goes on without its part of the model: {reason}"
        if member.plan.role != "worker":
            return f"the {member.plan.role} died: {reason}"
        return f"no worker is left; {member.plan.node} was the last: {reason}" if self._no_worker_is_left() else ""

    def why_over(self) -> str:
        """Why nobody can train any more, now that something was done to nodes; empty if somebody can."""
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
        """Whether a node is not gone, or is to be launched again."""
        return member.state not in GONE or self.director.returns_s(member.plan.node, "launch") is not None
