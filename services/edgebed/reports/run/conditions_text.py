"""Conditions as asked, as held and as measured (links, CPUs, memory), as tables and texts."""

from collections.abc import Iterable, Iterator, Sequence

from edgebed.core.planned.link import impairments_of, impairments_text, is_impaired
from edgebed.core.quantities import UNMEASURED, bytes_text, number_text, rate_text
from edgebed.core.recorded.measured import SLEW_SHOWN
from edgebed.journal.outcome import AnySummary
from edgebed.journal.verdict.evidence import Evidence
from edgebed.journal.verdict.fidelity import Fidelity
from edgebed.journal.verdict.findings import share_text
from edgebed.journal.verdict.hosts import HostConditions
from edgebed.journal.verdict.measured import DirectionConditions, NodeConditions
from edgebed.reports.writing.page import Grid, Part, Section
from edgebed.running.results import AnyTrial, Run

LINK_HEAD = ("node", "direction", "asked", "held", "measured", "latency", "latency measured", "drops", "mechanism")
LINK_LEGEND = (
    "measured: while a message passed, which is less than the rate where messages are small or the host is busy; of "
    "the server, which all share, in its third-busiest two seconds; latency measured: of the message that was held "
    "back least, with its handling"
)
NODE_HEAD = (
    "node", "uplink: asked", "held", "measured", "downlink: asked", "held", "measured",
    "latency: asked", "latency up", "latency down", "drops", "mechanism",
    "CPU cap", "held", "CPU used", "at the cap", "waited for a core", "memory cap", "memory: most",
)  # fmt: skip
CLASS_HEAD = (
    "class", "nodes", "uplink: asked", "measured", "downlink: asked", "measured", "CPU cap", "CPU used",
    "waited for a core: mean", "most", "memory: most",
)  # fmt: skip
HOST_HEAD = ("cores busy", "taken away (steal)", "load a core", "waking up late by", "clock off by")
HOSTS_HEAD = ("host", *HOST_HEAD, "network: busiest", "its rate", "in use")
"""Where there are several: the network is the one between them, over some seconds in the busier direction."""
EVIDENCE_HEAD = ("condition", "of", "measured by", "for how much of its time", "bound")
DIRECTIONS = {"up": "uplink", "down": "downlink"}


def remarks_of(summary: AnySummary) -> tuple[str, ...]:
    """Remarks on a trial's conditions."""
    remarks = summary.fidelity.remarks if summary.fidelity else ()
    if summary.ran_to_end:
        return remarks
    partly = {"running": "still running: judged up to now"}
    return (*remarks, partly.get(summary.outcome, "the trial did not complete: judged up to there"))


def asked_text(way: DirectionConditions) -> str:
    """The rate asked, or the span of rates over time."""
    low, high = way.asked_low_bit_s, way.asked_high_bit_s
    if high is None:
        return "no limit"
    if low == high:
        return rate_text(high)
    return f"{'no limit' if low is None else rate_text(low)} to {rate_text(high)}"


def link_rows(nodes: Iterable[NodeConditions]) -> Iterator[tuple[str, ...]]:
    """Rows for both directions of every link that was asked for or that something held."""
    for node in filter(_has_link, nodes):
        for way in (node.uplink, node.downlink):
            asked, held, measured, drops = _way_texts(way)
            if way.asked_low_bit_s != way.asked_high_bit_s:  # it changed with time
                held = f"differed {node.differed} s" if node.differed else "as asked"
            where = (node.node, DIRECTIONS[way.direction])
            latency = latency_text(node), delay_text(way)
            yield (*where, asked, held, measured, *latency, drops, mechanism_text(node))


def _has_link(node: NodeConditions) -> bool:
    """Whether a limit was asked of the node's link, or something held it."""
    rates = any(way.asked_high_bit_s is not None for way in (node.uplink, node.downlink))
    return node.mechanism in ("tc", "model") or rates or is_impaired(node)


def latency_text(node: NodeConditions) -> str:
    """What was asked to happen to packets, at the beginning."""
    return impairments_text(node) or UNMEASURED


def delay_text(way: DirectionConditions) -> str:
    """The latency as measured."""
    return UNMEASURED if way.delay_s is None else f"{number_text(1000 * way.delay_s)} ms"


def link_dicts(run: Run) -> list[dict[str, object]]:
    """All links of a run for programs: rates in bits a second, null for no limit or not measured."""
    return [found for trial in run.trials.values() for found in trial_link_dicts(trial)]


def trial_link_dicts(trial: AnyTrial) -> list[dict[str, object]]:
    """All links of one trial for programs."""
    return [
        {
            "trial": trial.name,
            "node": node.node,
            "direction": DIRECTIONS[way.direction],
            **impairments_of(node),
            "latency_measured_s": way.delay_s,
            "asked_low_bit_s": way.asked_low_bit_s,
            "asked_high_bit_s": way.asked_high_bit_s,
            "held_bit_s": way.held_bit_s,
            "burst_bytes": way.burst_bytes,
            "measured_bit_s": way.measured_bit_s,
            "messages": way.messages,
            "time_s": way.time_s,
            "asked_s": way.asked_s,
            "drops": way.drops,
            "mechanism": node.mechanism,
            "delay": node.delay,
            "problems": node.problems,
            "differed_s": node.differed,
            "host": node.host,
            "mtu": node.mtu,
        }
        for node in filter(_has_link, trial.summary.fidelity.nodes if trial.summary.fidelity else ())
        for way in (node.uplink, node.downlink)
    ]


