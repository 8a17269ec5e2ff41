"""Charts of trials of programs: each number that their output tells, against time and the bytes of all links."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from edgebed.core.quantities import bytes_text
from edgebed.journal.programs.series import Told
from edgebed.reports.writing.figures import DASHES, PALETTE, Chart
from edgebed.running.results import ProgramTrial

LINES_MAX = 12
"""Curves of a chart: those of the first nodes that tell the measure."""
TIME = "time since all programs were ready (s)"
SENT = "sent by all nodes over their links"


def charts(trials: Mapping[str, ProgramTrial]) -> Iterator[Chart]:
    """For each measure its curves against time, and against bytes where nodes count them; trials by name.

    What a node told once alone is no curve: tables have it.
    """
    names = dict.fromkeys(name for trial in trials.values() for name in trial.summary.measures)
    sent = {name: told for name, trial in trials.items() if len((told := trial.series.programs.sent).t)}
    for name in names:
        curves = {
            (called, node): told
            for called, trial in trials.items()
            for node, told in trial.series.programs.measured.get(name, {}).items()
            if len(told.t) > 1
        }
        if not curves:
            continue
        shown = dict(list(curves.items())[:LINES_MAX])
        yield Chart(f"{name} against time", _drawing(name, TIME, shown), len(shown))
        over = {key: told._replace(t=np.interp(told.t, *sent[key[0]])) for key, told in shown.items() if key[0] in sent}
        if over:
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
        axes.set_xlabel(axis)
        if axis == SENT:
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: bytes_text(round(size))))
        axes.set_ylabel(name)

    return plot
