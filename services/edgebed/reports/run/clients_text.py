"""What was measured client by client: in numbers, client for client, and as ordered dots."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from edgebed.core.measures.clients import STATISTICS, WHOSE
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.quantities import UNMEASURED, count_text
from edgebed.journal.columns.clients import ClientSummary, Floats, names_of
from edgebed.reports.run.clients_line import WHOSE_TEXT
from edgebed.reports.writing.figures import MARKERS, PALETTE, Chart, percent_axis
from edgebed.reports.writing.page import Figures, Grid, Part, Section, legend
from edgebed.running.results import Trial

ROWS_MAX = 1_000
"""Clients in a table; an export has all."""


def client_parts(trials: Sequence[Trial]) -> Iterator[Part]:
    """The section of a report; nothing where no trial was measured client by client."""
    told = [trial for trial in trials if trial.summary.clients]
    if not told:
        return
    yield legend(" ".join(dict.fromkeys(_how_text(trial) for trial in told)))
    yield Grid(("trial", "measure", "clients", *map(_heading, STATISTICS)), [
        row for trial in told for row in _spread_rows(trial)
    ])  # fmt: skip
    yield Figures([client_chart(told)])
    for trial in told:
        rows = list(_client_rows(trial))
        head = ("client", "examples", "in training", *_value_heads(trial))
        yield Section(f"{trial.name}: {count_text(len(rows), 'client')}", [
            Grid(head, rows[:ROWS_MAX], is_sortable=True).without_empty_columns()
        ], is_folded=True)  # fmt: skip


def client_chart(trials: Sequence[Trial]) -> Chart:
    """The headline of each client, from the worst to the best: a mark a client, hollow after fine-tuning."""
    headline = trials[0].summary.headline

    def plot(axes: Axes) -> None:
        for index, trial in enumerate(trials):
            found, colour = trial.series.clients, PALETTE[index % len(PALETTE)]
            marker = MARKERS[index % len(MARKERS)]
            for tuned in (False, True):
                values = _ordered(found.last(headline.name, tuned=tuned), headline)
                if len(values):
                    places = (np.arange(len(values)) + 0.5) / len(values)
                    name = f"{trial.name}, fine-tuned" if tuned else trial.name
                    axes.plot(
                        places, values, marker, label=name, color=colour, markersize=4.5,
                        fillstyle="none" if tuned else "full",
                    )  # fmt: skip
        axes.set_xlabel("clients, from the worst to the best (%)")
        axes.set_xlim(0.0, 1.0)
        percent_axis(axes.xaxis)
        (part,) = {trial.summary.clients.part for trial in trials if trial.summary.clients} or {"test"}
        axes.set_ylabel(f"{part} {headline.words} of a client" + (" (%)" if headline.is_share else ""))
        if headline.is_share:
            percent_axis(axes.yaxis)
        else:
            axes.yaxis.set_major_locator(MaxNLocator())

    lines = sum(1 + bool(trial.series.clients.tuned) for trial in trials)
    return Chart(f"{headline.title} of each client", plot, lines)


def _ordered(values: Floats, headline: TaskMeasure) -> Floats:
    known = np.sort(values[np.isfinite(values)])
    return known if headline.better == "more" else known[::-1]


def _how_text(trial: Trial) -> str:
    summary = trial.summary.clients
    assert summary is not None
    tuned = f", then after {summary.fine_tune} on its own training examples" if summary.fine_tune else ""
    unseen = f" Training never saw {summary.unseen:,} of them." if summary.unseen else ""
    which = (
        f"{trial.name}: each worker's own model; there is none of all to measure" if summary.own_models else "The model"
    )
    return (
        f"{which}, after {summary.version:,} updates, on each client's own part of the {summary.part} part{tuned}. "
        f"Each client counts as one; a decile is a tenth of the clients, of one at least.{unseen}"
    )


def _heading(statistic: str) -> str:
    return statistic.replace("_", " ")


def _spread_rows(trial: Trial) -> Iterator[tuple[str, ...]]:
    summary = trial.summary.clients
    assert isinstance(summary, ClientSummary)
    for measure in trial.summary.measures:
        for whose, part in WHOSE.items():
            if spread := getattr(summary, part).get(measure.name):
                of = "" if whose == "client" else f", {WHOSE_TEXT[whose]}"
                values = (measure.text(getattr(spread, statistic)) for statistic in STATISTICS)
                yield (trial.name, f"{measure.words}{of}", f"{spread.clients:,}", *values)


def _value_heads(trial: Trial) -> tuple[str, ...]:
    return tuple(
        f"{measure.words}{', fine-tuned' * tuned}" for measure in trial.summary.measures for tuned in (False, True)
    )


def _client_rows(trial: Trial) -> Iterator[tuple[str, ...]]:
    found, by = trial.series.clients, trial.plan.by_client
    assert by is not None
    sizes, unseen = dict(zip(by.clients, by.sizes, strict=True)), {*by.unseen}
    columns = [
        (measure, found.last(measure.name, tuned=tuned).tolist())
        for measure in trial.summary.measures
        for tuned in (False, True)
    ]
    for place, name in enumerate(names_of(trial.plan, found.clients)):
        client = int(found.clients[place])
        values = (UNMEASURED if np.isnan(values[place]) else measure.text(values[place]) for measure, values in columns)
        yield (name, f"{sizes.get(client, 0):,}", "no" if client in unseen else "yes", *values)
