"""Rules of the verdict about links: they were what was asked, no more passed, and no less.

How long a message was on its way is judged as far as the clocks of both ends are known to agree.

A message cannot pass a link sooner than its bytes allow; that is a fault whoever sent it. Later is a fault as far as
nothing else that was asked for explains it. An explanation is an amount: seconds for which a CPU cap held a node back,
a node that serves others computed, a node was frozen, or other messages were on the same link, while these were on
their way. What is left is late. The kernel's own view needs no such explanations: how long TCP had something to send
that the other kernel had not acknowledged depends on the link, and on no process.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from edgebed.core.framing import CONGESTION_CONTROLS, extra_rounds
from edgebed.core.plan import Shard
from edgebed.journal.verdict.findings import (
    Finding,
    Judged,
    Observed,
    Rule,
    named,
    names_text,
    of_class,
    share_text,
    the,
)
from edgebed.journal.verdict.lots import MESSAGES_MIN, Lot, lots
from edgebed.journal.verdict.measured import DirectionConditions

RATE_TOLERANCE = 0.1
"""Relative error that a rate may have: what separates published methods is more, and a healthy host is within a
fiftieth."""
EARLY_MAX = 0.1
"""Share of the messages that may come early: where a rate changes all the time, one is set some milliseconds late."""
HANDLING_S = 0.005
"""Seconds after its last byte by which a message may be handled: what Python and a scheduler take, on a host that has
cores."""
ACKNOWLEDGED_S = 0.045
"""Seconds after its last byte by which the receiver's kernel has acknowledged a message: Linux holds an acknowledgement
back for 40 ms if nothing else is to be sent there, and counts in ticks of up to 4 ms."""
MAY_BE_MIN = 0.5
"""Share of what is left of a message's time that must have passed between the kernels if it may be the link's."""
NAMED_MIN = 0.05
"""Share of the time that messages took too long from which on what explains it is named."""
DROPS_NAMED = 0.01
"""Share of dropped packets from which on they are mentioned. TCP finds a link's rate by filling its queue, so drops
alone are no fault."""

HELD_BY = ("tc", "model")
SENT = {"up": "pushes", "down": "models"}


def read_back(trial: Observed) -> Iterator[Finding]:
    """Rule: what holds a link is what was asked, whenever it was read back."""
    for nodes in trial.classes():
        by_direction: dict[str, list[tuple[Judged, str]]] = {}
        for node in nodes:
            for problem in node.row.problems:
                direction, _, difference = problem.partition(": ")
                by_direction.setdefault(direction, []).append((node, difference))
        for direction, found in by_direction.items():
            (first, difference), differing = found[0], [node for node, _ in found]
            most = max(node.row.differed for node in differing)
            looks = f"up to {most} looks, one a second" if most > 1 else "one look"
            yield Finding(
                f"link: the {direction} of {of_class(differing, nodes)} was not as asked in {looks} "
                f"({first.name}: {difference}); edgebed was late to set it, or somebody else changed it"
            )
    if unheld := [node for node in trial.nodes if node.row.time_s and _is_unheld(node)]:
        yield Finding(f"link: nothing held what was asked of {names_text(unheld)}; see the run's notes")


def _is_unheld(node: Judged) -> bool:
    """Whether nothing limited, or nothing delayed or lost, where that was asked."""
    link = node.plan.link
    is_unlimited = link.limited and node.row.mechanism not in HELD_BY
    return is_unlimited or ((link.delayed or link.lossy) and not node.row.delay)


def too_fast(trial: Observed) -> Iterator[Finding]:
    """Rule: no more passed than was asked: the fault that flatters a method most."""
    for nodes in trial.classes():
        for direction, what in (("up", "sent"), ("down", "received")):
            hasty = [lot for lot in lots(nodes, direction) if is_early(lot.way)]
            if early := _each_once(node for lot in hasty for node in lot.nodes):
                most = max(lot.way.early / lot.way.messages for lot in hasty)
                yield Finding(
                    f"link: of the {_sent(early[0], direction)} of {of_class(early, nodes)}, up to {share_text(most)} "
                    "came sooner than their bytes allow: too much passes at once, or the rate is higher; see "
                    "`edgebed link show`"
                )
            over = [node for node in nodes if (node.way(direction).busiest or 0.0) > 1.0 + RATE_TOLERANCE]
            if over:
                most = max(node.way(direction).busiest or 0.0 for node in over)
                yield Finding(
                    f"link: {of_class(over, nodes)} {what} up to {share_text(most)} of what the link may carry; see "
                    "`edgebed link show`"
                )


def is_early(way: DirectionConditions) -> bool:
    """Whether messages came sooner than they can, and not only around the moments at which a rate changes."""
    return way.early >= MESSAGES_MIN and way.early > EARLY_MAX * way.messages


def too_slow(trial: Observed) -> Iterator[Finding]:
    """Rule: no less passed than was asked; whatever else was asked for explains the time that it took, and no more."""
    for nodes in trial.classes():
        for direction in ("up", "down"):
            causes: dict[tuple[str, ...], list[Late]] = {}
            for late in _late(trial, nodes, direction):
                causes.setdefault(late.kind, []).append(late)
            for found in causes.values():
                worst = max(found, key=lambda late: late.left_s / late.lot.way.messages)
                late_ones = _each_once(node for late in found for node in late.lot.nodes)
                yield worst.finding(trial, of_class(late_ones, nodes))


class Late(NamedTuple):
    """Messages that came later than links as asked, TCP and a healthy host explain."""

    lot: Lot
    explained: Mapping[str, float]
    """Seconds that each other thing that was asked for took of these messages' time, at most."""
    left_s: float
    """Seconds that nothing of that explains; not positive where all is explained."""
    host: str | None
    """The host at either end that was overloaded; None: neither was."""

    @property
    def kind(self) -> tuple[str, ...]:
        """What is told of all alike together."""
        if self.left_s <= 0.0:
            return ("explained",)
        return ("late", "somewhere" if self.host is None else f"on {self.host}")

    def finding(self, trial: Observed, whose: str) -> Finding:
        """What the rule says of all that are alike, of which this is the worst."""
        way, node = self.lot.way, self.lot.nodes[0]
        took = (
            f"{_sent(node, way.direction)} of {whose} took up to {_milliseconds(way, way.time_s)}, where "
            f"{_milliseconds(way, way.asked_s)} were asked"
        )
        parts = sorted(self.explained.items(), key=lambda item: -item[1])
        most_s = max(0.0, way.time_s - way.asked_s)
        known = " and ".join(
            f"{cause} for up to {_milliseconds(way, min(time_s, most_s))} of that"
            for cause, time_s in parts
            if time_s > NAMED_MIN * most_s
        )
        if self.left_s <= 0.0:
            return Finding(f"{took}: {known}", is_fault=False)
        if known:
            took += f"; {known}, which leaves {_milliseconds(way, self.left_s)}"
        if self.host is not None:
            text = f"{named(self.host)} CPU: {took}, perhaps since {the(self.host)} was overloaded"
            return Finding(f"{text}{trial.busy_text(self.host)}", advice=trial.advice(self.host))
        spare = "the hosts at both ends" if node.row.host else "the host"
        if way.unacknowledged >= MESSAGES_MIN and not self.may_be_the_link:
            return Finding(
                f"handling: {took}, though the link carried them in time and {spare} had cores to spare; perhaps a "
                "node was stopped, or held back by what edgebed does not know"
            )
        return Finding(f"link: {took}, though {spare} had cores to spare; see `edgebed calibrate`")

    @property
    def may_be_the_link(self) -> bool:
        """Whether half of what is left, or more, passed between the kernels, as far as these tell."""
        way = self.lot.way
        excess_s = (way.unacknowledged_s - way.unacknowledged_asked_s) / max(1, way.unacknowledged)
        return excess_s > MAY_BE_MIN * self.left_s / way.messages


