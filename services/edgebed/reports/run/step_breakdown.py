"""What a step of shards is made of: how long each node works for it, and how long messages are on their way for it.

Each is a share of the time in which the shards trained, the same for all of a trial. Where shards take turns the shares
add up to about the whole; where they work at the same time each may be near it by itself. What is busy longest is what
holds the others up: the bottleneck.

How long messages were on their way is measured where nodes measure it, else what links exactly as asked would take.
"""

from collections.abc import Iterator
from typing import NamedTuple

from edgebed.core.framing import wire_bytes
from edgebed.core.measures.trial import Exchange
from edgebed.core.quantities import ms_text, seconds_text
from edgebed.core.records import ShardPhases
from edgebed.emulation.conditions import LinkSchedule
from edgebed.emulation.transfer_time import transfer_s
from edgebed.journal.summary import STEP_MESSAGES
from edgebed.running.results import Trial

WORK = ("forward_s", "learn_s", "teach_s", "copy_s")
"""Phases in which a node works; in the others it waits."""
NODE, LINK = "nodes computing", "messages on their way"


class Busy(NamedTuple):
    """A node, or messages from one to another, that a step keeps busy."""

    name: str
    """A node, or `sender → receiver`."""
    kind: str
    """NODE or LINK."""
    share: float
    """Share of the time; of messages above 1 where several are on their way at once."""
    step_s: float
    """Seconds of a step."""


def busy_of(trial: Trial) -> list[Busy]:
    """All that a step keeps busy, the longest first; empty where no shard has made two steps."""
    rate = trial.summary.value("steps_per_s")
    spent = trial.series.shards.phases
    whole_s = max(map(_total_s, spent.values()), default=0.0)
    if not rate or not whole_s:
        return []
    times_s = [(name, NODE, sum(getattr(phases, phase) for phase in WORK)) for name, phases in spent.items()]
    times_s += [(name, LINK, time_s) for name, time_s in _on_the_way(trial)]
    found = [Busy(name, kind, time_s / whole_s, time_s / whole_s / rate) for name, kind, time_s in times_s]
    return sorted((each for each in found if each.share > 0.0), key=lambda each: -each.share)


def bottleneck_text(trial: Trial) -> str:
    """What holds a step up, e.g. `edge-0 → edge-1 takes 1.4 s, 45 % of a step`; "" where nothing is known."""
    busy = busy_of(trial)
    if not busy:
        return ""
    first = busy[0]
    verb = "computes for" if first.kind == NODE else "takes"
    return f"{first.name} {verb} {took_text(first)}, {100 * first.share:.0f} % of a step"


def took_text(busy: Busy) -> str:
    """For how long a step keeps it busy."""
    return ms_text(busy.step_s) if busy.step_s < 1.0 else seconds_text(busy.step_s)


def _total_s(phases: ShardPhases) -> float:
    return float(sum(getattr(phases, name) for name in phases.__struct_fields__))


def _on_the_way(trial: Trial) -> Iterator[tuple[str, float]]:
    """Seconds for which messages of each pair of nodes were on their way, summed over messages.

    Of pairs that a step needs: others store weights, or begin a history. What was measured is of all their messages.
    """
    nodes = trial.summary.fidelity.nodes if trial.summary.fidelity else ()
    measured = {(node.node, pair.to): pair.time_s for node in nodes for pair in node.pairs}
    asked: dict[tuple[str, str], float] = {}
    for exchange in trial.summary.shards.exchanges if trial.summary.shards else ():
        if exchange.message in STEP_MESSAGES:
            pair = (exchange.source, exchange.target)
            asked[pair] = asked.get(pair, 0.0) + _asked_s(trial, exchange)
    for pair, time_s in asked.items():
        yield " → ".join(pair), measured.get(pair, time_s)


def _asked_s(trial: Trial, exchange: Exchange) -> float:
    """Seconds that the messages take over links as asked at the beginning, one after the other."""
    links = {node.node: node.link for node in trial.plan.nodes}
    if exchange.source not in links or exchange.target not in links or not exchange.count:
        return 0.0
    source, target = links[exchange.source], links[exchange.target]
    size = wire_bytes(exchange.bytes // exchange.count)
    one_s = transfer_s(LinkSchedule(source), LinkSchedule(target), 0.0, size, acknowledged=False)
    return exchange.count * (one_s + source.latency_s + target.latency_s)
