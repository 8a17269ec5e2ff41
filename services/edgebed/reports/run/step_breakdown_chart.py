"""A chart of what a step of shards is made of: nodes at work, and messages on their way between two."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from edgebed.reports.run.step_breakdown import LINK, NODE, Busy, busy_of, took_text
from edgebed.reports.writing.figures import PALETTE, SIZE, Chart
from edgebed.running.results import Trial

ROWS_MAX = 12
"""Rows of the chart: the longest."""
ROW_HEIGHT, FRAME_HEIGHT = 0.26, 1.0
"""Height of a row, and of what surrounds the rows, in inches."""
COLOURS = {NODE: PALETTE[0], LINK: PALETTE[1]}
BUSY_LEGEND = (
    "How long a node works for a step, and how long messages between two are on their way for it: measured, or in a "
    "simulation as the links asked for let them pass. Where shards take turns, the bars add up to about a step; where "
    "they work at the same time, each may be as long as one. The longest is the bottleneck."
)


def busy_chart(trial: Trial) -> Chart:
    """The chart of a trial; it shows nothing where no shard has made two steps."""
    busy = busy_of(trial)[:ROWS_MAX]
    size = (SIZE[0], FRAME_HEIGHT + ROW_HEIGHT * len(busy))
    return Chart(f"{trial.name}: what holds a step up", lambda axes: _draw(axes, busy), size=size)


def _draw(axes: Axes, busy: Sequence[Busy]) -> None:
    if not busy:
        return
    shown = list(dict.fromkeys(each.kind for each in busy))
    for place, each in enumerate(busy):
        axes.barh(place, 100 * each.share, height=0.7, color=COLOURS[each.kind], label=each.kind)
        how: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(took_text(each), (100 * each.share, place), **how)
    axes.set_yticks(range(len(busy)), [each.name for each in busy])
    axes.set_ylim(len(busy) - 0.4, -0.6)
    axes.margins(x=0.12)
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    axes.set_xlabel("share of a step (%)")
    handles = [Patch(color=COLOURS[kind], label=kind) for kind in shown]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, fontsize=8, borderpad=0.0)