def _late(trial: Observed, nodes: Sequence[Judged], direction: str) -> Iterator[Late]:
    for lot in lots(nodes, direction, partial(_is_timed, trial)):
        late_s = lot.way.time_s - lot.way.error_s - lot.sum(_allowed_s)
        if late_s <= 0.0:
            continue
        explained = Counter[str]()
        for node, way in lot.members:
            explained.update(_explained(trial, node, way))
        left_s = late_s - sum(explained.values())
        if left_s <= 0.0 or _not_carried_s(trial, lot) <= 0.0:  # else `carried` says it
            yield Late(lot, explained, left_s, _overloaded(trial, lot))


def _explained(trial: Observed, node: Judged, way: DirectionConditions) -> dict[str, float]:
    """Seconds that each thing that was asked for took of messages' time, at most.

    A frozen node has as many messages on their way as its protocol lets it have.
    """
    on_way = (node.plan.shard or Shard()).queue if way.to else 1
    found = {
        "other messages shared their links": (1.0 + RATE_TOLERANCE) * way.beside_s,
        "packets that had come were sent again": (1.0 + RATE_TOLERANCE) * way.repeated_s,
        "a CPU cap held a device back": way.throttled_s,
        f"{trial.end(way.to).name} computed": way.busy_s,
        "a node was frozen, as asked,": on_way
        * sum(trial.frozen_s(name) for name in (node.name, trial.end(way.to).name)),
    }
    return {cause: time_s for cause, time_s in found.items() if time_s > 0.0}


