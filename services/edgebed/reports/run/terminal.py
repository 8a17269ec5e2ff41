"""The results of a run in a terminal: a table of its trials, accuracy against traffic, where the report is."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import plotext
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgebed.core.quantities import (
    UNMEASURED,
    bytes_text,
    compared_texts,
    number_text,
    percent_text,
    seconds_text,
    updates_text,
)
from edgebed.journal.notes import gathered_notes
from edgebed.journal.outcome import outcome_text, tone_of
from edgebed.journal.series import Series
from edgebed.journal.start_up import start_up_lines
from edgebed.journal.summary import Expectation, RunSummary, TrialSummary
from edgebed.reports.run.conditions_text import LINK_HEAD, LINK_LEGEND, link_rows, remarks_of
from edgebed.reports.run.faults_text import accounting_line, faults_line
from edgebed.reports.run.shards_text import shards_text
from edgebed.reports.run.traffic_text import traffic_lines
from edgebed.running.results import Run, Trial

MARKERS = "xo+*#@"
COLOURS = ("blue+", "orange+", "green+", "magenta+", "cyan+", "red+")
CHART_ROWS = 18
CHART_COLUMNS_MAX = 100
TRAFFIC_LABEL = "bytes up and down: pushes and the models sent back (logarithmic)"
INGRESS_LABEL = "bytes up: payload of the pushes alone (logarithmic)"
AXIS_MIN = 0.01
"""Least length of an axis of the chart, in points of accuracy and in decades of bytes."""
STYLES = {"good": "green", "bad": "red", "unknown": "yellow"}
"""Styles by the tone of a run's badge."""
NOTES_MAX = 8
GAP = 2
"""Characters between two columns of a table."""
FLEXIBLE_MIN = 8
"""Least width of a column that may be cut, in characters."""


def print_results(run: Run, console: Console) -> None:
    """The badge, the table, the chart, warnings, faults and other figures, notes; the badge again, and the report."""
    summary = run.summary
    style = STYLES[tone_of(summary.exit_code, summary.result, summary.conditions)]
    title = Text(f"{summary.scenario} ({summary.runtime}): ", style="bold")
    console.print(title.append(summary.badge, style=style), soft_wrap=True)
    console.print(results_table(summary, console.width))
    if units := updates_text({trial.trial: trial.examples_per_update for trial in summary.trials}):
        console.print(Text(units, style="dim"), soft_wrap=True)
    chart = accuracy_chart(
        {name: trial.series for name, trial in run.trials.items()},
        columns=min(console.width, CHART_COLUMNS_MAX),
        colours=console.color_system is not None and not console.no_color,
    )
    if chart:
        console.print(Text.from_ansi(chart), no_wrap=True, crop=False)
    for trial in summary.trials:
        for line in _judgements(trial):
            console.print(line, soft_wrap=True)
    figures = [f"{name}: {line}" for name, trial in run.trials.items() for line in _figures(trial)]
    for figure in figures:
        console.print(Text(figure, style="dim"), soft_wrap=True)
    if summary.not_begun:
        console.print(Text(f"{UNMEASURED} did not begin: {', '.join(summary.not_begun)}", style="dim"), soft_wrap=True)
    notes = gathered_notes(summary.notes, {node.node for trial in run.trials.values() for node in trial.plan.nodes})
    for note in notes[:NOTES_MAX]:
        console.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
    if len(notes) > NOTES_MAX:
        console.print(Text(f"note: {len(notes) - NOTES_MAX} more in the report", style="dim"))
    console.print(Text(f"{summary.badge}: {summary.text}", style=style), soft_wrap=True)
    place = run.folder.report if run.folder.report.exists() else run.path
    console.print(Text(f"{'report' if place is not run.path else 'run'}: {place}"), soft_wrap=True)


def _figures(trial: Trial) -> Iterator[str]:
    """Lines on what was done to nodes, what became of the updates, the traffic, how the nodes came up."""
    summary = trial.summary
    yield from filter(None, (faults_line(summary, trial.series.faults), accounting_line(summary)))
    yield from traffic_lines(summary)
    if shards := shards_text(summary):
        yield shards
    if summary.start_up:
        yield from start_up_lines(summary.start_up)


