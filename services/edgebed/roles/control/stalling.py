"""How long a trial without progress is borne, and what is told of it at its end."""

from edgebed.core.plan import TrainingPlan
from edgebed.core.quantities import first_text
from edgebed.roles.control.director import Director
from edgebed.roles.control.members import Members, State

PATIENCE = 10
"""Multiple of the stall deadline that is borne while somebody whom others wait for is at work."""
NAMED_MAX = 3


class Stalling:
    """Knows who is at work, and who is away; times are seconds of the trial."""

    def __init__(self, plan: TrainingPlan, members: Members, director: Director) -> None:
        self.plan = plan
        self.members = members
        self.director = director
        self.worked_s: dict[str, float] = {}
        """When each worker last said that it works."""

    def look(self, progress_at_s: float, now: float, *, is_final: bool) -> tuple[float, str]:
        """When to look again, and why the trial ends now; empty: it goes on.

        `is_final`: all wait for the final evaluation, else for an update.
        """
        stall_s = self.plan.stall_deadline_s
        at_work = self._at_work(now, is_final=is_final)
        patience_s = PATIENCE * stall_s if at_work else stall_s
        due_s = max(progress_at_s, self.director.last_return_s()) + patience_s
        if due_s > now:  # whether they are at work is to be seen again
            return (min(due_s, now + stall_s) if at_work else due_s), ""
        what = "no final evaluation came" if is_final else "no update was applied"
        why = self._why_not(at_work, is_final=is_final)
        return now, f"{what} for {patience_s:g} s (deadlines.stall: {stall_s:g} s{why})"

    def _at_work(self, now: float, *, is_final: bool) -> list[str]:
        """Who gives signs of life and of work: the evaluator, or workers at a push that takes long."""
        since_s = now - self.plan.stall_deadline_s
        told = ["evaluator"] if is_final else [name for name, at_s in self.worked_s.items() if at_s >= since_s]
        members = ((name, self.members[name]) for name in told)
        return [name for name, member in members if member.state is State.RUNNING and not member.missed]

    def _why_not(self, at_work: list[str], *, is_final: bool) -> str:
        if is_final and at_work:
            texts = ["the evaluator was at work: give it more CPU by `evaluator`, or more time by `deadlines.stall`"]
        elif at_work:
            at_work_text = f"at work: {first_text(at_work, NAMED_MAX)}"
            texts = [at_work_text, *self._absent(), "give pushes more time by `deadlines.stall`"]
        else:
            texts = self._absent(is_final=is_final)
        return "".join(f"; {text}" for text in texts)

    def _absent(self, *, is_final: bool = False) -> list[str]:
        """How nodes that are waited for are not there, or cut off, and which."""
        found: dict[str, list[str]] = {}
        awaited = ("server", "evaluator") if is_final else ("server", "worker", "store", "modules")
        for name, member in self.members.items():
            if member.plan.role in awaited:
                active = self.director.injector.active_faults[name]
                how = "frozen" if active.frozen_by else "" if member.state is State.RUNNING else member.state.value
                if how := how or ("cut off" if any(active.cut_by.values()) else ""):
                    found.setdefault(how, []).append(name)
        return [f"{how}: {first_text(names, NAMED_MAX)}" for how, names in found.items()]
