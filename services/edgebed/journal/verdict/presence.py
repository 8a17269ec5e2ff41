"""When each node took part in training, and until when it could tell what it measured of itself. Pure.

A node tells every second at first, later whenever a tenth has been added: so of a node that is killed at any time, all
is known but that last part.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from edgebed.core.actions import BRINGS_BACK, ENDS_FREEZE, FREEZES, KILLS, TAKES_AWAY
from edgebed.core.recorded.measured import LOOK_S, told_after_s
from edgebed.journal.series import Series
from edgebed.journal.series_faults import SERVER, TimedFault

ENDS = ("stopped", "died", "missing")
OUT_OF_REACH = "unresponsive"
ANEW = ("expected", "started", "joined")
"""States of a node that is built: the one that was there before is gone."""


ENDS_S = 5.0
"""Seconds after a kill in which the node's end is told: a busy engine takes some."""
TOLD_BEFORE_S = 1.0
"""Seconds by which the end may be told before the kill is."""
UNDER_WAY_S = 0.5
"""Seconds after a freeze in which what came before it may still be handled."""
THAWED_BY = {*ENDS_FREEZE, *ENDS, *ANEW}
"""What ends a freeze: an action, or a state of the node."""


class Span(NamedTuple):
    """A part of the training, in seconds since it began."""

    since_s: float
    until_s: float

    @property
    def length_s(self) -> float:
        """The length of the part; 0 where it ends before it begins."""
        return max(0.0, self.until_s - self.since_s)

    def within(self, others: "Iterable[Span]") -> float:
        """Seconds of the part that are in others, which do not overlap."""
        return sum(Span(max(self.since_s, each.since_s), min(self.until_s, each.until_s)).length_s for each in others)


class Freeze(NamedTuple):
    """A part of the training in which a node was frozen as asked."""

    span: Span
    is_reported: bool
    """Whether the node went on afterwards, and so could tell of it."""


class Incarnation(NamedTuple):
    """The training of one incarnation of a node."""

    span: Span
    reported: bool
    """Whether the node told what it measured until its end: it was not killed, nor frozen or cut off to the end."""

    @property
    def owed(self) -> Span:
        """The part of which the node's records are owed: what was measured last dies with the node."""
        since_s, until_s = self.span
        lost_s = 0.0 if self.reported else told_after_s(self.span.length_s) + LOOK_S
        return Span(since_s, max(since_s, until_s - lost_s))