def carried(trial: Observed) -> Iterator[Finding]:
    """Rule: the kernels of senders got through what they had to send in the time that was asked, whatever nodes did."""
    for nodes in trial.classes():
        for direction in ("up", "down"):
            timed = lots(nodes, direction, partial(_is_timed, trial))
            slow = [
                (late_s / lot.way.unacknowledged, lot) for lot in timed if (late_s := _not_carried_s(trial, lot)) > 0.0
            ]
            if not slow:
                continue
            _, worst = max(slow, key=lambda each: each[0])
            way = worst.way
            took_s, asked_s = (
                1000 * each_s / way.unacknowledged for each_s in (way.unacknowledged_s, way.unacknowledged_asked_s)
            )
            host = _overloaded(trial, worst)
            why = "" if host is None else f", perhaps since {the(host)} was overloaded{trial.busy_text(host)}"
            whose = of_class(_each_once(node for _, lot in slow for node in lot.nodes), nodes)
            yield Finding(
                f"link: {_sent(worst.nodes[0], direction)} of {whose} were under way between the kernels of both ends "
                f"for up to {took_s:,.1f} ms, where {asked_s:,.1f} ms were asked{why}; "
                "whatever nodes did, something else slows the way between them",
                advice="" if host is None else trial.advice(host),
            )


def _not_carried_s(trial: Observed, lot: Lot) -> float:
    """Seconds that messages were under way between kernels, beyond what links as asked explain; 0: not known."""
    if lot.way.unacknowledged < MESSAGES_MIN:
        return 0.0
    return lot.sum(partial(_of_way_not_carried_s, trial))


def _of_way_not_carried_s(trial: Observed, node: Judged, way: DirectionConditions) -> float:
    share = way.unacknowledged / max(1, way.messages)  # what else was on the links is known of messages that came
    beside_s = (1.0 + RATE_TOLERANCE) * way.beside_s * share
    repeated_s = way.repeated_s + sum(back.repeated_s for back in _way_back(trial, node, way))
    asked_s = (1.0 + RATE_TOLERANCE) * (way.unacknowledged_asked_s + repeated_s) + beside_s
    return way.unacknowledged_s - asked_s - way.unacknowledged * (ACKNOWLEDGED_S + _rounds_s(node, way))


def _way_back(trial: Observed, node: Judged, way: DirectionConditions) -> list[DirectionConditions]:
    """The way that acknowledgements take; none where nothing is known of it."""
    if way.to:
        return [back for back in trial.end(way.to).row.pairs if back.to == node.name]
    return [node.way("down" if way.direction == "up" else "up")]


def _overloaded(trial: Observed, lot: Lot) -> str | None:
    """The host at either end of a link that was overloaded; None: none was."""
    ends = (end for node, way in lot.members for end in (node, trial.end(way.to)))
    return next((end.row.host for end in ends if trial.is_overloaded(end.row.host)), None)


def _milliseconds(way: DirectionConditions, time_s: float) -> str:
    """Mean time of a message, in milliseconds, as text."""
    return f"{1000 * time_s / way.messages:,.1f} ms"


