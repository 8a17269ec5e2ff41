"""Rules of the verdict about what was seen of nodes from outside: an observer that is not the observed.

A node counts its own CPU time and bytes, and reads its own caps and queues. Whoever changes the far end of its link, or
a cgroup above its own, is not seen from there, and a node that has turned against its run says what it likes. So the
controller reads the node's cgroup with those above it, and the far end of its link; where both count, they must agree.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from edgebed.core import records
from edgebed.core.framing import MTU
from edgebed.core.quantities import bytes_text, number_text
from edgebed.journal.verdict.findings import (
    Finding,
    Judged,
    Observed,
    Rule,
    can_be_spoiled,
    names_text,
    share_text,
)

DIFFERENCE_MAX = 0.05
"""Share by which what a node tells and what is seen of it may differ."""
CPU_S_MAX = 0.1
"""Seconds of CPU time by which they may differ in any case."""
BYTES_MAX = 64_000
"""Bytes by which they may differ in any case."""
MEMORY_MAX = 4_000_000
"""Bytes of memory by which a node's peak may be below what was seen before: two readings of one counter."""
ABOVE_MAX = 0.05
"""Share of the training for which the quota of a cgroup above may be used up."""
NOBODY = "nobody looked at it from outside"
"""Why nothing is seen of a node: no line of it was journaled."""


class Difference(NamedTuple):
    """A figure of a node's own account that is not what was seen."""

    excess: float
    """Multiple of what may differ."""
    text: str


def told(trial: Observed) -> Iterator[Finding]:
    """Rule: what nodes say that they used is what was seen of them."""
    found = [(max(wrong), node) for node in trial.nodes if (wrong := list(_differences(trial, node)))]
    if found:
        (_, text), worst = max(found, key=lambda each: each[0])
        others = f", and the figures of {len(found) - 1:,} more differ" if len(found) > 1 else ""
        yield Finding(
            f"usage: {worst.name} told {text}, as seen from outside{others}; is its code the run's, and are its cgroup "
            "and its link its own?"
        )


def _differences(trial: Observed, node: Judged) -> Iterator[Difference]:
    for seen, own in ((life.seen, life.reported) for life in trial.seen.get(node.name, ())):
        if seen is None or own is None:
            continue
        if excess := _excess(own.cpu_s, seen.cpu_s, seen.cpu_error_s, CPU_S_MAX):
            had = _between(seen.cpu_s or 0.0, seen.cpu_error_s, _cpu_text)
            yield Difference(excess, f"{_cpu_text(own.cpu_s)} of CPU time, where its cgroup had {had}")
        for way in ("uplink", "downlink"):
            own_bytes, seen_bytes, error_bytes = (
                getattr(record, f"{way}_{what}")
                for record, what in ((own, "bytes"), (seen, "bytes"), (seen, "error_bytes"))
            )
            if excess := _excess(own_bytes, seen_bytes, error_bytes, BYTES_MAX):
                passed = _between(seen_bytes, error_bytes, bytes_text)
                yield Difference(excess, f"{bytes_text(own_bytes)} on its {way}, where {passed} passed the far end")
        memory_bytes = max(seen.memory_bytes or 0, own.memory_bytes or 0)  # it may have grown since
        if excess := _excess(own.memory_bytes, memory_bytes, 0.0, MEMORY_MAX):
            text = f"{bytes_text(own.memory_bytes)} of memory at most, where its cgroup had had"
            yield Difference(excess, f"{text} {bytes_text(memory_bytes)}")


def _excess(own: float | None, seen: float | None, error: float, least: float) -> float:
    """How many times more two figures differ than they may, beyond the error of what was seen; 0: no more."""
    if own is None or seen is None:
        return 0.0
    times = (abs(own - seen) - error) / max(least, DIFFERENCE_MAX * max(own, seen))
    return times if times > 1.0 else 0.0


def _between(value: float, error: float, text: Callable[[float], str]) -> str:
    """A figure that is known to some error, as text."""
    least, most = text(max(0.0, value - error)), text(value + error)
    return least if least == most else f"{least} to {most}"


def _cpu_text(cpu_s: float) -> str:
    return f"{number_text(cpu_s)} s"


def held(trial: Observed) -> Iterator[Finding]:
    """Rule: what was set at cgroups is held there, and nothing at the far ends of links, where edgebed sets nothing."""
    found: dict[str, list[tuple[Judged, int]]] = {}
    for node, last in _last(trial):
        for text in last.differences:
            found.setdefault(text, []).append((node, last.differed))
    for text, wrong in found.items():
        cause, _, what = text.partition(": ")
        names, looks = names_text(node for node, _ in wrong), max(count for _, count in wrong)
        yield Finding(
            f"{cause}: {names}: {what}; so it was found from outside in {looks:,} looks, five a second: find who did it"
        )


def far_mtu(trial: Observed) -> Iterator[Finding]:
    """Rule: both ends of a link take packets of the same size."""
    found = [
        (node, last.mtu or MTU)
        for node, last in _last(trial)
        if last.uplink_bytes is not None and (last.mtu or MTU) != node.row.mtu
    ]
    if found:
        (first, mtu), names = found[0], names_text(node for node, _ in found)
        yield Finding(
            f"link: {names}: the far end has an MTU of {mtu:,}, the node's own {first.row.mtu:,}; find who changed one"
        )


def above(trial: Observed) -> Iterator[Finding]:
    """Rule: no quota above the nodes' own cgroups held them back; one that could have is mentioned."""
    found: dict[tuple[str, float], list[tuple[Judged, float]]] = {}
    for node, last in _last(trial):
        if last.cpus_above is not None:
            found.setdefault((last.above, last.cpus_above), []).append((node, last.above_s))
    for (cgroup, cpus), below in found.items():
        promised = sum(node.plan.cpus or 0.0 for node, _ in below)
        share = min(1.0, max(above_s for _, above_s in below) / trial.trained_s) if trial.trained_s else 0.0
        text = (
            f"a quota of {number_text(cpus)} cores on {cgroup}, above the cgroups of {names_text(n for n, _ in below)}"
        )
        caps = f"; their caps add up to {number_text(promised)} cores" if promised else ""
        if share > ABOVE_MAX and any(can_be_spoiled(node.plan) for node, _ in below):
            yield Finding(
                f"CPU cap: {text}, was used up for {share_text(share)} of the training{caps}; raise it or take it "
                "away, or ask for fewer nodes"
            )
        elif cpus < promised:
            yield Finding(f"there was {text}{caps}; it was hardly ever used up", is_fault=False)


def unread(trial: Observed) -> dict[str, str]:
    """What could not be seen of each node from outside, and why; without those of which all was read."""
    last = {node.name: seen for node, seen in _last(trial)}
    why = {node.name: "; ".join(last[node.name].unread) if node.name in last else NOBODY for node in trial.nodes}
    return {name: text for name, text in why.items() if text}


def _last(trial: Observed) -> Iterator[tuple[Judged, records.Seen]]:
    """The last line of each node that was seen."""
    for node in trial.nodes:
        if lives := trial.seen.get(node.name):
            yield node, lives[-1].last


SEEN_RULES: tuple[Rule, ...] = (told, held, far_mtu, above)
