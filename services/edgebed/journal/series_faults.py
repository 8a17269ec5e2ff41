"""Faults and what was done by hand to a trial's nodes: how late, and how long until the nodes were back; pure."""

from collections.abc import Iterable
from typing import NamedTuple

from edgebed.core import records
from edgebed.core.actions import BRINGS_BACK, ENDS_LIFE, FREEZES, TAKES_AWAY
from edgebed.journal.folds import Fold, Timeline, on
from edgebed.roles.control.fault_text import UNSTOPPED

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
    """Seconds from when the node died, or was killed, frozen or cut, until the server heard of it again; where it never
    did, until training ended, at the last fault that took the node away or was to bring it back."""

    @property
    def is_to_end(self) -> bool:
        """Whether the node was away until training ended."""
        return self.away_s is not None and self.back_s is None

    @property
    def was_done(self) -> bool:
        """Whether the fault could be done, and there was something to do."""
        return not self.record.problem and not self.record.no_op

    @property
    def delay_s(self) -> float:
        """Seconds by which the fault was done too late."""
        return max(0.0, self.t - self.asked_t)


class Faults(Fold):
    """Collects faults, with the first record of each node that came back."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.timeline = timeline
        self.found: list[TimedFault] = []
        self.gone_t: dict[str, float] = {}
        """Since when each node that is not back has been gone: on purpose, or since it died by itself."""
        self.last: dict[str, int] = {}
        """The place in `found` of the last fault that took each node away, or was to bring it back."""
        self.awaited: dict[str, int] = {}
        """The place in `found` of the action that brings each awaited node back."""
        self.are_programs = False
        """Whether nodes run programs of the user's: nobody hears of one, but it is ready or not."""
        self.ready: set[str] = set()
        """Programs that are ready."""

    @on(records.Update, records.Joined)
    def _heard(self, t: float, _: str, record: records.Update | records.Joined) -> None:
        for name in (record.worker, SERVER) if self.awaited else ():
            self._is_back(name, t)

    @on(records.Step, records.Evaluated)
    def _at_work(self, t: float, node: str, _: records.Step | records.Evaluated) -> None:
        """Note a shard that learns, or an evaluator that measures: the server tells of neither."""
        if self.awaited:
            self._is_back(node, t)

    def _is_back(self, node: str, t: float) -> None:
        place, heard_t = self.awaited.get(node), self.timeline.since_began(t)
        if place is not None and heard_t >= self.found[place].t:
            done = self.found[place]
            away_s = heard_t - self.gone_t.pop(node, done.t)
            self.found[place] = done._replace(back_s=heard_t - done.t, away_s=away_s)
            del self.awaited[node]

    @on(records.Fault)
    def _fault(self, t: float, _: str, record: records.Fault) -> None:
        done = TimedFault(self.timeline.since_began(t), record, self.timeline.since_began(record.asked_s))
        self.found.append(done)
        place, node = len(self.found) - 1, record.target
        if not done.was_done or record.is_between_two:
            return
        if record.action in BRINGS_BACK:
            self.awaited[node] = self.last[node] = place
        elif record.action in TAKES_AWAY:
            self.last[node] = place
            self._gone(node, t)
        if self.are_programs and node in self.ready:
            self._is_back(node, t)

    @on(records.Trial)
    def _trial(self, _: float, __: str, record: records.Trial) -> None:
        self.are_programs = record.runs_programs

    @on(records.Node)
    def _node(self, t: float, _: str, record: records.Node) -> None:
        if record.state == "ready":
            self.ready.add(record.name)
            if self.are_programs:
                self._is_back(record.name, t)
        elif record.state == "died":
            self.ready.discard(record.name)
            if record.name not in self.gone_t:
                self.last.pop(record.name, None)  # no fault did it; one that did is told of after the death
            self._gone(record.name, t)
        elif record.state == "joined" and record.name not in self.awaited and not self._is_held(record.name):
            self.gone_t.pop(record.name, None)  # nobody launched it: a run was resumed

    def _is_held(self, node: str) -> bool:
        """Whether a fault that is done to a node's next life, too, was the last that took it away."""
        place = self.last.get(node)
        return place is not None and self.found[place].record.action in TAKES_AWAY - ENDS_LIFE

    def _gone(self, node: str, t: float) -> None:
        """Note that a node is gone, unless it was before."""
        self.awaited.pop(node, None)
        self.gone_t.setdefault(node, self.timeline.since_began(t))

    def gone(self, end_s: float) -> dict[str, float]:
        """For how long each node had been away that was not back when training ended, `end_s` after it began."""
        return {node: end_s - t for node, t in self.gone_t.items() if t < end_s}

    def done(self, end_s: float) -> tuple[TimedFault, ...]:
        """All faults of a training that ended `end_s` after it began, in the journal's order."""
        told = list(self.found)
        for node, away_s in self.gone(end_s).items():
            if (place := self.last.get(node)) is not None:
                told[place] = told[place]._replace(away_s=away_s)
        return tuple(told)


def unasked_losses(nodes: Iterable[tuple[float, records.Node]], faults: Iterable[TimedFault]) -> list[records.Node]:
    """Nodes that died or never came, without those that were killed on purpose.

    A policy of restarting kills who does not answer: on purpose where a fault had frozen it. Who is frozen, or busy,
    when all are to stop is ended, and lost nothing. Of one time, as in a simulation, a fault is before the death that
    it causes, and that before the launch.
    """
    events: list[tuple[float, int, records.Node | records.Fault]] = [(t, 1, node) for t, node in nodes]
    events += [
        (done.t, 2, done.record) if done.record.action == "launch" else (done.asked_t, 0, done.record)
        for done in faults
        if not done.record.problem
    ]
    doomed, frozen = set[str](), set[str]()
    lost = []
    for _, _, event in sorted(events, key=lambda each: each[:2]):
        if isinstance(event, records.Fault):
            is_asked = event.name != ON_FAILURE
            if event.action in FREEZES:
                frozen.add(event.target)
            elif event.action in ENDS_LIFE and (is_asked or event.target in frozen):
                doomed.add(event.target)
            elif event.action == "thaw":
                frozen.discard(event.target)
            elif event.action == "launch" and is_asked:
                doomed.discard(event.target)
        elif event.state == "joined" and event.incarnation > 1:  # first joins come before training
            doomed.discard(event.name)
        elif event.state in ("died", "missing") and event.name not in doomed and not event.reason.startswith(UNSTOPPED):
            lost.append(event)
    return lost
