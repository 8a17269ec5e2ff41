"""What was done to the nodes of a trial on purpose, how late, and how long until they were back; pure."""

from collections.abc import Iterable
from typing import NamedTuple

from edgebed.roles import records

RETURNS = ("heal", "thaw", "launch")
"""What brings a node back to the server."""
SERVER = "server"
BY_HAND = "by hand"
"""The name of what a user does during a run."""
ON_FAILURE = "on_failure"
"""The name of what a policy does to a node that has failed of itself."""


class Done(NamedTuple):
    """A fault's record with its times."""

    t: float
    """When it was done, in seconds since training began."""
    record: records.Fault
    asked_t: float
    """When it was to be done, in the same time."""
    back_s: float | None = None
    """Until the server heard of the node again, or, where the node is the server, of anybody; None: it did not."""

    @property
    def was_done(self) -> bool:
        """Whether it could be done, and there was something to do."""
        return not self.record.problem and not self.record.moot

    @property
    def delay_s(self) -> float:
        """How much later than asked it was done."""
        return max(0.0, self.t - self.asked_t)


class Faults:
    """Collects them, with the first sign of each node that came back."""

    def __init__(self) -> None:
        self.found: list[tuple[float, records.Fault]] = []
        self.back_s: dict[int, float] = {}
        """Place in `found`: after how long."""
        self.awaited: dict[str, int] = {}
        """Node: the place of what brought it back."""

    def add(self, t: float, record: records.Record) -> None:
        """Take in one line of the journal, at `t` seconds since the launch."""
        if isinstance(record, records.Fault):
            self._fault(t, record)
        elif self.awaited and isinstance(record, records.Update | records.Joined):
            for name in (record.worker, SERVER):
                place = self.awaited.get(name)
                if place is not None and t >= self.found[place][0]:
                    self.back_s[place] = t - self.found[place][0]
                    del self.awaited[name]

    def _fault(self, t: float, record: records.Fault) -> None:
        self.found.append((t, record))
        if record.problem or record.moot:
            return
        if record.action in RETURNS:
            self.awaited[record.target] = len(self.found) - 1
        elif record.action in ("kill", "freeze", "cut", "memory"):
            self.awaited.pop(record.target, None)

    def done(self, began_t: float) -> tuple[Done, ...]:
        """All of them, in the journal's order."""
        return tuple(
            Done(t - began_t, record, record.asked_s - began_t, self.back_s.get(place))
            for place, (t, record) in enumerate(self.found)
        )


def unasked_losses(nodes: Iterable[tuple[float, records.Node]], faults: Iterable[Done]) -> list[records.Node]:
    """Nodes that died or never came, without those that were killed, or frozen to the end, on purpose."""
    events: list[tuple[float, int, records.Node | records.Fault]] = [(t, 1, node) for t, node in nodes]
    events += [
        (done.t if done.record.action == "launch" else done.asked_t, 0, done.record)
        for done in faults
        if not done.record.problem and done.record.name != ON_FAILURE
    ]
    doomed: set[str] = set()
    lost = []
    for _, _, event in sorted(events, key=lambda each: each[:2]):
        if isinstance(event, records.Fault):
            if event.action in ("kill", "memory", "freeze"):
                doomed.add(event.target)
            elif event.action in ("thaw", "launch"):
                doomed.discard(event.target)
        elif event.state == "joined" and event.incarnation > 1:  # first lives join before time counts from training
            doomed.discard(event.name)
        elif event.state in ("died", "missing") and event.name not in doomed:
            lost.append(event)
    return lost
