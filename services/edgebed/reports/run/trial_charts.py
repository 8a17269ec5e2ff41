"""Charts of one trial's nodes: when they were up and what was done to them; rates of links against those asked."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullLocator

from edgebed.core.plan import Plan
from edgebed.core.quantities import count_text, rate_text
from edgebed.journal.series import Series
from edgebed.journal.verdict.measured import NodeConditions
from edgebed.reports.run.charts import AXES
from edgebed.reports.writing.figures import INK, MARKERS, PALETTE, SIZE, Chart, percent_axis

ROWS_MAX = 24
"""Rows of the chart of nodes; nodes to which nothing happened share a row for each class."""
ROW_HEIGHT, FRAME_HEIGHT = 0.2, 1.3
"""Height of a row, and of what surrounds the rows, in inches."""
UP, SILENT, DOWN = "up", "does not answer", "down"
STATES = {
    "started": UP, "joined": UP, "ready": UP, "running": UP, "unresponsive": SILENT,
    "died": DOWN, "missing": DOWN, "stopped": "",
}  # fmt: skip
"""How a node's state is drawn; "": its end was in order."""
COLOURS = {UP: PALETTE[0], SILENT: PALETTE[5], DOWN: PALETTE[1]}
COLUMNS = 1_000
"""Columns of the chart of nodes: spans in one column cannot be distinguished, and are drawn once, however many they
are."""
SPAN_MIN, MARGIN = 1.5, 0.12
"""Least factor, and share of the axis, by which the axis of rates extends beyond the lowest and the highest."""
TICKS_APART = 0.16
"""Least distance of two ticks, as a share of the axis."""
SINCE_LAUNCH = "time since the launch (s)"
"""The title of the axis of a trial whose training never began."""

Span = tuple[float, float, str]
"""Begin and end (s in the series' time), and style."""


def timeline(name: str, plan: Plan, series: Series) -> Chart:
    """A chart of each node of the trial of this name over time, with what was done to it."""
    spans = _spans(series) if series.last_t > 0.0 else {}
    rows = _rows(plan, series, spans)
    size = (SIZE[0], FRAME_HEIGHT + ROW_HEIGHT * len(rows))
    title = f"{name}: nodes and what was done to them"
    return Chart(title, lambda axes: _draw_timeline(axes, series, spans, rows), size=size)


def links(name: str, nodes: Sequence[NodeConditions]) -> Chart:
    """A chart of the measured rate of each limited link over the rate asked."""
    found = {"uplink": _rates(nodes, "uplink"), "downlink": _rates(nodes, "downlink")}
    title = f"{name}: links, measured against asked"
    return Chart(title, lambda axes: _draw_links(axes, found), len(found))


def _spans(series: Series) -> dict[str, list[Span]]:
    """For each node, in the series' time, when it was up, did not answer, or was down."""
    spans: dict[str, list[Span]] = {}
    now: dict[str, tuple[float, str]] = {}
    for t, node in series.nodes:
        look = STATES.get(node.state)
        since, before = now.get(node.name, (t, ""))
        if look is None or look == before:
            continue
        if before:
            spans.setdefault(node.name, []).append((since, t, before))
        now[node.name] = (t, look)
    for name, (since, look) in now.items():
        if look:
            spans.setdefault(name, []).append((since, series.last_t, look))
    return spans


def _rows(plan: Plan, series: Series, spans: Mapping[str, list[Span]]) -> dict[str, list[str]]:
    """Name of each row, from the top, with the nodes that it shows."""
    names = [node.node for node in plan.nodes if node.node in spans]
    eventful = {each.record.target for each in series.faults if each.was_done}
    eventful |= {name for name in names if any(look != UP for _, _, look in spans[name])}
    apart = names if len(names) <= ROWS_MAX else [name for name in names if name in eventful][: ROWS_MAX - 4]
    rows: dict[str, list[str]] = {name: [name] for name in apart}
    others: dict[str, list[str]] = {}
    for node in plan.nodes:
        if node.node in spans and node.node not in rows:
            others.setdefault(node.device_class, []).append(node.node)
    for device_class, members in others.items():
        label = members[0] if len(members) == 1 else f"{device_class}: {count_text(len(members), 'other')}"
        rows[label] = members
    return rows


