"""Charts of trials of programs: each number that their output tells, against time and the bytes of all links."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from edgebed.core.quantities import bytes_text
from edgebed.core.records import Usage
from edgebed.journal.programs.series import Told
from edgebed.reports.writing.figures import DASHES, PALETTE, Chart
from edgebed.running.results import ProgramTrial

LINES_MAX = 12
"""Curves of a chart: those of the first nodes that tell the measure."""
TIME = "time since all programs were ready (s)"
SENT = "sent by all nodes over their links"


def charts(trials: Sequence[ProgramTrial]) -> Iterator[Chart]:
    """For each measure its curves against time, and against bytes where nodes count them."""
    names = dict.fromkeys(name for trial in trials for name in trial.summary.measures)
    for name in names:
        curves = {
            (trial.name, node): told
            for trial in trials
            for node, told in trial.series.programs.measured.get(name, {}).items()
        }
        shown = dict(list(curves.items())[:LINES_MAX])
        yield Chart(f"{name} against time", _drawing(name, TIME, shown), len(shown))
        sent = {trial.name: _sent(trial) for trial in trials}
        over = {key: told._replace(t=_at(sent[key[0]], told.t)) for key, told in shown.items() if len(sent[key[0]][0])}
        yield Chart(f"{name} against bytes sent", _drawing(name, SENT, over), len(over))


def _drawing(name: str, axis: str, curves: Mapping[tuple[str, str], Told]) -> Callable[[Axes], None]:
    several = len({trial for trial, _ in curves}) > 1

    def plot(axes: Axes) -> None:
        for place, ((trial, node), told) in enumerate(curves.items()):
            axes.plot(
                told.t,
                told.value,
                label=f"{trial}: {node}" if several else node,
                color=PALETTE[place % len(PALETTE)],
                linestyle=DASHES[place // len(PALETTE) % len(DASHES)],
            )
        if curves:
            axes.set_xlabel(axis)
            if axis == SENT:
                axes.xaxis.set_major_locator(MaxNLocator(5))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: bytes_text(round(size))))
            axes.set_ylabel(name)

    return plot


def _sent(trial: ProgramTrial) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times, and bytes that all nodes had sent by then, as their witnesses told."""
    began_s = trial.series.training_s or 0.0
    now: dict[str, int] = {}
    before: dict[str, int] = {}
    times, totals = [0.0], [0.0]
    for t, node, record in trial.events():
        if isinstance(record, Usage) and record.uplink_bytes is not None:
            if record.uplink_bytes < now.get(node, 0):
                before[node] = before.get(node, 0) + now[node]
            now[node] = record.uplink_bytes
            times.append(t - began_s)
            totals.append(float(sum(now.values()) + sum(before.values())))
    return (np.array(times), np.array(totals)) if now else (np.zeros(0), np.zeros(0))


def _at(sent: tuple[NDArray[np.float64], NDArray[np.float64]], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bytes at each time."""
    return np.interp(t, *sent)