def _is_timed(trial: Observed, node: Judged, way: DirectionConditions) -> bool:
    """Whether how long messages take is judged: not where packets are lost, as asked, and sent again."""
    return way.asked_s > 0.0 and not trial.is_lossy(node, way.to)


def _allowed_s(node: Judged, way: DirectionConditions) -> float:
    """Seconds that messages may take over links as asked, with TCP and on a healthy host."""
    return (1.0 + RATE_TOLERANCE) * way.asked_s + way.messages * (HANDLING_S + _rounds_s(node, way))


def _rounds_s(node: Judged, way: DirectionConditions) -> float:
    """Seconds for which TCP waits for acknowledgements at first, where the kernel delays these as well."""
    if node.row.delay != "netem" or not way.messages:
        return 0.0
    return 2.0 * way.latency_s / way.messages * extra_rounds(way.bytes / way.messages, node.row.mtu)


def _each_once(nodes: Iterable[Judged]) -> list[Judged]:
    return list({node.name: node for node in nodes}.values())


def _sent(node: Judged, direction: str) -> str:
    """The word for such a node's messages."""
    return "messages" if node.row.pairs else SENT[direction]


def clocks(trial: Observed) -> Iterator[Finding]:
    """Rule: no message came before it had left, as far as both ends' clocks are known; else no time means anything."""
    if found := [(node, way.impossible) for node, way in _ways(trial) if way.impossible]:
        nodes = _each_once(node for node, _ in found)
        yield Finding(
            f"clock: {sum(count for _, count in found):,} messages of {names_text(nodes)} came before they had left, "
            "by more than the clocks of their ends are said to be wrong by; times between these nodes mean nothing"
        )


def unsure(trial: Observed) -> Iterator[Finding]:
    """Rule: where clocks agree only roughly, messages can't be judged as finely as a link asks; that is mentioned."""
    found = [(way.error_s / way.messages, node) for node, way in _ways(trial) if way.messages >= MESSAGES_MIN]
    if (worst := max((error_s for error_s, _ in found), default=0.0)) > HANDLING_S:
        nodes = _each_once(node for error_s, node in found if error_s > HANDLING_S)
        yield Finding(
            f"times of messages of {names_text(nodes)} are known to {1000 * worst:,.1f} ms, as far as the clocks "
            "of their ends are known to agree",
            is_fault=False,
        )


def _ways(trial: Observed) -> Iterator[tuple[Judged, DirectionConditions]]:
    """All links, each direction and pair of ends by itself."""
    for node in trial.nodes:
        for direction in ("up", "down"):
            for way in node.ways(direction):
                yield node, way


def drops(trial: Observed) -> Iterator[Finding]:
    """Rule: queues dropped no packets; those that did are mentioned."""
    found = [(node.way(way).drops or 0.0, node.name, way) for node in trial.nodes for way in ("up", "down")]
    share, name, way = max(found, default=(0.0, "", ""))
    if share > DROPS_NAMED:
        lossy = any(node.name == name and node.plan.link.lossy for node in trial.nodes)
        why = "among them those that were to be lost" if lossy else "as a router's do"
        text = f"queues dropped up to {share_text(share)} of the packets (the {way}link of {name}), {why}"
        yield Finding(text, is_fault=False)


def congestion(trial: Observed) -> Iterator[Finding]:
    """Rule: connections had the congestion control that edgebed chooses, not that of their machine."""
    ordinary, allowed = CONGESTION_CONTROLS
    by_name: dict[str, list[Judged]] = {}
    for node in trial.nodes:
        for name in node.row.congestion_controls:
            by_name.setdefault(name, []).append(node)
    for name, nodes in by_name.items():
        if name == allowed:
            text = (
                f"TCP's congestion control of {names_text(nodes)} was {allowed}, since {ordinary} is not to be had "
                "there without privileges (net.ipv4.tcp_allowed_congestion_control)"
            )
            yield Finding(text, is_fault=False)
        elif name != ordinary:
            yield Finding(
                f"link: TCP's congestion control of {names_text(nodes)} was {name}, where {ordinary} or {allowed} had "
                "been chosen; who else sets it there?"
            )


LINK_RULES: tuple[Rule, ...] = (read_back, too_fast, too_slow, carried, clocks, unsure, drops, congestion)
