"""The start of training: all nodes that are ready together, late ones and restarted ones as they come."""

from collections.abc import Collection

from edgebed.core import units
from edgebed.core.plan import TrainingNode, TrainingPlan
from edgebed.core.records import Trial
from edgebed.roles.control.members import Member, Members, State
from edgebed.roles.control.name import NAME
from edgebed.roles.events import Effect, Journal, Send, Wake
from edgebed.wire import messages


class Starting:
    """Starts nodes, and tells the others where a restarted one is."""

    def __init__(self, plan: TrainingPlan, members: Members, runtime: str) -> None:
        """`runtime` is the name of the trial's."""
        self.plan = plan
        self.members = members
        self.runtime = runtime
        self.began_s = 0.0
        """When training began, in seconds of the trial, or would have begun if it had never stood still since."""

    def missing(self, waiting: Collection[str], waited_s: float, more: str) -> tuple[list[Effect], str]:
        """Give up nodes that are still waited for; return also why the trial cannot begin without them, or nothing.

        `waited_s`: for how long none has come up; `more`: what else there is to say of that.
        """
        deadline = units.format_duration(self.plan.join_deadline_s)
        waited = f"none has come up for {waited_s:.0f} s (deadlines.join: {deadline}{more})"
        given_up: list[Effect] = []
        for name in waiting:
            given_up += self.members.become(name, State.MISSING, f"not ready, and {waited}")
        vital = [name for name in waiting if self.members[name].plan.is_vital]
        ready = [member for member in self.members.values() if member.state is State.READY]
        count = f"{len(ready)} of {len(self.members)} nodes are ready, and {waited}"
        if vital:
            return given_up, f"{', '.join(vital)} not ready: {count}"
        if not any(member.plan.role == "worker" for member in ready):
            return given_up, f"no worker is ready: {count}"
        return given_up, ""

    def begin(self, trained_s: float, now: float) -> list[Effect]:
        """Note that training starts, after `trained_s` of it where the trial is resumed; say when to look at it."""
        self.began_s = now - trained_s
        trial = Trial(
            scenario=self.plan.scenario,
            trial=self.plan.trial,
            seed=self.plan.seed,
            runtime=self.runtime,
            nodes=len(self.members),
            parameters=sum(tensor.size for tensor in self.plan.nodes[0].task.layout),
            trained_s=round(trained_s, 6),
        )
        wakes: list[Effect] = [Wake(now + self.plan.stall_deadline_s, "stall")]
        if self.plan.stop_time_s is not None:
            wakes.insert(0, Wake(max(now, self.began_s + self.plan.stop_time_s), "time"))
        return [Journal(trial), *wakes]

    def start_ready(self, finish_reason: str) -> list[Effect]:
        """Start the ready nodes once those they connect to are there; tell the others where a restarted one is now.

        With a `finish_reason` they also hear that no more updates are to be applied.
        """
        reached = {name: member for name, member in self.members.items() if member.is_reached}
        able = [member for member in reached.values() if reached.keys() >= set(member.plan.connects_to)]
        moved = {member.plan.node for member in able if member.state is State.READY}
        beginning = tuple(
            member.plan.node
            for member in able
            if member.plan.role == "worker" and member.state in (State.READY, State.RUNNING)
        )
        effects = self._incarnations(able, moved)
        for member in able:
            if member.state is not State.READY and moved.isdisjoint(member.plan.connects_to):
                continue
            if member.state is State.READY:
                effects += self.members.become(member.plan.node, State.RUNNING)
            addresses = tuple((name, _address(reached[name], member.plan)) for name in member.plan.connects_to)
            start = messages.Start(
                sender=NAME,
                addresses=addresses,
                began_s=self.began_s,
                workers=beginning if member.plan.role == "server" else (),
                goes_on=any(_goes_on(reached[name]) for name in member.plan.connects_to),
            )
            effects.append(Send(member.peer, start))
            if finish_reason and member.plan.role in ("server", "evaluator"):
                effects.append(Send(member.peer, messages.Finish(sender=NAME, reason=finish_reason)))
        return effects

    def _incarnations(self, able: Collection[Member], beginning: Collection[str]) -> list[Effect]:
        """Tell the parameter server which incarnations are to be believed, before any that begins can join."""
        server = next((member for member in able if member.plan.role == "server" and not member.plan.shard), None)
        if server is None or not beginning:
            return []
        workers = tuple((each.plan.node, each.incarnation) for each in able if each.plan.role == "worker")
        return [Send(server.peer, messages.Incarnations(sender=NAME, workers=workers))]


def _goes_on(host: Member) -> bool:
    """Whether a node that is ready remembers what the one before it did."""
    return host.ready is not None and host.ready.replayed is not None


def _address(host: Member, client: TrainingNode) -> str:
    """Return where that client reaches a node that is ready."""
    assert host.ready is not None
    return host.ready.management_address if client.role == "evaluator" else host.ready.data_address