class Presence:
    """When each node of a trial took part in training."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self._states: dict[str, list[tuple[float, str]]] = {}
        self.done: dict[str, list[tuple[float, str]]] = {}
        """What was done to each node on purpose, as (t, action), in order."""
        for t, node in series.nodes:
            self._states.setdefault(node.name, []).append((t, node.state))
        for each in sorted(series.faults, key=lambda each: each.t):
            if each.was_done and not each.record.is_between_two:
                self.done.setdefault(each.record.target, []).append((each.t, each.record.action))

    def lives(self, node: str, *also_ends: str) -> tuple[Incarnation, ...]:
        """A node's lives in training; one of whose states nothing is known took part all the time.

        `also_ends`: further states that end a life, beside those in which the node is gone.
        """
        series, states = self.series, self._states.get(node, [])
        known = {state for _, state in states}
        if "running" not in known:
            whole = Incarnation(Span(0.0, series.trained_s), reported=series.ended is not None)
            return () if known & {"died", "missing"} else (whole,)
        events = sorted(states + self.done.get(node, []), key=lambda event: event[0])
        return tuple(_lives(events, series, (*ENDS, *ANEW, *also_ends)))

    def frozen(self, node: str) -> tuple[Freeze, ...]:
        """When a node was frozen as asked in training, by a fault or by hand, until it died or began anew at most."""
        found, since_s = list[Freeze](), None
        events = sorted(self.done.get(node, []) + self._states.get(node, []), key=lambda event: event[0])
        for t, what in [*events, (self.series.trained_s, "")]:
            if what in FREEZES and since_s is None:
                since_s = t
            elif since_s is not None and (not what or what in THAWED_BY):
                until_s = min(t, self.series.trained_s)
                found.append(Freeze(Span(min(since_s, until_s), until_s), is_reported=what in BRINGS_BACK))
                since_s = None
        return tuple(found)

    def survivors(self) -> tuple[TimedFault, ...]:
        """Kills that were done, and after which nothing was heard of the node's end, though there was time for it."""

        def ended(kill: TimedFault) -> bool:
            later = [(t - kill.t, state) for t, state in self._states.get(kill.record.target, [])]
            return any(
                (state in ENDS and -TOLD_BEFORE_S <= t <= ENDS_S) or (state in ANEW and 0.0 < t <= ENDS_S)
                for t, state in later
            )

        kills = (each for each in self.series.faults if each.was_done and each.record.action in KILLS)
        return tuple(each for each in kills if each.t + ENDS_S < self.series.trained_s and not ended(each))

    def passed(self) -> dict[str, int]:
        """Updates that came of each worker, if any did, while the way between it and the server was cut as asked."""
        since_s: dict[str, float] = {}
        cuts: dict[str, list[Freeze]] = {}
        between = [each for each in self.series.faults if each.was_done and each.record.peer == SERVER]
        for each in sorted((each for each in between if each.record.action != "link"), key=lambda each: each.t):
            if each.record.action == "cut":
                since_s.setdefault(each.record.target, each.t)
            elif each.record.target in since_s:
                span = Span(since_s.pop(each.record.target), each.asked_t)
                cuts.setdefault(each.record.target, []).append(Freeze(span, is_reported=True))
        for node, t in since_s.items():
            cuts.setdefault(node, []).append(Freeze(Span(t, self.series.trained_s), is_reported=False))
        return {node: count for node, spans in cuts.items() if (count := self.went_on(node, spans))}

    def went_on(self, node: str, freezes: Iterable[Freeze]) -> int:
        """Updates that came of a node in these freezes, of the server's all, but for one each that was under way."""
        made, names = self.series.updates, self.series.workers
        times = made.t[made.worker == names.index(node)] if node in names else made.t if node == SERVER else made.t[:0]
        return sum(
            max(0, int(((times > span.since_s + UNDER_WAY_S) & (times < span.until_s)).sum()) - 1)
            for span, _ in freezes
        )


def _lives(events: Iterable[tuple[float, str]], series: Series, ends: Sequence[str]) -> Iterator[Incarnation]:
    """Lives between a node's changes of state, and what was done to it: (t, state or action), in order."""
    since_s: float | None = None
    silent_s: float | None = None
    for t, what in events:
        if what == "running" and since_s is None:
            since_s, silent_s = t, None
        elif what in TAKES_AWAY:
            silent_s = t if silent_s is None else silent_s
        elif what in BRINGS_BACK:
            silent_s = None
        elif since_s is not None and what in ends:
            until_s = _last_heard_s(series, t) if what in ANEW else t
            yield _life(since_s, until_s, silent_s, series, reported=what == "stopped")
            since_s = None
    if since_s is not None:
        yield _life(since_s, series.trained_s, silent_s, series, reported=series.ended is not None)


def _life(since_s: float, until_s: float, silent_s: float | None, series: Series, *, reported: bool) -> Incarnation:
    """A life, as far as it is training."""
    if silent_s is not None:
        until_s, reported = min(until_s, silent_s), False
    return Incarnation(Span(max(0.0, since_s), max(0.0, min(until_s, series.trained_s))), reported=reported)


def _last_heard_s(series: Series, before_s: float) -> float:
    """When anything was last heard before a time at which nodes are built anew, and it is not known when they ended."""
    loads = [t for told in series.hosts.values() for t, _ in told if t < before_s]
    updates = [float(t) for t in series.updates.t[series.updates.t < before_s][-1:]]
    return max([0.0, *loads, *updates])