def results_table(summary: RunSummary, width: int) -> Table:
    """One row a trial; in a narrow terminal without the columns that matter least."""
    columns = {
        "trial": [trial.trial for trial in summary.trials],
        "accuracy": [percent_text(trial.final_accuracy) for trial in summary.trials],
        "updates": [f"{trial.updates:,}" for trial in summary.trials],
        "time": [seconds_text(trial.time_s) for trial in summary.trials],
        "updates/s": [number_text(trial.updates_per_s) for trial in summary.trials],
    }
    if summary.trials and all(trial.is_layerwise for trial in summary.trials):
        columns["steps/s"] = [number_text(trial.steps_per_s) for trial in summary.trials]
        columns["exchanged"] = [bytes_text(trial.exchanged_bytes) for trial in summary.trials]
        columns["messages a step"] = [number_text(trial.messages_per_step) for trial in summary.trials]
        del columns["updates/s"]
    else:
        columns["up"] = [bytes_text(trial.ingress_bytes) for trial in summary.trials]
        columns["down"] = [bytes_text(trial.egress_bytes) for trial in summary.trials]
        columns["total"] = [bytes_text(trial.traffic_bytes) for trial in summary.trials]
        columns["a push"] = [bytes_text(trial.push_bytes_mean) for trial in summary.trials]
        columns["staleness"] = [number_text(trial.staleness_mean) for trial in summary.trials]
    for name in summary.not_begun:
        for column, cells in columns.items():
            cells.append(name if column == "trial" else UNMEASURED)
    droppable = (
        "staleness", "a push", "updates/s", "messages a step", "time", "updates", "up", "down", "total",
        "exchanged",
    )  # fmt: skip
    dispensable = tuple(name for name in droppable if name in columns)
    return plain_table(
        columns,
        width,
        dispensable=dispensable,
        right=[name for name in columns if name != "trial"],
    )


def plain_table(
    columns: Mapping[str, Sequence[str]],
    width: int,
    *,
    dispensable: Sequence[str] = (),
    flexible: str = "",
    right: Sequence[str] = (),
    title: str | None = None,
) -> Table:
    """A table of one line a row that fits into `width`: columns are left out in the order of `dispensable`.

    If that is not enough, texts continue in further lines. `flexible` names a column that may be cut to FLEXIBLE_MIN,
    the only one that is; the columns of `right` are aligned there.
    """
    widths = {name: max(len(name), *map(len, cells), 0) for name, cells in columns.items()}
    least = widths | ({flexible: min(widths[flexible], FLEXIBLE_MIN)} if flexible else {})
    kept = list(columns)
    for name in dispensable:
        if _total(least, kept) <= width:
            break
        kept.remove(name)
    fits = _total(least, kept) <= width
    room = width - _total(least, kept) + least.get(flexible, 0)
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False,
        collapse_padding=True, pad_edge=False,
    )  # fmt: skip
    for name in kept:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=fits, overflow="fold")
    for row in zip(*(columns[name] for name in kept), strict=True):
        cells = (_cut(cell, room) if name == flexible else cell for name, cell in zip(kept, row, strict=True))
        table.add_row(*(Text(cell) for cell in cells))
    return table


def print_links(run: Run, console: Console) -> None:
    """Print each link as asked, as held and as measured."""
    for name, trial in run.trials.items():
        fidelity = trial.summary.fidelity
        rows = list(link_rows(fidelity.nodes)) if fidelity else []
        if not any(node.link.shaped for node in trial.plan.nodes):
            console.print(f"{name}: no link was asked for")
            continue
        if not rows:
            console.print(f"{name}: nothing is known of its links: it never trained, or its journal is empty")
            continue
        columns = dict(zip(LINK_HEAD, map(list, zip(*rows, strict=True)), strict=True))
        right = ("asked", "held", "measured", "latency", "latency measured", "drops")
        console.print(plain_table(columns, console.width, dispensable=("drops", "mechanism"), right=right, title=name))
        console.print(Text(LINK_LEGEND, style="dim"), soft_wrap=True)
        for line in _judgements(trial.summary):
            console.print(line, soft_wrap=True)