def condition_parts(fidelity: Fidelity) -> tuple[Part, ...]:
    """Tables of the classes, the host or hosts, what measured them, and each node."""
    nodes, host = fidelity.nodes, fidelity.host
    host_grid = Grid(HOST_HEAD, [_host_row(host)] if host else [])
    node_grid = Grid(NODE_HEAD, list(map(_node_row, nodes)))
    if any(node.host for node in nodes):
        host_grid = Grid(HOSTS_HEAD, [(each.host, *_host_row(each), *_network_row(each)) for each in fidelity.hosts])
        rows = zip(node_grid.rows, nodes, strict=True)
        node_grid = Grid(("node", "host", *NODE_HEAD[1:]), [(row[0], node.host, *row[1:]) for row, node in rows])
    return (
        Grid(CLASS_HEAD, list(_class_rows(nodes))).without_empty_columns(),
        host_grid.without_empty_columns(),
        Section("What measured it", [Grid(EVIDENCE_HEAD, list(_evidence_rows(fidelity.evidence)))], is_folded=True),
        Section("Each node", [node_grid.without_empty_columns()], is_folded=True),
    )


def _evidence_rows(evidence: Iterable[Evidence]) -> Iterator[tuple[str, ...]]:
    """A row for conditions of a class, or of a host, that one source measured for as long, by the same bound."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for row in evidence:
        least = f" ({row.node})" if row.node and row.nodes > 1 else ""
        key = row.subject, row.measured_by, f"{share_text(row.share)}{least}", row.bound
        alike.setdefault(key, []).append(row.condition)
    for (subject, *rest), conditions in alike.items():
        yield ", ".join(conditions), subject, *rest


def _host_row(host: HostConditions) -> tuple[str, ...]:
    slew = share_text(host.slew) if host.slew is not None and host.slew >= SLEW_SHOWN else UNMEASURED
    return share_text(host.busy), share_text(host.steal), number_text(host.load), f"{1000 * host.lag_s:.1f} ms", slew


def _network_row(host: HostConditions) -> tuple[str, ...]:
    rate = rate_text(host.network_rate_bit_s or None)
    return UNMEASURED if host.network_bit_s is None else rate_text(host.network_bit_s), rate, _share(host.network_share)


def link_grid(nodes: Iterable[NodeConditions]) -> Grid:
    """A row for each direction of every link that was asked for or that something held."""
    return Grid(LINK_HEAD, list(link_rows(nodes)), dispensable=("drops", "mechanism"))


def _node_row(node: NodeConditions) -> tuple[str, ...]:
    up, down = _way_texts(node.uplink), _way_texts(node.downlink)
    drops = [way.drops for way in (node.uplink, node.downlink) if way.drops is not None]
    return (
        node.node, *up[:3], *down[:3],
        latency_text(node), delay_text(node.uplink), delay_text(node.downlink),
        _share(max(drops, default=None)), mechanism_text(node),
        number_text(node.cpus_asked), number_text(node.cpus_held), number_text(node.cpus_measured),
        number_text(node.cpus_capped), _share(node.starved),
        bytes_text(node.memory_asked_bytes), bytes_text(node.memory_bytes),
    )  # fmt: skip


def _class_rows(nodes: Iterable[NodeConditions]) -> Iterator[tuple[str, ...]]:
    """Means, and the worst of what counts as a fault."""
    classes: dict[str, list[NodeConditions]] = {}
    for node in nodes:
        classes.setdefault(node.device_class, []).append(node)
    for name, members in classes.items():
        first = members[0]
        starved = [node.starved for node in members if node.starved is not None]
        memory = [node.memory_bytes for node in members if node.memory_bytes is not None]
        yield (
            name, f"{len(members):,}",
            asked_text(first.uplink), rate_text(_mean([node.uplink.measured_bit_s for node in members])),
            asked_text(first.downlink), rate_text(_mean([node.downlink.measured_bit_s for node in members])),
            number_text(first.cpus_asked), number_text(_mean([node.cpus_measured for node in members])),
            _share(_mean(starved)), _share(max(starved, default=None)), bytes_text(max(memory, default=None)),
        )  # fmt: skip


def mechanism_text(node: NodeConditions) -> str:
    """The mechanism that held the link, and the one that delayed it."""
    return " + ".join(filter(None, (node.mechanism, {"line": "delay line"}.get(node.delay, node.delay)))) or UNMEASURED


def _way_texts(way: DirectionConditions) -> tuple[str, str, str, str]:
    measured = UNMEASURED if way.asked_high_bit_s is None else rate_text(way.measured_bit_s)
    return asked_text(way), rate_text(way.held_bit_s), measured, _share(way.drops)


def _share(share: float | None) -> str:
    return UNMEASURED if share is None else share_text(share)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