def _draw_timeline(
    axes: Axes, series: Series, spans: Mapping[str, list[Span]], rows: Mapping[str, Sequence[str]]
) -> None:
    if not spans:
        return
    column_s = series.last_t / COLUMNS
    shown: set[str] = set()
    for place, members in enumerate(rows.values()):
        for look, colour in COLOURS.items():
            seen = [(begin, end) for name in members for begin, end, each in spans[name] if each == look and end > 0.0]
            height = 0.25 if look == DOWN else 0.7
            ranges = [(begin, end - begin) for begin, end in joined(seen, column_s)]
            if ranges:
                axes.broken_barh(ranges, (place - height / 2, height), facecolors=colour, linewidth=0, label=look)
                shown.add(look)
    places = {name: place for place, members in enumerate(rows.values()) for name in members}
    done = [each for each in series.faults if each.was_done and each.record.target in places and each.t >= 0.0]
    actions = list(dict.fromkeys(each.record.action for each in done))
    for index, action in enumerate(actions):
        alike = [each for each in done if each.record.action == action]
        points = {(round(each.t / column_s), places[each.record.target]): each.t for each in alike}
        style: dict[str, Any] = {"linestyle": "none", "marker": MARKERS[index % len(MARKERS)], "markersize": 5}
        style |= {"markerfacecolor": "none", "color": INK, "label": action}
        axes.plot(list(points.values()), [place for _, place in points], **style)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0.0, series.last_t)
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    axes.set_xlabel(SINCE_LAUNCH if series.training_s is None else AXES["time"])
    handles: list[Any] = [Patch(color=COLOURS[look], label=look) for look in COLOURS if look in shown]
    handles += axes.get_lines()
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, fontsize=8, borderpad=0.0)


def joined(spans: Iterable[tuple[float, float]], apart_s: float) -> list[tuple[float, float]]:
    """Intervals (from, to), from 0 on, merged where they are less than `apart_s` apart."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin - found[-1][1] < apart_s:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((max(0.0, begin), end))
    return found


def _rates(nodes: Sequence[NodeConditions], which: str) -> list[tuple[float, float]]:
    """(asked, measured) of links with one rate all the time, in bits a second."""
    ways = [getattr(node, which) for node in nodes if node.role == "worker"]
    return [
        (way.asked_high_bit_s, way.measured_bit_s)
        for way in ways
        if way.measured_bit_s is not None and way.asked_high_bit_s and way.asked_low_bit_s == way.asked_high_bit_s
    ]


def _apart(rates: Iterable[float], width: float) -> list[float]:
    """The rates that ticks can stand at, on a logarithmic axis of this width."""
    kept: list[float] = []
    for rate in sorted(rates):
        if not kept or math.log(rate / kept[-1]) >= TICKS_APART * width:
            kept.append(rate)
    return kept


def _draw_links(axes: Axes, found: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    everything = [pair for pairs in found.values() for pair in pairs]
    if not everything:
        return
    for index, (which, pairs) in enumerate(found.items()):
        style: dict[str, Any] = {"linestyle": "none", "marker": "^v"[index], "color": PALETTE[index], "alpha": 0.7}
        if pairs:
            axes.plot([asked for asked, _ in pairs], [got / asked for asked, got in pairs], label=which, **style)
    axes.axhline(1.0, color=INK, linewidth=1.0, alpha=0.6)
    lowest, highest = (limit(asked for asked, _ in everything) for limit in (min, max))
    axes.set_xscale("log")
    margin = max(SPAN_MIN, (highest / lowest) ** MARGIN)
    axes.set_xlim(lowest / margin, highest * margin)
    axes.set_xticks(_apart({asked for asked, _ in everything}, math.log(highest / lowest * margin**2)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: rate_text(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0.0, max(1.2, *(1.05 * got / asked for asked, got in everything)))
    percent_axis(axes.yaxis)
    axes.set_xlabel("rate asked of the link (bits a second; logarithmic)")
    axes.set_ylabel("measured, of what was asked (%)")
