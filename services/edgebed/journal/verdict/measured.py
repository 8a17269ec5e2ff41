"""Each node's conditions as asked, as held and as measured: one row a node, from plan and series.

Pure, and without a judgement: `fidelity.py` judges these rows. None: not asked, or not measured.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

import msgspec

from edgebed.core import records
from edgebed.core.framing import MTU, burst_bytes
from edgebed.core.plan import NodePlan, Plan
from edgebed.core.planned.link import Impairments, impairments_of
from edgebed.core.recorded.measured import first_of_each
from edgebed.core.units import parse_rate
from edgebed.emulation.conditions import LinkSchedule
from edgebed.journal.series import Series

SUMS = (
    "messages", "bytes", "time_s", "asked_s", "beside_s", "throttled_s", "busy_s", "latency_s", "early", "error_s",
    "impossible", "left_out", "unacknowledged", "unacknowledged_s", "unacknowledged_asked_s", "repeated_s",
)  # fmt: skip
"""Fields of `Transfers` that are summed over all who tell of a way, and over their incarnations."""


N = TypeVar("N", int, float)


class DirectionConditions(msgspec.Struct, frozen=True, kw_only=True):
    """One direction of a node's link; rates in bits a second on the wire."""

    direction: Literal["up", "down"]
    to: str = ""
    """The receiver, where only messages to one node are meant (among shards)."""
    asked_low_bit_s: int | None = None
    """The lowest rate asked over time; None: there was no limit at some time."""
    asked_high_bit_s: int | None = None
    held_bit_s: int | None = None
    """The rate that was read back last."""
    burst_bytes: int | None = None
    measured_bit_s: float | None = None
    """The measured rate. Worker: while a message passed. Server, whose link all share: in the third-busiest two seconds
    or so."""
    busiest: float | None = None
    """The share of the asked rate that passed the interface in the third-busiest two seconds or so."""
    messages: int = 0
    bytes: int = 0
    time_s: float = 0.0
    """Seconds that the measured messages were on their way, together."""
    asked_s: float = 0.0
    """Seconds that these messages would have taken over links exactly as asked, with nothing else on them."""
    beside_s: float = 0.0
    """Seconds that other messages of the trial's on the same links may have added, at most."""
    throttled_s: float = 0.0
    """Seconds of `time_s` in which CPU caps held back the nodes at both ends, at most."""
    busy_s: float = 0.0
    """Seconds of `time_s` in which a node that serves others computed, at most."""
    latency_s: float = 0.0
    """The part of `asked_s` that is latency."""
    delay_s: float | None = None
    """The latency as measured, with handling, on the message that was delayed least. None: none was small enough."""
    early: int = 0
    """Number of messages that came sooner than their bytes allow, by a tenth or more."""
    error_s: float = 0.0
    """Seconds by which `time_s` may be wrong, since the clocks of both ends are not the same."""
    impossible: int = 0
    """Number of messages that came before they had left, by more than these clocks are said to be wrong by."""
    left_out: int = 0
    """Number of messages that were not timed, since a fault of a link met them."""
    unacknowledged: int = 0
    """Number of messages that the next two are about, by the kernels of those who sent them."""
    unacknowledged_s: float = 0.0
    """Seconds until the receiver's kernel had acknowledged them, together; no process has a part in that."""
    unacknowledged_asked_s: float = 0.0
    """Seconds that that would have taken over links exactly as asked, with nothing else on them."""
    repeated_s: float = 0.0
    """Seconds of the link, as asked, that packets take which TCP sent again, though they had come."""
    drops: float | None = None
    """Share of the packets that the queue dropped."""
    arrived_bytes: int | None = None
    """Down: bytes that arrived at the node's interface."""
    dropped_bytes: int | None = None
    """Down: bytes of these that the queue behind it dropped; None: not counted."""
    own_bytes: int | None = None
    """Down: bytes of what was not dropped that came over the node's own connections, by TCP's count; None: unknown."""


