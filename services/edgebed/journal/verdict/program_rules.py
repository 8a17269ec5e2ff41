"""Rules of the verdict about programs of the user's: their traffic passed their links, and took as long as was asked.

Of a program edgebed knows what its kernel counts, and not what it means: what became of its updates, how stale they
were, and how long its messages took is unknown, and said to be.
"""

from collections.abc import Iterator

from edgebed.core.actions import LINK_ACTIONS
from edgebed.core.quantities import bytes_text, ms_text
from edgebed.journal.verdict.findings import Finding, Judged, Observed, Rule, names_text, of_class

BYPASS_MAX = 10_000
"""Bytes of a network's own that may pass another interface: addresses that are looked up, neighbours that are found."""
LATENCY_MIN = 0.9
"""Share of the latency asked below which no round trip may be."""
IDLE_MAX = 1_000
"""Bytes that a link which carried nothing may have carried."""
BUSY_MIN = 100_000
"""Bytes of another node's link from which on one that carried nothing is worth a word."""
UNKNOWABLE = (
    "not known of a program: what became of each of its updates, how stale they were, and how long its messages took"
)


def bypassed(trial: Observed) -> Iterator[Finding]:
    """Rule: nothing passed another interface than the link's."""
    for name, passed in trial.programs.bypasses.items():
        for each in passed:
            if each.bytes > BYPASS_MAX:
                yield Finding(
                    f"bypass: {bytes_text(each.bytes)} of {name} passed its interface {each.interface}, past its link "
                    "and all limits; let its namespace have the interface of its link alone"
                )


def latency(trial: Observed) -> Iterator[Finding]:
    """Rule: no round trip is shorter than the latency of both links lets it be."""
    nodes = {node.name: node for node in trial.nodes}
    found = []
    for (name, peer), seen in trial.programs.connections.items():
        asked_s = sum(_least_s(trial, nodes[end]) for end in (name, peer)) if peer in nodes else 0.0
        if seen.round_trip_s is not None and seen.round_trip_s < LATENCY_MIN * asked_s:
            found.append((seen.round_trip_s / asked_s, name, peer, seen.round_trip_s, asked_s))
    if found:
        _, name, peer, seen_s, asked_s = min(found)
        others = f"; so it was of {len(found) - 1:,} more pairs" if len(found) > 1 else ""
        yield Finding(
            f"latency: the smallest round trip between {name} and {peer} was {ms_text(seen_s)}, where their links take "
            f"{ms_text(asked_s)} at least{others}; who took the delay away?"
        )


def _least_s(trial: Observed, node: Judged) -> float:
    """The least that a node's link may add to a round trip, in seconds; 0 where a fault changed it."""
    if trial.was_done(node, *LINK_ACTIONS - {"cut", "heal"}):
        return 0.0
    latency_s, jitter_s = node.plan.link.latency_s, node.plan.link.jitter_s
    for change in node.plan.link.changes:
        latency_s = min(latency_s, latency_s if change.latency_s is None else change.latency_s)
        jitter_s = max(jitter_s, change.jitter_s or 0.0)
    return 2.0 * max(0.0, latency_s - jitter_s)


def idle(trial: Observed) -> Iterator[Finding]:
    """Rule: a link that carried nothing, while others did, is worth a word."""
    most = max(trial.carried.values(), default=0)
    for nodes in trial.classes():
        still = [node for node in nodes if trial.carried.get(node.name, BUSY_MIN) <= IDLE_MAX]
        if still and most >= BUSY_MIN:
            yield Finding(
                f"idle link: nothing passed the link of {of_class(still, nodes)}"
                f"{f' ({names_text(still)})' if len(still) > 1 else ''}, where others carried up to {bytes_text(most)}",
                is_fault=False,
            )


def unknowable(_: Observed) -> Iterator[Finding]:
    """Rule: what nobody can know of a program is said."""
    yield Finding(UNKNOWABLE, is_fault=False)


PROGRAM_RULES: tuple[Rule, ...] = (bypassed, latency, unknowable)
