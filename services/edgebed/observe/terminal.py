"""The results of a run in a terminal: a table of its trials, accuracy against ingress, where the report is."""

import math
from collections.abc import Mapping

import numpy as np
import plotext
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgebed.observe.quantities import bytes_text, number_text, percent_text, seconds_text
from edgebed.observe.series import Series
from edgebed.observe.summary import RunSummary, TrialSummary
from edgebed.results import Run

MARKERS = "xo+*#@"
COLOURS = ("blue+", "orange+", "green+", "magenta+", "cyan+", "red+")
CHART_ROWS = 18
CHART_COLUMNS_MAX = 100
STYLES = {0: "green", 1: "red"}


def print_results(run: Run, console: Console) -> None:
    """The table, the chart, the verdict and the path of the report."""
    summary = run.summary
    console.print(results_table(summary))
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
    console.print(Text(summary.verdict, style=STYLES.get(summary.exit_code, "yellow")))
    place = run.folder.report if run.folder.report.exists() else run.path
    console.print(Text(f"{'report' if place is not run.path else 'run'}: {place}"), soft_wrap=True)


def results_table(summary: RunSummary) -> Table:
    """One row a trial."""
    title = f"{summary.scenario} ({summary.runtime})"
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("trial", overflow="fold")
    for name in ("accuracy", "updates", "time", "updates/s", "ingress", "a push", "staleness"):
        table.add_column(name, justify="right", no_wrap=True)
    for trial in summary.trials:
        table.add_row(
            trial.trial,
            percent_text(trial.final_accuracy),
            f"{trial.updates:,}",
            seconds_text(trial.time_s),
            number_text(trial.updates_per_s),
            bytes_text(trial.ingress_bytes),
            bytes_text(trial.push_bytes_mean),
            number_text(trial.staleness_mean),
        )
    return table


def accuracy_chart(trials: Mapping[str, Series], *, columns: int = 80, colours: bool = False) -> str:
    """Test accuracy against server ingress (payload of the pushes, logarithmic) in characters; "" without any point.

    Without `colours` the text has no escape sequence at all, so that it can go to a file.
    """
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for name, series in trials.items():
        x, y = series.evaluations.ingress_bytes, series.evaluations.accuracy
        seen = (x > 0) & np.isfinite(y)  # The initial model has cost nothing and has no place on a logarithmic axis.
        if seen.any():
            curves[name] = ([math.log10(value) for value in x[seen].tolist()], (100 * y[seen]).tolist())
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
    every = [value for x, _ in curves.values() for value in x]
    ticks = _decades(min(every), max(every))
    figure.ruler("x").ticks(ticks, [bytes_text(10**tick) for tick in ticks])
    heights = [value for _, y in curves.values() for value in y]
    ticks = _nice_ticks(min(heights), max(heights))
    figure.ruler("y").ticks(ticks, [f"{tick:g}" for tick in ticks])
    figure.label("server ingress: payload of the pushes (logarithmic)", "x")
    text = str(figure.build().string())
    lines = (text if colours else plotext.uncolorize(text)).rstrip().splitlines()
    return "\n".join([f"test accuracy (%)    {'    '.join(key)}", *(line.rstrip() for line in lines)])


def _judgements(trial: TrialSummary) -> list[Text]:
    """A line for each expectation of the trial, and one for an outcome that is not what was asked for."""
    lines = [
        Text(
            f"{'✓' if each.met else '✗'} {trial.trial}: {each.measure} "
            f"{'not measured' if each.measured is None else f'{each.measured:.6g}'}, expected "
            f"{each.comparison} {each.bound:g}",
            style="green" if each.met else "red",
        )
        for each in trial.expectations
    ]
    if trial.outcome != "completed":
        lines.append(Text(f"✗ {trial.trial}: {trial.outcome}: {trial.reason}", style="yellow"))
    return lines


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