class NodeConditions(Impairments, frozen=True, kw_only=True):
    """One node's conditions as asked, of its link at the beginning, held and measured."""

    node: str
    role: str
    device_class: str
    host: str = ""
    """The host that it was on; empty: there is one alone."""
    mtu: int = MTU
    """The MTU of the node's interface, as far as was told."""
    congestion_controls: tuple[str, ...] = ()
    """TCP's congestion controls of the node's data connections, as read back, with those of its other incarnations."""
    mechanism: str = ""
    """The mechanism that held the node's link: tc, model or none; empty where it was not reported."""
    delay: str = ""
    uplink: DirectionConditions
    downlink: DirectionConditions
    pairs: tuple[DirectionConditions, ...] = ()
    """Messages on the uplink by receiver, for a shard or a node that serves them; empty for others."""
    problems: tuple[str, ...] = ()
    """Differences that reading back found, the first in each direction."""
    differed: int = 0
    """Number of reads, one a second, that found a difference."""
    time_s: float = 0.0
    """Seconds for which the node was measured."""
    cpus_asked: float | None = None
    cpus_held: float | None = None
    """CPU cap in cores, as the node's own cgroup held it at last."""
    cpus_measured: float | None = None
    """Mean number of cores that the node used."""
    capped_s: float = 0.0
    """Seconds in which the node used its cap up."""
    cpus_capped: float | None = None
    """Mean number of cores that the node had while it used its cap up."""
    capped_share: float | None = None
    """Share of what its cap allows that the node had while it used that up, with the caps that faults set."""
    allowed_share: float | None = None
    """Share of what its cap allows that the node had over all of its time, with the caps that faults set."""
    starved: float | None = None
    """Share of the time that the node lost, since it got no core of those that it was promised, or wanted: all of it
    where it had none."""
    throttled: float | None = None
    """Share of the time in which the node's own CPU cap held it back; None where no cgroup of its own holds one."""
    stopped_s: float | None = None
    """Seconds for which the node stood still, those included that were asked for; None where it did not tell."""
    device_s: float | None = None
    """CPU seconds that the node's work takes on its device; None: the plan says no device, or nobody told."""
    device_late_s: float = 0.0
    """CPU seconds by which it took longer here."""
    device_waits_s: float = 0.0
    """Seconds that it waited."""
    device_jobs: int = 0
    """Number of jobs that this work was done in."""
    memory_asked_bytes: int | None = None
    memory_held_bytes: int | None = None
    memory_bytes: int | None = None
    """The node's peak memory."""
    caps_differed: int = 0
    """Number of the node's looks at its own cgroup, one a second, that found another CPU cap than was set."""
    caps_problems: tuple[str, ...] = ()
    """What differed, the first of each cause."""


def rows_of(plan: Plan, series: Series) -> tuple[NodeConditions, ...]:
    """A row for every node of the plan, in its order."""
    return tuple(_row(node, series) for node in plan.nodes)


def _row(plan: NodePlan, series: Series) -> NodeConditions:
    links = series.links.get(plan.node, ())
    last = links[-1] if links else records.Link(mechanism="")
    ends = series.usage.get(plan.node, ())
    time_s, capped_s = (sum(getattr(end, name) for end in ends) for name in ("time_s", "capped_s"))
    return NodeConditions(
        node=plan.node,
        role=plan.role,
        device_class=plan.device_class,
        host="" if series.hosts.keys() == {""} else plan.host,
        mtu=last.mtu or MTU,
        congestion_controls=tuple(sorted({name for end in ends for name in end.congestion_controls})),
        mechanism=last.mechanism,
        delay=last.delay,
        **impairments_of(plan.link),
        uplink=_way(plan, "up", series, last),
        downlink=_way(plan, "down", series, last),
        pairs=tuple(_pairs(plan, series)),
        problems=_differences(links),
        differed=sum(link.differed for link in links),
        time_s=time_s,
        cpus_asked=plan.cpus,
        cpus_held=ends[-1].cpus_held if ends else None,
        cpus_measured=_ratio(sum(end.cpu_s for end in ends), time_s),
        capped_s=capped_s,
        cpus_capped=_ratio(sum(end.capped_cpu_s for end in ends), capped_s),
        capped_share=_ratio(sum(end.capped_cpu_s for end in ends), sum(end.capped_allowed_s for end in ends)),
        allowed_share=_ratio(sum(end.cpu_s for end in ends), sum(end.allowed_s for end in ends)),
        starved=_ratio(_total(end.starved_s for end in ends), time_s),
        throttled=_ratio(_total(end.throttled_s for end in ends), time_s),
        stopped_s=_total(end.stopped_s for end in ends),
        device_s=_total(end.device_s for end in ends),
        device_late_s=sum(end.device_late_s for end in ends),
        device_waits_s=sum(end.device_waits_s for end in ends),
        device_jobs=sum(end.device_jobs for end in ends),
        memory_asked_bytes=plan.memory_bytes,
        memory_held_bytes=ends[-1].memory_held_bytes if ends else None,
        memory_bytes=max((end.memory_bytes for end in ends if end.memory_bytes is not None), default=None),
        caps_differed=sum(end.differed for end in ends),
        caps_problems=tuple(first_of_each(text for end in ends for text in end.differences).values()),
    )


