"""Rules of the verdict about links: they were what was asked, no more passed, and no less.

How long a message was on its way is judged as far as the clocks of both ends are known to agree.

A message cannot pass a link sooner than its bytes allow; that is a fault whoever sent it. Later is a fault only if
nothing else that was asked for explains it: a CPU cap that holds a device back, or the server's link, which all share.
"""

from collections.abc import Iterable, Iterator

from edgebed.core.framing import segment_bytes
from edgebed.journal.verdict.findings import (
    SERVER_BUSY_MIN,
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
from edgebed.journal.verdict.measured import DirectionConditions

RATE_TOLERANCE = 0.1
"""Relative error that a rate may have: what separates published methods is more, and a healthy host is within a
fiftieth."""
MESSAGES_MIN = 5
"""Number of messages below which little is known about a link."""
EARLY_MAX = 0.1
"""Share of the messages that may come early: where a rate changes all the time, one is set some milliseconds late."""
HANDLING_S = 0.005
"""Seconds after its last byte by which a message may be handled: what Python and a scheduler take, on a host that has
cores."""
INITIAL_SEGMENTS = 10
"""Segments that TCP sends before the first acknowledgement (RFC 6928); with each round trip they are twice as many."""
THROTTLED_MIN = 0.1
"""Share of the training from which on a node that its own CPU cap held back is slow because of it."""
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
            hasty = [(node, way) for node in nodes for way in node.ways(direction) if is_early(way)]
            if early := _each_once(node for node, _ in hasty):
                most = max(way.early / way.messages for _, way in hasty)
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
    """Rule: no less passed than was asked."""
    for nodes in trial.classes():
        for direction in ("up", "down"):
            late = [(node, way) for node in nodes for way in node.ways(direction) if is_late(node, way)]
            causes: dict[tuple[str, str | None], list[tuple[Judged, DirectionConditions]]] = {}
            for node, way in late:
                asked = _asked_cause(trial, node, way)
                causes.setdefault((asked, None if asked else _overloaded(trial, node, way)), []).append((node, way))
            for (cause, host), found in causes.items():
                alike = _each_once(node for node, _ in found)
                worst = max((way for _, way in found), key=lambda way: way.time_s / way.asked_s)
                took = (
                    f"{_sent(alike[0], direction)} of {of_class(alike, nodes)} took up to "
                    f"{_milliseconds(worst, worst.time_s)}, where {_milliseconds(worst, worst.asked_s)} were asked"
                )
                if cause:
                    yield Finding(f"{took}: {cause}", is_fault=False)
                elif host is not None:
                    text = f"{named(host)} CPU: {took}, since {the(host)} was overloaded{trial.busy_text(host)}"
                    yield Finding(text, advice=trial.advice(host))
                else:
                    spare = "the hosts at both ends" if alike[0].row.host else "the host"
                    yield Finding(f"link: {took}, though {spare} had cores to spare; see `edgebed calibrate`")


def _overloaded(trial: Observed, node: Judged, way: DirectionConditions) -> str | None:
    """The host at either end of a link that was overloaded; None: neither was."""
    other = next((each for each in trial.nodes if each.name == way.to), trial.server)
    return next((end.row.host for end in (node, other) if trial.is_overloaded(end.row.host)), None)


def _milliseconds(way: DirectionConditions, time_s: float) -> str:
    """Mean time of a message, in milliseconds, as text."""
    return f"{1000 * time_s / way.messages:,.1f} ms"


def is_late(node: Judged, way: DirectionConditions) -> bool:
    """Whether messages came later than a link as asked, TCP and a healthy host explain."""
    if way.messages < MESSAGES_MIN or not way.asked_s or node.plan.link.lossy:  # lost packets are sent again
        return False
    allowed_s = (1.0 + RATE_TOLERANCE) * way.asked_s + HANDLING_S * way.messages + way.error_s
    if node.row.delay == "netem":  # the kernel delays acknowledgements as well, and TCP waits for them at first
        allowed_s += 2.0 * way.latency_s * _extra_rounds(way.bytes / way.messages, node.row.mtu)
    return way.time_s > allowed_s


def _extra_rounds(message_bytes: float, mtu: int) -> int:
    """Round trips that TCP needs after a silence before all of a message has left."""
    rounds = 0
    while INITIAL_SEGMENTS * (2 ** (rounds + 1) - 1) * segment_bytes(mtu) < message_bytes:
        rounds += 1
    return rounds


def _each_once(nodes: Iterable[Judged]) -> list[Judged]:
    return list({node.name: node for node in nodes}.values())


def _sent(node: Judged, direction: str) -> str:
    """The word for such a node's messages."""
    return "messages" if node.row.pairs else SENT[direction]


def _asked_cause(trial: Observed, node: Judged, way: DirectionConditions) -> str:
    """The condition, of all that were asked for, that made messages late; empty if none."""
    if way.to:
        return _cause_between(trial, node.name, way.to)
    server = trial.server
    if trial.was_done(node, "freeze") or trial.was_done(server, "freeze"):
        return "a node was frozen meanwhile, as asked"
    if (node.row.throttled or 0.0) > THROTTLED_MIN:
        return "a CPU cap held the device back"
    if (server.row.throttled or 0.0) > THROTTLED_MIN:
        return "its CPU cap held the server back"
    if (server.row.cpus_measured or 0.0) > SERVER_BUSY_MIN * min(1.0, server.plan.cpus or 1.0):
        return "the server computed all the time"
    return _shared_link(trial, way.direction)


def _cause_between(trial: Observed, *ends: str) -> str:
    """The condition that made messages between two shards late; what else was on their links is in what was asked."""
    for node in (node for node in trial.nodes if node.name in ends):
        if trial.was_done(node, "freeze"):
            return "a node was frozen meanwhile, as asked"
        if node.plan.link.lossy:
            return "packets were lost, as asked, and sent again"
        if (node.row.throttled or 0.0) > THROTTLED_MIN:
            return "a CPU cap held a device back"
    return ""


def _shared_link(trial: Observed, direction: str) -> str:
    """The server's link, where it cannot carry at once what all workers' links can; empty if it can."""
    name, way = ("downlink", "down") if direction == "up" else ("uplink", "up")
    rate_bit_s = trial.server.way(way).asked_low_bit_s
    rates = [worker.way(direction).asked_high_bit_s for worker in trial.workers]
    if rate_bit_s is None or sum(rate_bit_s if rate is None else rate for rate in rates) <= rate_bit_s:
        return ""
    return f"all workers share the server's {name}, which carries less than their links together"


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


LINK_RULES: tuple[Rule, ...] = (read_back, too_fast, too_slow, clocks, unsure, drops)
