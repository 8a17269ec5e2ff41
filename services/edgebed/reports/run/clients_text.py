"""What was measured client by client: in numbers, client for client, and as ordered dots."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from edgebed.core.measures.clients import STATISTICS, WHOSE
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.quantities import UNMEASURED, count_text, first_text
from edgebed.journal.columns.clients import ClientSummary, Floats, names_of, without_examples
from edgebed.reports.run.charts import log_values
from edgebed.reports.run.clients_line import WHOSE_TEXT
from edgebed.reports.run.trial_measures import value_range
from edgebed.reports.writing.figures import MARKERS, PALETTE, Chart, percent_axis
from edgebed.reports.writing.page import Figures, Grid, Part, Section, legend
from edgebed.running.results import Trial
from edgebed.studies.measures import part_of

NAMED = 10
"""Clients that are named where some are not measured."""
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
    headline, clients = told[0].summary.headline, {trial.name: trial.series.clients for trial in told}
    part = part_of(trial.summary.clients.part for trial in told if trial.summary.clients)
    groups = {name: (each.last(headline.name), each.last(headline.name, tuned=True)) for name, each in clients.items()}
    yield Figures([client_chart(groups, headline, part)])
    for trial in told:
        rows = list(_client_rows(trial))
        head = ("client", "examples", "in training", *_value_heads(trial))
        yield Section(f"{trial.name}: {count_text(len(rows), 'client')}", [
            Grid(head, rows[:ROWS_MAX], is_sortable=True).without_empty_columns()
        ], is_folded=True)  # fmt: skip


def client_chart(groups: Mapping[str, tuple[Floats, Floats]], headline: TaskMeasure, part: str) -> Chart:
    """The headline of each client, from the worst to the best: a mark a client, hollow after fine-tuning.

    `groups` has by name the values as they are, and those after fine-tuning.
    """
    ordered = {
        name: values
        for group, each in groups.items()
        for name, found in zip((group, f"{group}, fine-tuned"), each, strict=True)
        if len(values := _ordered(found, headline))
    }

    def plot(axes: Axes) -> None:
        for index, group in enumerate(groups):
            colour = PALETTE[index % len(PALETTE)]
            marker = MARKERS[(index + index // len(PALETTE)) % len(MARKERS)]
            for name, fill in ((group, "full"), (f"{group}, fine-tuned", "none")):
                if name in ordered:
                    places = (np.arange(len(ordered[name])) + 0.5) / len(ordered[name])
                    style: dict[str, Any] = {"color": colour, "markersize": 4.5, "fillstyle": fill}
                    axes.plot(places, ordered[name], marker, label=name, **style)
        axes.set_xlabel("clients, from the worst to the best (%)")
        axes.set_xlim(0.0, 1.0)
        percent_axis(axes.xaxis)
        unit = f" ({headline.symbol})" if headline.symbol else ""
        axes.set_ylabel(f"{part} {headline.words} of a client{unit}")
        shown = value_range(headline, itertools.chain.from_iterable(ordered.values()))
        if headline.is_share:
            percent_axis(axes.yaxis)
        elif shown and shown.is_log:
            log_values(axes, shown)

    return Chart(f"{headline.title} of each client", plot, len(ordered))


def _ordered(values: Floats, headline: TaskMeasure) -> Floats:
    known = np.sort(values[np.isfinite(values)])
    return known if headline.better == "more" else known[::-1]


def _how_text(trial: Trial) -> str:
    summary = trial.summary.clients
    assert summary is not None
    tuned = f", then after {summary.fine_tune} on its own training examples" if summary.fine_tune else ""
    unseen = f" Training never saw {summary.unseen:,} of them." if summary.unseen else ""
    whose = (
        f"{trial.name}: there is no model of all to measure, but each worker's own"
        if summary.own_models
        else "The model"
    )
    chosen = ""
    if summary.chosen_version is not None:
        chosen = (
            f" Of the versions that were measured so, validation was best after {summary.chosen_version:,} updates."
        )
    return (
        f"{whose} after {summary.version:,} updates, on each client's own part of the {summary.part} part{tuned}. "
        f"Each client counts as one; a decile is a tenth of the clients, of one at least.{chosen}{unseen}"
        f"{_left_out_text(trial)}"
    )


def _left_out_text(trial: Trial) -> str:
    """Say who has no example of the part, and of which measures some have no value."""
    found, summary = trial.series.clients, trial.summary
    assert summary.clients is not None
    text = ""
    if names := without_examples(trial.plan):
        text = (
            f" Not measured, without examples of the {summary.clients.part} part: "
            f"{count_text(len(names), 'client')} ({first_text(names, NAMED)})."
        )
    for measure in summary.measures:
        if unknown := int(np.isnan(found.last(measure.name)).sum()):
            text += (
                f" Left out of {measure.words}, of which their examples give no value: {count_text(unknown, 'client')}."
            )
    return text


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