def _way(plan: NodePlan, direction: Literal["up", "down"], series: Series, last: records.Link) -> DirectionConditions:
    name = "uplink" if direction == "up" else "downlink"
    schedule = LinkSchedule(plan.link)

    asked: list[int | None] = [getattr(each, f"{name}_bit_s") for each in (schedule.initial, *schedule.conditions)]
    limits = [each for each in asked if each is not None]
    changes = [] if limits else list(_changes(plan.node, name, series))
    lowest = min(limits) if len(limits) == len(asked) else None
    usage = series.usage.get(plan.node, ())
    told = [end for _, ends in _to_others(plan, series) for end in ends] if direction == "up" else []
    ends = (*series.transfers.get((plan.node, direction, ""), ()), *told)
    sums = _sums(ends)
    messages, size, time_s = sums["messages"], sums["bytes"], sums["time_s"]
    passed_bits = 8 * (size - messages * burst_bytes(min(limits), last.mtu or MTU)) if limits else 0
    packets, drops = (_total(getattr(end, f"{name}_{what}") for end in usage) for what in ("packets", "drops"))
    busiest, busiest_bit_s = (
        max((value for end in usage if (value := getattr(end, f"{name}_{what}")) is not None), default=None)
        for what in ("busiest", "busiest_bit_s")
    )
    passed_s = time_s - sums["latency_s"]
    alone_bit_s = _ratio(passed_bits, passed_s) if passed_bits > 0 else None  # else all passed in bursts
    return DirectionConditions(
        direction=direction,
        asked_low_bit_s=lowest,
        asked_high_bit_s=max(limits or changes, default=None),
        held_bit_s=getattr(last, f"{name}_held"),
        burst_bytes=getattr(last, f"{name}_burst"),
        measured_bit_s=busiest_bit_s if plan.role == "server" else alone_bit_s,
        busiest=busiest,
        **sums,
        delay_s=_delay_s(ends),
        drops=_ratio(drops, (packets or 0) + (drops or 0)),
        **(_bytes(usage) if direction == "down" else {}),
    )


def _changes(node: str, name: str, series: Series) -> Iterator[int]:
    """Rates that faults, or a user, asked of a node's link."""
    for record in (done.record for done in series.faults):
        if (record.target, record.action) == (node, "link") and not record.problem:
            for part in record.change.split(", "):
                with suppress(ValueError):
                    yield parse_rate(part.removeprefix(f"{name} "))


def _bytes(usage: Sequence[records.Usage]) -> dict[str, Any]:
    """Bytes at a node's interface, in all its incarnations."""
    return {
        "arrived_bytes": _total(end.downlink_bytes for end in usage),
        "dropped_bytes": _total(end.downlink_dropped_bytes for end in usage),
        "own_bytes": _total(end.downlink_own_bytes for end in usage),
    }


def _pairs(plan: NodePlan, series: Series) -> Iterator[DirectionConditions]:
    for to, ends in _to_others(plan, series):
        sums = _sums(ends)
        if sums["messages"] or sums["impossible"]:
            yield DirectionConditions(direction="up", to=to, **sums)


def _to_others(plan: NodePlan, series: Series) -> list[tuple[str, tuple[records.Transfers, ...]]]:
    """Transfers of a shard, or of a node that serves them, by receiver."""
    if not plan.counts_messages:
        return []
    return [(to, ends) for (name, _, to), ends in sorted(series.transfers.items()) if name == plan.node and to]


def _sums(ends: Sequence[records.Transfers]) -> dict[str, Any]:
    return {field: sum(getattr(end, field) for end in ends) for field in SUMS}


def _delay_s(ends: Sequence[records.Transfers]) -> float | None:
    """Measured latency: delay behind the first byte, by the receiver's account, and before it, by the sender's."""
    received, sent = (
        min((end.delay_s for end in ends if end.delay_s is not None and bool(end.messages) == whose), default=None)
        for whose in (True, False)
    )
    return None if received is None else round(received + (sent or 0.0), 6)


def _differences(links: Sequence[records.Link]) -> tuple[str, ...]:
    """The first difference of each direction, and of the MTU, over all incarnations of a node and between them."""
    mtus = list(dict.fromkeys(link.mtu or MTU for link in links))
    between = [f"MTU: the interface takes packets of {mtu:,} bytes, in an earlier life of {mtus[0]:,}" for mtu in mtus]
    texts = (*between[1:], *(each for link in links for each in link.differences))
    return tuple(first_of_each(texts).values())


def _total(values: Iterator[N | None]) -> N | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _ratio(part: float | None, whole: float) -> float | None:
    return part / whole if part is not None and whole > 0.0 else None
