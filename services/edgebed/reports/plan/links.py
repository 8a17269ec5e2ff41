"""The links of a plan in words, and how long a model and a push take on them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgebed.core.framing import wire_bytes
from edgebed.core.plan import TrainingNode, TrainingPlan
from edgebed.core.planned.link import LinkPlan, impairments_text
from edgebed.core.quantities import UNMEASURED, number_text, seconds_text
from edgebed.core.units import format_duration, format_rate
from edgebed.emulation.conditions import LinkState
from edgebed.planning.link_warnings import Direction, moments, rate_of, rate_text
from edgebed.reports.writing.page import Grid

UNLIMITED = "no limit"


@dataclass(frozen=True, kw_only=True)
class LinkRow:
    """The links of a device class, or the server's."""

    device_class: str
    link: str
    """The link in one line, as `link_text` writes it."""
    pull_s: tuple[float, float] | None = None
    """Seconds for the whole model to a worker that has the server's link for itself, at the best and at the worst
    moment; None for the server, and for shards, which pull and push nothing."""
    push_s: tuple[float, float] | None = None
    """Seconds for a push of the size of the plan's example, at the best and at the worst moment; None as for `pull_s`.
    """


def link_rows(plan: TrainingPlan, model_bytes: int, push_bytes: int) -> Iterator[LinkRow]:
    """A row for the server and one for each class; none if no link is limited or delayed."""
    if not any(node.link.shaped for node in plan.nodes):
        return
    server = next(node for node in plan.nodes if node.role == "server")
    yield LinkRow(device_class=server.device_class, link=link_text(server.link))
    for node in {node.device_class: node for node in plan.workers()}.values():
        yield LinkRow(
            device_class=node.device_class,
            link=link_text(node.link),
            pull_s=_range_s(server, node, model_bytes) if node.pushes else None,
            push_s=_range_s(node, server, push_bytes) if node.pushes else None,
        )


def link_grid(rows: Sequence[LinkRow]) -> Grid:
    """A line for each class that has a link, with the server's."""
    head = ("class", "link", "full model down", "push up")
    return Grid(head, [(row.device_class, row.link, *_times_texts(row)) for row in rows])


def link_text(link: LinkPlan) -> str:
    """A link in one line, e.g. `up 10mbit down 100mbit 40ms±5ms loss 1% steps 3`."""
    if not link.shaped:
        return UNLIMITED
    first = moments(link)[0]
    parts = list(_rates(first)) if link.period_s is None else _trace(link, link.period_s)
    parts += filter(None, (impairments_text(first),))
    if link.changes and link.period_s is None:
        parts.append(f"steps {len(link.changes)}")
    return " ".join(parts)


def _rates(now: LinkState) -> Iterator[str]:
    if now.uplink_bit_s is not None:
        yield f"up {format_rate(now.uplink_bit_s)}"
    if now.downlink_bit_s is not None:
        yield f"down {format_rate(now.downlink_bit_s)}"


def _trace(link: LinkPlan, period_s: float) -> list[str]:
    """The least and the greatest of each value in a link's trace."""
    up = [now.uplink_bit_s for now in moments(link) if now.uplink_bit_s is not None]
    down = [now.downlink_bit_s for now in moments(link) if now.downlink_bit_s is not None]
    ranges = [f"{name} {_rate_range(rates)}" for name, rates in (("up", up), ("down", down)) if rates]
    return [f"trace {format_duration(period_s)}", *ranges]


def _rate_range(rates_bit_s: Sequence[int]) -> str:
    least, most = rate_text(min(rates_bit_s)), rate_text(max(rates_bit_s))
    return least if least == most else f"{least}..{most}"


def _range_s(source: TrainingNode, target: TrainingNode, payload_bytes: int) -> tuple[float, float]:
    """The least and the most seconds that a message takes over two links, when nothing else is on its way."""
    times_s = [
        sent_latency_s + received_latency_s + 8 * wire_bytes(payload_bytes) / min(sent_bit_s, received_bit_s)
        for sent_latency_s, sent_bit_s in _extremes(source.link, "uplink")
        for received_latency_s, received_bit_s in _extremes(target.link, "downlink")
    ]
    return min(times_s), max(times_s)


def _extremes(link: LinkPlan, direction: Direction) -> list[tuple[float, float]]:
    """Each latency that a link ever has, with the lowest and the highest rate beside it; infinity: no limit."""
    rates: dict[float, list[float]] = {}
    for now in moments(link):
        rates.setdefault(now.latency_s, []).append(rate_of(now, direction) or math.inf)
    return [(latency_s, rate) for latency_s, beside in rates.items() for rate in (min(beside), max(beside))]


def _times_texts(row: LinkRow) -> tuple[str, str]:
    """Times of a pull and of a push, with the same unit for best and worst."""
    times_s = [*(row.pull_s or ()), *(row.push_s or ())]
    in_ms = bool(times_s) and min(times_s) < 1.0 and max(times_s) < 10.0
    return _range_text(row.pull_s, in_ms=in_ms), _range_text(row.push_s, in_ms=in_ms)


def _range_text(range_s: tuple[float, float] | None, *, in_ms: bool) -> str:
    if range_s is None:
        return UNMEASURED
    least, most = (f"{number_text(1000 * time_s)} ms" if in_ms else seconds_text(time_s) for time_s in range_s)
    return least if least == most else f"{least}..{most}"