def _total(widths: Mapping[str, int], names: Sequence[str]) -> int:
    return sum(widths[name] for name in names) + GAP * (len(names) - 1)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def accuracy_chart(trials: Mapping[str, Series], *, columns: int = 80, colours: bool = False) -> str:
    """Test accuracy against the bytes that went up and down (logarithmic) in characters; "" without any point.

    The axes go from the lowest value to the highest. Where a trial's journal does not say what went down, all are
    drawn against the pushes alone. Without `colours` the text has no escape sequence at all, so that it can go to a
    file.
    """
    measured = {name: series.evaluations for name, series in trials.items() if series.evaluations.ingress_bytes.any()}
    is_known = all(np.isfinite(each.egress_bytes).all() for each in measured.values())
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for name, each in measured.items():
        x, y = each.traffic_bytes if is_known else each.ingress_bytes, each.accuracy
        seen = (x > 0) & np.isfinite(y)  # The initial model has cost nothing and has no place on a logarithmic axis.
        if seen.any():
            curves[name] = (np.log10(x[seen]).tolist(), (100 * y[seen]).tolist())
    if not curves:
        return ""
    figure = plotext.figure.clear()
    figure.plot_size(columns, CHART_ROWS).theme("colorless")
    key = []
    for index, (name, (logarithms, percents)) in enumerate(curves.items()):
        symbol = MARKERS[index % len(MARKERS)]
        pixel = plotext.pixel(COLOURS[index % len(COLOURS)]) if colours else plotext.pixel()
        signal = figure.signal(logarithms, percents, marker=plotext.marker(symbol, pixel))
        figure.draw(signal.lines())
        key.append(f"{symbol} {name}")
    low, high = _ends(value for x, _ in curves.values() for value in x)
    ticks = _decades(low, high)
    figure.ruler("x").ticks(ticks, [bytes_text(10**tick) for tick in ticks]).lim(*_axis(low, high))
    low, high = _ends(value for _, y in curves.values() for value in y)
    ticks = _nice_ticks(low, high)
    figure.ruler("y").ticks(ticks, [f"{tick:g}" for tick in ticks]).lim(*_axis(low, high))
    figure.label(TRAFFIC_LABEL if is_known else INGRESS_LABEL, "x")
    text = str(figure.build().string())
    lines = (text if colours else plotext.uncolorize(text)).rstrip().splitlines()
    return "\n".join([*_key_lines(key, columns), *(line.rstrip() for line in lines)])


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """The lowest and the highest value."""
    every = list(values)
    return min(every), max(every)


def _axis(low: float, high: float) -> tuple[float, float]:
    """The limits of an axis for data from `low` to `high`, which else take their ticks' place; never equal."""
    margin = max(0.0, AXIS_MIN - (high - low)) / 2
    return low - margin, high + margin


def _key_lines(key: Sequence[str], columns: int) -> list[str]:
    """The chart's subject and the mark of each trial, on as many lines as it takes."""
    lines = ["test accuracy (%)"]
    for entry in key:
        if len(lines[-1]) + 4 + len(entry) <= columns:
            lines[-1] += f"    {entry}"
        else:
            lines.append(f"    {entry}")
    return lines


def _judgements(trial: TrialSummary) -> Iterator[Text]:
    """Lines about the outcome where it is not what was asked for, what is suspicious, the verdict, the expectations.

    A trial that did not come to its end is not judged.
    """
    if trial.outcome != "completed":
        mark, style = (UNMEASURED if trial.outcome == "running" else "✗"), ("red" if trial.ran_to_end else "yellow")
        yield Text(f"{mark} {trial.trial}: {outcome_text(trial)}", style=style)
    for warning in trial.warnings:
        yield Text(f"! {trial.trial}: {warning}", style="yellow")
    if trial.fidelity:
        styles = {"trusted": ("✓", "green"), "modelled": (UNMEASURED, "")}
        mark, style = styles.get(trial.fidelity.verdict, ("!", "yellow"))
        expected = ", as expected" if any(_is_met_verdict(each) for each in trial.expectations) else ""
        for line in trial.fidelity.lines:
            yield Text(f"{mark} {trial.trial}: {line}{expected}", style=style)
        for remark in remarks_of(trial):
            yield Text(f"  {trial.trial}: {remark}", style="dim")
    for each in trial.expectations:
        if each.measure == "verdict" and each.met is not False:
            continue
        measured, bound = compared_texts(each.measure, each.measured, each.bound)
        if trial.ran_to_end:
            mark, style = ("✓", "green") if each.met else ("✗", "red")
        else:
            mark, style = UNMEASURED, "dim"
        text = "not measured" if each.measured is None else measured
        yield Text(f"{mark} {trial.trial}: {each.measure} {text}, expected {each.comparison} {bound}", style=style)


def _is_met_verdict(expectation: Expectation) -> bool:
    """Whether the expectation is a met verdict, which the line of the verdict itself shows."""
    return expectation.measure == "verdict" and bool(expectation.met)


def _nice_ticks(low: float, high: float) -> list[float]:
    """At most six round numbers between two percentages."""
    step = next(step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if (high - low) / step <= 6 or step == 20)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 1) for place in range(first, last + 1)] or [low]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten between two logarithms; thirds (1, 2, 5) where that would leave fewer than three."""
    steps = (0.0,) if high - low > 2.5 else (0.0, math.log10(2), math.log10(5))
    places = range(math.floor(low), math.ceil(high) + 1)
    return [place + step for place in places for step in steps if low <= place + step <= high] or [low, high]
