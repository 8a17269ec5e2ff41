"""Faults and what was done by hand to a trial's nodes: how late, and how long until the nodes were back; pure."""

from collections.abc import Iterable
from typing import NamedTuple

from edgebed.core import records
from edgebed.journal.folds import Fold, on

RETURNS = ("heal", "thaw", "launch")
"""Actions that bring a node back to the server."""
SERVER = "server"
BY_HAND = "by hand"
"""Name of the entry for what a user does during a run."""
ON_FAILURE = "on_failure"
"""Name of the entry for what a policy does to a node that has failed unasked."""


class TimedFault(NamedTuple):
    """A fault's record with its times."""

    t: float
    """When the fault was done, in seconds since training began."""
    record: records.Fault
    asked_t: float
    """When the fault was due, in seconds since training began."""
    back_s: float | None = None
    """Seconds until the server heard of the node again or, where the node is the server, of any node; None: never."""
    away_s: float | None = None
    """Seconds from when the node died, or was killed, frozen or cut, until the server heard of it again."""

    @property
    def was_done(self) -> bool:
        """Whether the fault could be done, and there was something to do."""
        return not self.record.problem and not self.record.moot

    @property
    def delay_s(self) -> float:
        """Seconds by which the fault was done too late."""
        return max(0.0, self.t - self.asked_t)


class Faults(Fold):
    """Collects faults, with the first record of each node that came back."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[float, records.Fault]] = []
        self.back_s: dict[int, tuple[float, float]] = {}
        """Seconds until the node was back, and from when it was gone until then, by place in `found`."""
        self.gone_t: dict[str, float] = {}
        """Since when each node that is not back has been gone: on purpose, or since it died by itself."""
        self.awaited: dict[str, int] = {}
        """The place in `found` of the action that brings each awaited node back."""

    @on(records.Update, records.Joined)
    def _heard(self, t: float, _: str, record: records.Update | records.Joined) -> None:
        for name in (record.worker, SERVER) if self.awaited else ():
            place = self.awaited.get(name)
            if place is not None and t >= self.found[place][0]:
                back_t = self.found[place][0]
                self.back_s[place] = t - back_t, t - self.gone_t.pop(name, back_t)
                del self.awaited[name]

    @on(records.Fault)
    def _fault(self, t: float, _: str, record: records.Fault) -> None:
        self.found.append((t, record))
        if record.problem or record.moot:
            return
        if record.action in RETURNS:
            self.awaited[record.target] = len(self.found) - 1
        elif record.action in ("kill", "freeze", "cut", "memory"):
            self._gone(record.target, t)

    @on(records.Node)
    def _node(self, t: float, _: str, record: records.Node) -> None:
        if record.state == "died":
            self._gone(record.name, t)
        elif record.state == "joined" and record.name not in self.awaited:  # nobody launched it: a run was resumed
            self.gone_t.pop(record.name, None)

    def _gone(self, node: str, t: float) -> None:
        """Note that a node is gone, unless it was before."""
        self.awaited.pop(node, None)
        self.gone_t.setdefault(node, t)

    def done(self, began_t: float) -> tuple[TimedFault, ...]:
        """All faults, in the journal's order."""
        return tuple(
            TimedFault(t - began_t, record, record.asked_s - began_t, *self.back_s.get(place, ()))
            for place, (t, record) in enumerate(self.found)
        )


def unasked_losses(nodes: Iterable[tuple[float, records.Node]], faults: Iterable[TimedFault]) -> list[records.Node]:
    """Nodes that died or never came, without those that were killed, or frozen to the end, on purpose.

    Of one time, as in a simulation, a fault is before the death that it causes, and that before the launch.
    """
    events: list[tuple[float, int, records.Node | records.Fault]] = [(t, 1, node) for t, node in nodes]
    events += [
        (done.t, 2, done.record) if done.record.action == "launch" else (done.asked_t, 0, done.record)
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
        elif event.state == "joined" and event.incarnation > 1:  # first joins come before training
            doomed.discard(event.name)
        elif event.state in ("died", "missing") and event.name not in doomed:
            lost.append(event)
    return lost
